"""Compare objects, as field sets.

In:  an atom (see `atoms`), and one or two plain values.
Out: `compare` gives the fields that were changed and removed; `everything_in` those of an added value; `fields_of`
     those that an applied object sets.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from drakit.apiserver.patching.atoms import ATOMIC, Atom, ListAtom, MapAtom
from drakit.apiserver.patching.elements import ElementError, element_of, grouped
from drakit.apiserver.patching.fieldsets import SELF, FieldSet, in_order, insert, render


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""No value. Not the same as null."""


_CONTAINERS = (dict, list)
_LEAF: FieldSet = {}
C = TypeVar("C", dict[str, Any], list[Any])
# To this depth equal parts are passed over by one `==`. It compares all levels below: on every level of a deep object
# that would add up to quadratic time.
_COMPARED_WHOLE = 8


class Comparison(NamedTuple):
    """How a new object differs from an old one: fields that were added or modified, and fields that were removed."""

    changed: FieldSet
    removed: FieldSet


def form_of(atom: Atom, value: Any) -> MapAtom | ListAtom | None:
    """The form of a value: map, list, or None for a scalar. A value that does not fit gets the form of the schema."""
    if atom.members is not None and isinstance(value, dict):
        return atom.members
    if isinstance(value, list) and atom.items is not None:
        return atom.items
    if atom.scalar and value is not MISSING and value is not None:
        return None
    return atom.members if atom.members is not None else None if atom.scalar else atom.items


def compare(atom: Atom, old: Any, new: Any) -> Comparison:
    """Every field that differs. A container that is added or removed counts as a field, with all that it holds."""
    changed, removed = _compare(atom, old, new, 0)
    return Comparison(changed or {}, removed or {})


_Nodes = tuple[FieldSet | None, FieldSet | None]
"""The nodes of a field in the sets of changed and of removed fields; None in a set that has nothing of the field."""
_SAME: _Nodes = (None, None)


def _compare(atom: Atom, old: Any, new: Any, depth: int) -> _Nodes:
    if old is MISSING:
        return everything_in(atom, new), None
    if new is MISSING:
        return None, everything_in(atom, old)
    # Identity first: a write shares with the stored object what it does not change.
    if old is new or (depth < _COMPARED_WHOLE and old == new):
        return _SAME
    members = atom.members
    if type(old) is dict and type(new) is dict and members is not None and not members.atomic:
        return _compare_maps(members, old, new, depth)
    before, after = form_of(atom, old), form_of(atom, new)
    # Raw JSON that was a map and is now a list, or the like: the old value is removed, the new one added.
    if old is not None and new is not None and before is not after:
        return everything_in(atom, new), everything_in(atom, old)
    form = before if new is None else after
    if form is None or not (_filled(old) or _filled(new)) or _atomic(form):
        return (_LEAF, None) if old != new else _SAME
    if isinstance(form, MapAtom):
        return _compare_maps(form, _if_a(dict, old), _if_a(dict, new), depth)
    return _compare_lists(form, grouped(form, _if_a(list, old)), grouped(form, _if_a(list, new)), depth)


def _if_a(kind: type[C], value: Any) -> C:
    """The value; an empty one if it is of another kind."""
    return value if isinstance(value, kind) else kind()


def _compare_maps(form: MapAtom, old: dict[str, Any], new: dict[str, Any], depth: int) -> _Nodes:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for key, after in new.items():
        before = old.get(key, MISSING)
        if before is after:  # as most are: a write shares with the stored object what it does not change
            continue
        if not isinstance(before, _CONTAINERS) and not isinstance(after, _CONTAINERS):
            if before != after:
                changed["f:" + key] = _LEAF
            continue
        node, gone = _compare(form.at(key), before, after, depth + 1)
        if node is not None:
            changed["f:" + key] = node
        if gone is not None:
            removed["f:" + key] = gone
    for key in old.keys() - new.keys():
        removed["f:" + key] = everything_in(form.at(key), old[key])
    return _nodes(changed, removed)


