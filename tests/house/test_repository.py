"""The repository speaks of drakit alone, and of no machine that it was written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOSTS = re.compile(
    r"https?://[^ )\"']*(" + "|".join(["py" + "pi", "python" + "hosted", "npm" + "js", r"deb\.deb" + "ian"]) + ")"
)


def tracked_text_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    files = [ROOT / name for name in listing.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:4096]]


def test_no_package_registry_is_named() -> None:
    named = [str(file) for file in tracked_text_files() if HOSTS.search(file.read_text(errors="ignore"))]
    assert named == []


def test_every_dependency_is_bounded_and_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for group in project["optional-dependencies"].values() for each in group),
    ]
    pins = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    for requirement in wanted:
        name = re.split(r"[<>=\[]", requirement)[0].lower().replace("_", "-")
        assert ">=" in requirement, f"{requirement} has no lower bound"
        assert "<" in requirement, f"{requirement} has no upper bound"
        assert name in pins, f"{name} is not pinned in constraints.txt"
