"""Guides that can be run: files that they show, commands that they type, and what comes of them.

In:  Markdown. A block of `yaml title="NAME"` is a file. One of `console` has commands after `$ `, each with its output
     below it; an `…` stands for anything in a line, and alone in a line for any lines, also for none.
Out: steps. `run` does them one by one; `written` is the guide with the output that there was.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ANYTHING = "…"
_BLOCK = re.compile(r'^```(yaml title="([^"]+)"|console)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"(?<=-dev-)[a-z0-9]{5}\b")
_PATIENCE = 90.0
_READS = re.compile(r"^(kubectl (-n \S+ )?(get|logs|wait)|drakit (devices|explain))\b")
"""Commands that may be tried again until they say what they should: a container may have only just begun."""


@dataclass(slots=True)
class Step:
    command: str
    expected: list[str]
    said: list[str] = field(default_factory=list)

    @property
    def is_as_expected(self) -> bool:
        pattern = "".join(
            r"(?:.*\n)*?" if line == ANYTHING else ".*".join(map(re.escape, line.split(ANYTHING))) + "\n"
            for line in self.expected
        )
        return re.fullmatch(pattern, "".join(f"{line}\n" for line in self.said)) is not None


@dataclass(slots=True)
class Guide:
    path: Path
    steps: list[Step] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> Guide:
        guide = Guide(path)
        guide.steps = [step for _, name, text in _blocks(path) if not name for step in _steps(text)]
        return guide

    def run(self, place: Path, environment: Mapping[str, str]) -> Iterator[Step]:
        """Each step as it was; the files of the guide are in the place."""
        for _, name, text in _blocks(self.path):
            if name:
                (place / name).write_text(text)
        for step in self.steps:
            until = time.monotonic() + _PATIENCE
            step.said = _said(step.command, place, environment)
            while not step.is_as_expected and _READS.match(step.command) and time.monotonic() < until and step.expected:
                time.sleep(0.3)
                step.said = _said(step.command, place, environment)
            yield step

    def written(self) -> str:
        """The guide, with what the commands said where it expected nothing."""
        steps = iter(self.steps)

        def block(found: re.Match[str]) -> str:
            if found[2]:
                return found[0]
            lines = []
            for step in list(_steps(found[3])):
                done = next(steps)
                lines += [
                    f"$ {step.command}",
                    *(step.expected or [_GENERATED.sub(ANYTHING, each) for each in done.said]),
                ]
            return "```console\n" + "\n".join(lines) + "\n```"

        return _BLOCK.sub(block, self.path.read_text())


def _blocks(path: Path) -> list[tuple[str, str, str]]:
    return [(found[1], found[2] or "", found[3]) for found in _BLOCK.finditer(path.read_text())]


def _steps(text: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *expected = part.rstrip("\n").split("\n")
        yield Step(command, expected)


def _said(command: str, place: Path, environment: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=place,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else []