def _compare_lists(form: ListAtom, old: dict[str, list[Any]], new: dict[str, list[Any]], depth: int) -> _Nodes:
    """Elements with the same key cannot be told apart: together they are one field."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    for element, after in new.items():
        before = old.get(element, [])
        if len(before) <= 1 and len(after) == 1:
            node, gone = _compare(form.element, before[0] if before else MISSING, after[0], depth + 1)
            if node is not None:
                changed[element] = node
            if gone is not None:
                removed[element] = gone
        elif before != after:
            changed[element] = _LEAF
    for element in old.keys() - new.keys():
        lost = old[element]
        removed[element] = everything_in(form.element, lost[0]) if len(lost) == 1 else _LEAF
    return _nodes(changed, removed)


def _nodes(changed: FieldSet, removed: FieldSet) -> _Nodes:
    """Both sets with sorted keys."""
    if len(changed) > 1:
        changed = {key: changed[key] for key in sorted(changed)}
    if len(removed) > 1:
        removed = {key: removed[key] for key in sorted(removed)}
    return changed or None, removed or None


def everything_in(atom: Atom, value: Any) -> FieldSet:
    """The node of an added or removed field, with all that it holds."""
    if not value:
        return _LEAF
    if isinstance(value, dict) and (members := atom.members) is not None:
        if members.atomic:
            return _LEAF
        node: FieldSet = {SELF: _LEAF}
        for key in sorted(value):
            each = value[key]
            node["f:" + key] = everything_in(members.at(key), each) if isinstance(each, _CONTAINERS) else _LEAF
        return node
    if isinstance(value, list) and (items := atom.items) is not None and items.type != ATOMIC:
        node = {SELF: _LEAF}
        groups = grouped(items, value)
        for element in sorted(groups):
            same = groups[element]
            node[element] = everything_in(items.element, same[0]) if len(same) == 1 else _LEAF
        return node if groups else _LEAF
    return _LEAF


def _filled(value: Any) -> bool:
    return bool(value) and isinstance(value, _CONTAINERS)


def _atomic(form: MapAtom | ListAtom) -> bool:
    return form.atomic if isinstance(form, MapAtom) else form.type == ATOMIC


def fields_of(atom: Atom, value: Any) -> FieldSet:
    """The fields that an applied object sets: leaves, list elements, keys of maps, and empty or null values."""
    result: FieldSet = {}
    _collect(atom, value, (), result)
    return in_order(result)


def _collect(atom: Atom, value: Any, path: tuple[str, ...], result: FieldSet) -> None:
    form = form_of(atom, value)
    if form is None or _atomic(form):
        insert(result, path)
    elif isinstance(form, MapAtom) and isinstance(value, dict):
        for key, each in value.items():
            here = (*path, "f:" + key)
            _collect(form.at(key), each, here, result)
            # Keys of a map are fields themselves; a field of a struct only if there is nothing below it.
            if each is None or each == {} or key not in form.fields:
                insert(result, here)
    elif isinstance(form, ListAtom) and isinstance(value, list):
        for element, items in grouped(form, value).items():
            here = (*path, element)
            if len(items) == 1:
                _collect(form.element, items[0], here, result)
            insert(result, here)


def problems_of(atom: Atom, value: Any) -> list[tuple[str, str]]:
    """Where an applied object does not fit its schema: paths, with Kubernetes' messages."""
    found: list[tuple[str, str]] = []
    _check(atom, value, "", found)
    return found


def _check(atom: Atom, value: Any, path: str, found: list[tuple[str, str]]) -> None:
    form = form_of(atom, value)
    if value is None:
        return
    if form is None:
        if problem := _scalar_problem(atom.scalar, value):
            found.append((path, problem))
    elif isinstance(form, MapAtom):
        _check_map(form, value, path, found)
    else:
        _check_list(form, value, path, found)


def _check_map(form: MapAtom, value: Any, path: str, found: list[tuple[str, str]]) -> None:
    if not isinstance(value, dict):
        found.append((path, f"expected map, got {value!r}"))
        return
    for key, each in value.items():
        if key not in form.fields and form.element is None:
            found.append((f"{path}.{key}", "field not declared in schema"))
        else:
            _check(form.at(key), each, f"{path}.{key}", found)


def _check_list(form: ListAtom, value: Any, path: str, found: list[tuple[str, str]]) -> None:
    if not isinstance(value, list):
        found.append((path, f"expected list, got {value!r}"))
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        if form.type != ATOMIC:
            try:
                element = element_of(form, item)
            except ElementError as error:
                found.append((path, f"element {index}: {error}"))
                continue
            if element in seen:
                found.append((path, f"duplicate entries for key {render((element,))}"))
            seen.add(element)
        _check(form.element, item, f"{path}[{index}]", found)


def _scalar_problem(wanted: str, value: Any) -> str:
    if isinstance(value, _CONTAINERS):
        return f"expected {'any scalar' if wanted == 'untyped' else wanted}, got {value!r}"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": number,
        "number": number,
        "untyped": True,
    }[wanted]
    return "" if fits else f"expected {wanted}, got {value!r}"
