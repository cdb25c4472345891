"""Identify the elements of a list.

In:  a list and its atom.
Out: for each element its path element: `k:{"uid":"u0"}` by key, `v:"a"` by value.
"""

from __future__ import annotations

from typing import Any

from drakit.apiserver.patching.atoms import KEYED, ListAtom
from drakit.apiserver.patching.fieldsets import key_element, value_element


class ElementError(ValueError):
    """An element that has no key."""


def element_of(atom: ListAtom, item: Any) -> str:
    """The path element of a list element; ElementError when it has none."""
    if atom.type != KEYED or not atom.keys:
        return _plain(item)
    # Nearly all lists have one key, and all their elements have it.
    if len(atom.keys) == 1 and isinstance(item, dict) and (value := item.get(atom.keys[0])) is not None:
        return key_element({atom.keys[0]: value})
    return _keyed(atom, item)


def _keyed(atom: ListAtom, item: Any) -> str:
    if item is None:
        raise ElementError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ElementError("associative list with keys may not have non-map elements")
    found = {key: value for key in atom.keys if (value := item.get(key, atom.key_default(key))) is not None}
    if not found:
        names = "[" + " ".join(f'"{key}"' for key in atom.keys) + "]"
        raise ElementError(
            f"associative list with keys has an element that omits all key fields {names} "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(found)


def _plain(item: Any) -> str:
    if isinstance(item, dict):
        raise ElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ElementError("not supported: associative list with lists as elements")
    if item is None:
        raise ElementError("associative list without keys has an element that's an explicit null")
    return value_element(item)


def grouped(atom: ListAtom, items: list[Any]) -> dict[str, list[Any]]:
    """Elements by path element, in order of first appearance. Elements without one are left out."""
    result: dict[str, list[Any]] = {}
    for item in items:
        try:
            result.setdefault(element_of(atom, item), []).append(item)
        except ElementError:
            continue
    return result
