"""What a rule may know beside the objects.

In:  the caller's switches, what the client literally sent, and one fact about the namespace.
Out: a value that every rule gets; no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from drakit.base.gates import FeatureGates

_DEFAULTS = FeatureGates.defaults()
_NONE: frozenset[str] = frozenset()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """`empty_lists` are the paths at which the client sent `[]`, see the function of that name.

    `admin_namespace` says whether the namespace is labelled for admin access; None leaves that rule to somebody else.
    `version` is the one in which the client speaks of the object.
    """

    gates: FeatureGates = _DEFAULTS
    empty_lists: frozenset[str] = _NONE
    admin_namespace: bool | None = None
    version: str = ""


EVERYTHING_ON = Context(gates=FeatureGates.all_on())


def empty_lists(document: Mapping[str, Any]) -> frozenset[str]:
    """Where a document, in any served version, has an empty list, as v1 paths.

    Structs read `[]` and a missing list alike. Kubernetes tells them apart in a few places: an attribute with an empty
    list of strings has a value, though a wrong one.
    """
    return frozenset(_empties(document, "")) if _may_have_empty(document) else _NONE


def _may_have_empty(document: Mapping[str, Any]) -> bool:
    """The text of most documents shows at once that there is none."""
    try:
        return b"[]" in msgspec.json.encode(document)
    except (ValueError, OverflowError):  # raw JSON with a number or text that fits no encoder
        return True


def _empties(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _empties(inner, _below(path, name))
    elif isinstance(value, list):
        if not value:
            yield path
        for index, inner in enumerate(value):
            if isinstance(inner, dict | list):
                yield from _empties(inner, f"{path}[{index}]")


def _below(path: str, name: str) -> str:
    """Map keys are written in brackets; `basic` is how v1beta1 wraps a device and is no part of a v1 path."""
    if name == "basic":
        return path
    if path.endswith(".attributes"):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name
