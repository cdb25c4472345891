"""The bytes of files.

In:  paths of files and directories, or `-` for standard input.
Out: contents by name, in the order of the paths, directories sorted; and a problem for each path that gave nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path

import msgspec

from drakit.base.inputfiles import read_regular
from drakit.manifests.problems import ManifestProblem

SUFFIXES = (".yaml", ".yml", ".json")
input_limit: ContextVar[int] = ContextVar("input_limit", default=256 * 1024 * 1024)
"""Bytes of all files together."""
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
    left = input_limit.get()
    for path in paths:
        is_stdin = str(path) == STDIN and stdin is not None
        found = [Path(STDIN)] if is_stdin else _files(Path(path))
        if not found:
            problems.append(_unreadable(path, f"no {', '.join(SUFFIXES)} files in this folder"))
        for file in found:
            name = STDIN_NAME if is_stdin else str(file)
            try:
                # The limit is on all files together: a folder of many small ones fills memory as well as one large
                # one.
                data = stdin() if is_stdin and stdin is not None else read_regular(file, left)
                if len(data) > left:
                    raise OSError(f"the files have more than {input_limit.get()} bytes (--max-input-bytes)")
                contents[name] = data
                left -= len(data)
            except OSError as error:
                problems.append(_unreadable(name, error.strerror or str(error)))
    return FileContents(contents, tuple(problems))


def _files(path: Path) -> list[Path]:
    """A path that is no directory is read whatever its name: who names it means it."""
    try:
        if not path.is_dir():
            return [path]
    except OSError:  # a name that no file can have: reading it says so
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def _unreadable(path: str | Path, reason: str) -> ManifestProblem:
    return ManifestProblem(rule="unreadable", source=str(path), reason=reason)
