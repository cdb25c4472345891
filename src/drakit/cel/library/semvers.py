"""Semantic versions: `semver("1.2.3")`, comparison, and the three numbers. Comparison ignores build metadata."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from drakit.base.semver import SemverError, Version
from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, INT, STRING, struct
from drakit.cel.errors import EvalError
from drakit.cel.values import INT_MAX, Opaque

SEMVER = struct("kubernetes.Semver")


class SemverValue(Opaque):
    __slots__ = ("version",)
    type_name = "kubernetes.Semver"

    def __init__(self, version: Version) -> None:
        self.version = version

    def same(self, other: Any) -> bool:
        return bool(self.version == other.version)

    def __hash__(self) -> int:
        return hash(self.version)

    def __repr__(self) -> str:
        return str(self.version)


def normalized(text: str) -> str:
    """`v1.02` as `1.2.0`: no leading `v`, no zeros in front, three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            # One zero stays where no digit follows the zeros: `00`, `0-alpha`.
            parts[index] = rest if rest[:1].isdecimal() and rest[:1].isascii() else "0" + rest
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvalError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


@lru_cache(maxsize=4096)
def semver_from_text(text: str, normalize: bool = False) -> SemverValue:
    try:
        return SemverValue(Version.parse(normalized(text) if normalize else text))
    except SemverError as error:
        raise EvalError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver_from_text(text, normalize)
    except EvalError:
        return False
    return True


def compare(a: SemverValue, b: SemverValue) -> int:
    return (a.version > b.version) - (a.version < b.version)


def _signed(number: int) -> int:
    """An unsigned 64-bit number as the signed int with the same bits, as Go converts it."""
    return number if number <= INT_MAX else number - 2**64


_PAIR = (SEMVER, SEMVER)

FUNCTIONS = (
    Function(
        "semver",
        (
            Overload("string_to_semver", (STRING,), SEMVER, semver_from_text),
            Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, semver_from_text),
        ),
    ),
    Function(
        "isSemver",
        (
            Overload("is_semver_string", (STRING,), BOOL, _is_semver, raises=False),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver, raises=False),
        ),
    ),
    Function(
        "isGreaterThan",
        (
            Overload(
                "semver_is_greater_than", _PAIR, BOOL, lambda a, b: a.version > b.version, member=True, raises=False
            ),
        ),
    ),
    Function(
        "isLessThan",
        (Overload("semver_is_less_than", _PAIR, BOOL, lambda a, b: a.version < b.version, member=True, raises=False),),
    ),
    Function("compareTo", (Overload("semver_compare_to", _PAIR, INT, compare, member=True, raises=False),)),
    *(
        Function(
            part,
            (
                Overload(
                    f"semver_{part}",
                    (SEMVER,),
                    INT,
                    lambda value, part=part: _signed(getattr(value.version, part)),
                    member=True,
                    raises=False,
                ),
            ),
        )
        for part in ("major", "minor", "patch")
    ),
)
