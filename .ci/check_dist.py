"""Check a built wheel and sdist: what is in them, what they say of themselves, and that the wheel works by itself.

In:  the folder with exactly one wheel and one sdist.
Out: exit code 0, or a message. The wheel is installed into an empty environment outside of the repository, with the
     versions of constraints.txt, and allocates the devices of the example cluster there.
"""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IN_SDIST = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "docs/architecture.md", "examples/gpu-pod.yaml")


def check(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"error: {message}")


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    check(len(found) == 1, f"{folder}: expected one {pattern}, found {len(found)}")
    return found[0]


def version() -> str:
    lines = (ROOT / "src" / "drakit" / "__init__.py").read_text().splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("__version__"))


def package_files() -> set[str]:
    """What the wheel must have: every tracked file of the package, data files too."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "src/drakit"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    return {name.removeprefix("src/") for name in listing.split("\0") if name}


def check_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(info))
        entries = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
    missing = sorted(package_files() - names)
    check(not missing, f"{wheel.name} lacks {', '.join(missing[:5])}")
    foreign = sorted(name for name in names if not name.startswith(("drakit/", "drakit-")))
    check(not foreign, f"{wheel.name} has more than the package: {', '.join(foreign[:5])}")
    check(metadata["Version"] == version(), f"{wheel.name} says version {metadata['Version']}, the package {version()}")
    check(metadata["Description-Content-Type"] == "text/markdown", "the long description is not Markdown")
    check(str(metadata.get_payload()).startswith("# drakit"), "the long description is not the README")
    check("Requires-Python" in metadata and "License-File" in metadata, "metadata lack Python's version or the license")
    for entry in ("drakit = drakit.cli.main:run", "kubectl-dra = drakit.cli.main:run_plugin"):
        check(entry in entries, f"{entry} is not an entry point")


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in IN_SDIST if name not in names] + sorted(
        name for name in (f"src/{each}" for each in package_files()) if name not in names
    )
    check(not missing, f"{sdist.name} lacks {', '.join(missing[:5])}")


def check_installed(wheel: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="drakit-dist-") as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / "bin"
        install = [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--constraint", ROOT / "constraints.txt", wheel], check=True, cwd=folder)
        told = subprocess.run(
            [binaries / "drakit", "allocate", "-f", ROOT / "examples" / "demo-cluster"],
            capture_output=True,
            check=True,
            cwd=folder,
            text=True,
        ).stdout
    shown = (ROOT / "docs" / "concepts.md").read_text()
    check(told.strip() in shown, f"`drakit allocate` of the wheel does not print what docs/concepts.md shows:\n{told}")


def main() -> None:
    folder = Path(sys.argv[1])
    wheel, sdist = only(folder, "*.whl").resolve(), only(folder, "*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    check_installed(wheel)
    sys.stdout.write(f"{wheel.name} and {sdist.name} are complete, and the wheel works\n")


if __name__ == "__main__":
    main()
