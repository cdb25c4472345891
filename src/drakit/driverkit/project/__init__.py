"""A new driver's project: `drakit driver new`.

In:  a name for the project, and one for the driver.
Out: a directory with a driver that runs, tests that pass, and what a cluster needs to run it. The files are the
     templates in `files/`, with names filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from drakit.base.errors import UsageError
from drakit.base.names import check_dns_label, check_dns_subdomain

SUFFIX = ".tmpl"
_WORD = re.compile(r"[^a-z0-9]+")


class Project(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """Of the directory and of everything in the cluster: a DNS label, such as `leds`."""
    driver: str
    """The driver's name: `leds.example.com`."""

    @property
    def module(self) -> str:
        return f"{_WORD.sub('_', self.name)}_driver"

    @property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in _WORD.split(self.name)) + "Driver"

    def values(self) -> dict[str, str]:
        """What templates name, and what stands there in the end."""
        return {"NAME": self.name, "DRIVER": self.driver, "MODULE": self.module, "CLASS": self.class_name}


def write_project(project: Project, directory: Path) -> list[Path]:
    """Write all files into a directory that is new or empty. Raise UsageError; then nothing is written."""
    _check(project)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is there already, and is not empty")
    written = []
    for name, content in project_files(project):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        written.append(path)
    return written


def project_files(project: Project) -> Iterator[tuple[str, str]]:
    """Every file of the project: its path in the project's directory, and its content."""
    values = project.values()
    for name, template in _templates(files(__package__) / "files", ""):
        yield _filled(name, values).removesuffix(SUFFIX), _filled(template.read_text(encoding="utf-8"), values)


def _templates(directory: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
    for each in sorted(directory.iterdir(), key=lambda found: found.name):
        if each.is_dir():
            yield from _templates(each, f"{place}{each.name}/")
        elif each.name.endswith(SUFFIX):
            yield f"{place}{each.name}", each


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _check(project: Project) -> None:
    problems = check_dns_label(project.name)
    if problems:
        raise UsageError(f"the project's name {project.name!r}: {problems[0]}")
    problems = check_dns_subdomain(project.driver)
    if "." not in project.driver:
        problems.append("must have a domain, such as leds.example.com")
    if problems:
        raise UsageError(f"the driver's name {project.driver!r}: {problems[0]}")
