"""Semantic versions 2.0.0, as device attributes and CEL carry them.

Build metadata is kept for printing and ignored by order and equality.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering

from drakit.base.memo import remember_short

_NUMBER = r"0|[1-9]\d*"
_IDENTIFIER = r"0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*"
_STRICT = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_IDENTIFIER})(?:\.(?:{_IDENTIFIER}))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
# What the tolerant form mends before the strict grammar applies: a leading "v", zeros in front, missing minor or patch.
_UINT64 = 1 << 64


class SemverError(ValueError):
    """The text is no semantic version."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: str = ""
    _key: tuple[object, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", (self.major, self.minor, self.patch, _precedence(self.prerelease)))

    @staticmethod
    def parse(text: str) -> Version:
        """Read the strict form `1.2.3-rc.1+build`; raise SemverError on anything else."""
        return _parse(text)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return f"{text}+{self.build}" if self.build else text

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _precedence(prerelease: tuple[int | str, ...]) -> tuple[object, ...]:
    """A release sorts after its pre-releases; numbers sort before words; a longer list sorts after its prefix."""
    if not prerelease:
        return (1,)
    return (0, tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in prerelease))


@remember_short(4096)
def _parse(text: str) -> Version:
    found = _STRICT.fullmatch(text)
    if not found:
        raise SemverError(f"{text!r} is not a semantic version (expected MAJOR.MINOR.PATCH)")
    major, minor, patch, prerelease, build = found.groups()
    parts = tuple(_number(part) if part.isdecimal() else part for part in prerelease.split(".")) if prerelease else ()
    return Version(_number(major), _number(minor), _number(patch), parts, build or "")


def _number(digits: str) -> int:
    """Length first: Python refuses to read thousands of digits in words of its own."""
    if len(digits) > 20 or int(digits) >= _UINT64:
        raise SemverError(f"{digits[:40]}: a number does not fit 64 bits")
    return int(digits)
