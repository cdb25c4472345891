"""Write a software bill of materials beside a built wheel: CycloneDX 1.5, in JSON.

In:  the folder with the wheel; constraints.txt; what is installed, for licenses.
Out: `drakit-VERSION.cdx.json`: drakit, what it needs and what its extras need, each with the version that it is tested
     with. A version that is installed and is not the pinned one is an error.

A check for known vulnerabilities needs their list, which is not part of this repository: `make audit` asks for it.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def pinned() -> dict[str, str]:
    """Versions by name, as constraints.txt has them."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(versions: dict[str, str]) -> dict[str, list[str]]:
    """drakit and everything that it needs, extras included, with what each needs."""
    known = {normal(name) for name in versions}
    found: dict[str, list[str]] = {}
    left = ["drakit"]
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            texts = distribution(name).requires or []
        except PackageNotFoundError:
            texts = []
        names = {normal(re.match(r"[\w.-]+", text)[0]) for text in texts if name == "drakit" or "extra ==" not in text}  # type: ignore[index]
        found[name] = sorted(names & known)
        left += found[name]
    return found


def component(name: str, version: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{version}"
    made: dict[str, Any] = {"type": "library", "bom-ref": reference, "name": name, "version": version}
    made["purl"] = reference
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return made
    if installed.version != version:
        sys.exit(f"error: {name} {installed.version} is installed, constraints.txt has {version}")
    license_ = installed.metadata.get("License-Expression") or installed.metadata.get("License") or ""
    if license_ and len(license_) < 100:
        made["licenses"] = [{"license": {"name": license_}}]
    return made


def bill(version: str) -> dict[str, Any]:
    versions = {normal(name): number for name, number in pinned().items()}
    wanted = needed(versions)
    parts = [component(name, versions[name]) for name in sorted(wanted) if name != "drakit"]
    references = {part["name"]: part["bom-ref"] for part in parts}
    root = f"pkg:pypi/drakit@{version}"
    depends = [
        {"ref": references.get(name, root), "dependsOn": [references[each] for each in needs]}
        for name, needs in sorted(wanted.items())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": root, "name": "drakit", "version": version}},
        "components": parts,
        "dependencies": depends,
    }


def main(folder: Path) -> None:
    [wheel] = sorted(folder.glob("*.whl"))
    version = wheel.name.split("-")[1]
    path = folder / f"drakit-{version}.cdx.json"
    made = bill(version)
    path.write_text(json.dumps(made, indent=2) + "\n")
    print(f"{path}: {len(made['components'])} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
