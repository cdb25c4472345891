"""Names of attributes and capacities: those that expressions and claims ask for, against those that devices have.

In:  the text of a selector; slices.
Out: names that no device has, with the nearest one that some device has.

Expressions are read as text: `device.attributes["domain"].name` in any of its spellings, and what `cel.bind` gives
another name. Names that an expression computes are not found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

import msgspec

from drakit.api import Device, ResourceSlice

ATTRIBUTE = "attribute"
CAPACITY = "capacity"

_COMMENT = re.compile(r"//[^\n]*")
_MAP = r"device\s*\.\s*(attributes|capacity)\s*\[\s*(?:\"([^\"]+)\"|'([^']+)')\s*\]"
_MEMBER = r"\s*(?:\.\s*\??\s*([A-Za-z_]\w*)\b(?!\s*\()|\[\s*\??\s*(?:\"([^\"]+)\"|'([^']+)')\s*\])"
_READ = re.compile(_MAP + _MEMBER)
_BIND = re.compile(r"cel\s*\.\s*bind\s*\(\s*(\w+)\s*,\s*" + _MAP + r"\s*,")


class Name(msgspec.Struct, frozen=True, order=True):
    """What is asked for: the kind of thing and its name with the domain."""

    what: str
    name: str


def names_in(expression: str) -> list[Name]:
    """The names that an expression reads, in their order, each once."""
    text = _COMMENT.sub("", expression)
    found = [_name(match[1], match[2] or match[3], match[4] or match[5] or match[6]) for match in _READ.finditer(text)]
    for bound in _BIND.finditer(text):
        member = re.compile(rf"\b{re.escape(bound[1])}{_MEMBER}")
        found += [
            _name(bound[2], bound[3] or bound[4], match[1] or match[2] or match[3]) for match in member.finditer(text)
        ]
    return list(dict.fromkeys(found))


def names_of(devices: Iterable[tuple[ResourceSlice, Device]]) -> frozenset[Name]:
    """Every name that a device has."""
    return frozenset(_names(devices))


def _names(devices: Iterable[tuple[ResourceSlice, Device]]) -> Iterator[Name]:
    for slice_, device in devices:
        for what, keys in ((ATTRIBUTE, device.attributes), (CAPACITY, device.capacity)):
            for key in keys:
                yield Name(what, key if "/" in key else f"{slice_.spec.driver}/{key}")


def missing(name: Name, known: frozenset[Name]) -> str | None:
    """The message when no device has it, with what comes nearest."""
    if name in known:
        return None
    message = f'no device of the slices has {name.what} "{name.name}"'
    others = sorted(each.name for each in known if each.what == name.what)
    close = difflib.get_close_matches(name.name, others, n=1, cutoff=0.6)
    if close:
        return f'{message}; the nearest is "{close[0]}"'
    other = Name(CAPACITY if name.what == ATTRIBUTE else ATTRIBUTE, name.name)
    return f"{message}, though some have that {other.what}" if other in known else message


def _name(kind: str, domain: str, identifier: str) -> Name:
    return Name(ATTRIBUTE if kind == "attributes" else CAPACITY, f"{domain}/{identifier}")
