"""The bytes of files.

In:  paths of files and directories, or `-` for standard input.
Out: contents by name, in the order of the paths, directories sorted; and a problem for each path that gave nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from drakit.manifests.problems import ManifestProblem

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
STDIN_NAME = "standard input"


class FileContents(msgspec.Struct, frozen=True):
    """What was read, and what could not be."""

    contents: dict[str, bytes]
    problems: tuple[ManifestProblem, ...] = ()


def read_files(paths: Iterable[str | Path], *, stdin: Callable[[], bytes] | None = None) -> FileContents:
    """Read everything that can be read. `stdin` is what `-` stands for; without it, `-` is a file's name."""
    contents: dict[str, bytes] = {}
    problems: list[ManifestProblem] = []
    for path in paths:
        if str(path) == STDIN and stdin is not None:
            contents[STDIN_NAME] = stdin()
            continue
        found = _files(Path(path))
        if not found:
            problems.append(_unreadable(path, f"no {', '.join(SUFFIXES)} files in this folder"))
        for file in found:
            try:
                contents[str(file)] = file.read_bytes()
            except OSError as error:
                problems.append(_unreadable(file, error.strerror or str(error)))
    return FileContents(contents, tuple(problems))


def _files(path: Path) -> list[Path]:
    """A path that is no directory is read whatever its name: who names it means it."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def _unreadable(path: str | Path, reason: str) -> ManifestProblem:
    return ManifestProblem(rule="unreadable", source=str(path), reason=reason)
