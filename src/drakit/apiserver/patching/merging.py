"""Merge an applied object into the live one, and remove fields from an object.

In:  an atom and plain values.
Out: new values; the arguments stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.apiserver.patching.atoms import ATOMIC, Atom, ListAtom, MapAtom
from drakit.apiserver.patching.comparing import MISSING, form_of
from drakit.apiserver.patching.elements import ElementError, element_of, grouped
from drakit.apiserver.patching.fieldsets import FieldSet, below, has


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """Lay the applied value over the live one: maps key by key, lists element by element; other values replace."""
    if live is MISSING or applied is MISSING:
        return live if applied is MISSING else applied
    form = form_of(atom, applied if applied is not None else live)
    if isinstance(form, MapAtom) and not form.atomic and _both(Mapping, live, applied):
        merged = {key: merge(form.at(key), each, applied.get(key, MISSING)) for key, each in live.items()}
        return merged | {key: each for key, each in applied.items() if key not in live}
    if isinstance(form, ListAtom) and form.type != ATOMIC and _both(list, live, applied):
        return _merge_lists(form, live, applied)
    # Null in an apply means "I set nothing here" for a container, and removes a scalar.
    if applied is None and form is not None and not _atomic(form) and live:
        return live
    return applied


def _both(kind: type, one: Any, two: Any) -> bool:
    return isinstance(one, kind) and isinstance(two, kind)


def _atomic(form: MapAtom | ListAtom) -> bool:
    return form.atomic if isinstance(form, MapAtom) else form.type == ATOMIC


def _merge_lists(form: ListAtom, live: list[Any], applied: list[Any]) -> list[Any]:
    mine, theirs = grouped(form, live), grouped(form, applied)
    result: list[Any] = []
    for element in _interleave(list(mine), list(theirs)):
        if element not in theirs:
            result += mine[element]
        else:
            before = mine.get(element, [])
            old = before[0] if len(before) == 1 else MISSING
            result.append(merge(form.element, old, theirs[element][0]))
    return result


def _interleave(live: list[str], applied: list[str]) -> list[str]:
    """Applied elements keep the order of the apply; other live elements stay next to their neighbours."""
    wanted, known = set(applied), set(live)
    shared = iter([element for element in applied if element in known])
    upcoming = next(shared, None)
    result: list[str] = []
    taken = 0
    for element in live:
        if element not in wanted:
            result.append(element)
        elif element == upcoming:
            end = applied.index(element, taken) + 1
            result += applied[taken:end]
            taken = end
            upcoming = next(shared, None)
    return result + applied[taken:]


def remove(atom: Atom, value: Any, fields: FieldSet) -> Any:
    """The value without these fields. A container that becomes empty becomes null."""
    form = form_of(atom, value)
    if isinstance(form, MapAtom) and isinstance(value, Mapping):
        return None if form.atomic or not value else _remove_from_map(form, value, fields) or None
    if isinstance(form, ListAtom) and isinstance(value, list):
        return None if form.type == ATOMIC or not value else _remove_from_list(form, value, fields) or None
    return value


def _remove_from_map(form: MapAtom, value: Mapping[str, Any], fields: FieldSet) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, each in value.items():
        element = "f:" + key
        if not has(fields, element):
            rest = below(fields, element)
            result[key] = remove(form.at(key), each, rest) if rest else each
    return result


def _remove_from_list(form: ListAtom, items: list[Any], fields: FieldSet) -> list[Any]:
    result: list[Any] = []
    for item in items:
        try:
            element = element_of(form, item)
        except ElementError:
            result.append(item)  # nobody can own it, so nobody can remove it
            continue
        if not has(fields, element):
            rest = below(fields, element)
            result.append(remove(form.element, item, rest) if rest else item)
    return result


def with_containers(atom: Atom, fields: FieldSet) -> FieldSet:
    """The set, and in addition every struct field that contains one of its fields."""
    result: FieldSet = {}
    for element, node in fields.items():
        if element == ".":
            result[element] = node
            continue
        name = element[2:]
        known = element.startswith("f:") and atom.members is not None and name in atom.members.fields
        child = atom.at(name) if element.startswith("f:") else atom.element
        inner = with_containers(child, node)
        result[element] = {".": {}, **inner} if inner and known else inner
    return result
