"""Look up known vulnerabilities of the pinned versions: `make audit`, or `scripts/audit.py --data PATH`.

In:  constraints.txt; and either pip-audit, which asks a service over the network, or records in the form of OSV: a file
     or a folder of JSON or YAML, or a zip archive of such files, as services offer them for download.
Out: the packages with a vulnerability, and exit code 1; 0 when there is none; 3 when nobody could be asked.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
NOBODY_ASKED = 3
_SUFFIXES = (".json", ".yaml")
Record = Mapping[str, Any]


def pinned(path: Path) -> dict[str, str]:
    """Versions by normal name."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def records(path: Path) -> Iterator[Record]:
    """Every record in a file, a folder or an archive. What is no record of OSV, or was withdrawn, is passed over."""
    if path.is_dir():
        texts: Iterable[bytes] = (file.read_bytes() for file in sorted(path.rglob("*")) if file.suffix in _SUFFIXES)
    elif zipfile.is_zipfile(path):
        archive = zipfile.ZipFile(path)
        texts = (archive.read(name) for name in sorted(archive.namelist()) if name.endswith(_SUFFIXES))
    else:
        texts = [path.read_bytes()]
    for text in texts:
        found = json.loads(text) if text[:1] in (b"{", b"[") else yaml.load(text, Loader=yaml.CSafeLoader)
        for each in found if isinstance(found, list) else [found]:
            if "affected" in each and not each.get("withdrawn"):
                yield each


def vulnerable(versions: Mapping[str, str], known: Iterable[Record]) -> Iterator[str]:
    """A line for each pinned version that a record says is affected."""
    for record in known:
        for affected in record["affected"]:
            package = affected.get("package", {})
            name = normal(package.get("name", ""))
            if package.get("ecosystem") == "PyPI" and name in versions and is_affected(versions[name], affected):
                yield f"{name} {versions[name]}: {record.get('id', '?')} {record.get('summary', '')}".rstrip()


def is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    if version in affected.get("versions", ()):
        return True
    ranges = (each for each in affected.get("ranges", ()) if each.get("type") == "ECOSYSTEM")
    return any(in_range(Version(version), each.get("events", ())) for each in ranges)


def in_range(version: Version, events: Iterable[Mapping[str, str]]) -> bool:
    """Events are in the order of versions: introduced, fixed, introduced again."""
    inside = False
    for event in events:
        [(what, text)] = event.items()
        try:
            at = Version(text)
        except InvalidVersion:
            continue
        if what == "introduced" and version >= at:
            inside = True
        elif (what == "fixed" and version >= at) or (what == "last_affected" and version > at):
            inside = False
    return inside


def ask(constraints: Path) -> int:
    """Let pip-audit ask, if it is there and reaches whom it asks."""
    if find_spec("pip_audit") is None:
        print("pip-audit is not installed: install it, or give --data", file=sys.stderr)
        return NOBODY_ASKED
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
    done = subprocess.run([*command, "-r", str(constraints)], check=False, stdout=subprocess.PIPE, text=True)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        found = []
    return tell(found)


def tell(dependencies: Iterable[Mapping[str, Any]]) -> int:
    """What pip-audit found. It passes over packages that nobody knows: what was not checked is not called fine."""
    checked, skipped, bad = 0, [], []
    for each in dependencies:
        if "skip_reason" in each:
            skipped.append(each["name"])
            continue
        checked += 1
        bad += [f"{each['name']} {each['version']}: {one['id']}" for one in each.get("vulns", ())]
    print("\n".join(bad) or f"no known vulnerability in {checked} of {checked + len(skipped)} packages")
    if skipped or not checked:
        print(f"not checked: {', '.join(skipped) or 'anything'}; --data reads a download", file=sys.stderr)
    return 1 if bad else NOBODY_ASKED if skipped or not checked else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Look up known vulnerabilities of the pinned versions.")
    parser.add_argument("--data", type=Path, help="records in the form of OSV: a file, a folder or a zip archive")
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    given = parser.parse_args(arguments)
    if given.data is None:
        return ask(given.constraints)
    found = sorted(set(vulnerable(pinned(given.constraints), records(given.data))))
    print("\n".join(found) or "no known vulnerability in the pinned versions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
