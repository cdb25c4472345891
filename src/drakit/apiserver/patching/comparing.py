"""Compare objects, as field sets.

In:  an atom (see `atoms`), and one or two plain values.
Out: `compare` gives the fields added, modified and removed; `taken_by` those added or modified; `fields_of` those that
     an applied object sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, Final, NamedTuple

from drakit.apiserver.patching.atoms import ATOMIC, Atom, ListAtom, MapAtom
from drakit.apiserver.patching.elements import ElementError, element_of, grouped
from drakit.apiserver.patching.fieldsets import SELF, FieldSet, insert, render, union


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""No value. Not the same as null."""


_CONTAINERS = (dict, list)
_LEAF: FieldSet = {}
# To this depth equal parts are passed over by one `==`. It compares all levels below: on every level of a deep object
# that would add up to quadratic time.
_COMPARED_WHOLE = 8


class Comparison(NamedTuple):
    """How a new object differs from an old one."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return union(self.added, self.modified)

    def within(self, reach: Callable[[FieldSet], FieldSet]) -> Comparison:
        """The comparison without fields that the write cannot reach."""
        return Comparison(*(reach(fields) if fields else fields for fields in self))


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
    walker = _Comparing()
    walker.visit(atom, old, new, ())
    return Comparison(walker.added, walker.modified, walker.removed)


class _Comparing:
    def __init__(self) -> None:
        self.added: FieldSet = {}
        self.modified: FieldSet = {}
        self.removed: FieldSet = {}

    def visit(self, atom: Atom, old: Any, new: Any, path: tuple[str, ...]) -> None:
        if old is MISSING:
            insert(self.added, path, everything_in(atom, new))
            return
        # Identity first: a write shares with the stored object what it does not change.
        if old is new or (len(path) < _COMPARED_WHOLE and new is not MISSING and old == new):
            return
        members = atom.members
        if type(old) is dict and type(new) is dict and members is not None and not members.atomic:
            self._maps(members, old, new, path)
            return
        before, after = form_of(atom, old), form_of(atom, new)
        if new is MISSING or old is None or new is None or before is after:
            form = before if new is MISSING or new is None else after
            self._differ(form, old, new, path)
            return
        # Raw JSON that was a map and is now a list, or the like: the old value is removed, the new one added.
        self._differ(before, old, MISSING, path)
        insert(self.added, path, everything_in(atom, new))

    def _differ(self, form: MapAtom | ListAtom | None, old: Any, new: Any, path: tuple[str, ...]) -> None:
        leaf = form is None or not (_filled(old) or _filled(new)) or _atomic(form)
        if not leaf:
            if isinstance(form, MapAtom):
                self._maps(form, old, new, path)
            elif form is not None:
                self._lists(form, old, new, path)
        if not path:
            return  # the root is no field
        if new is MISSING:
            insert(self.removed, path)
        elif leaf and old != new:
            insert(self.modified, path)

    def _maps(self, form: MapAtom, old: Any, new: Any, path: tuple[str, ...]) -> None:
        one = old if isinstance(old, dict) else {}
        two = new if isinstance(new, dict) else {}
        for key, after in two.items():
            before = one.get(key, MISSING)
            # Most fields are shared with the stored object, or equal texts.
            if before is after or (type(after) is str and before == after):
                continue
            self.visit(form.at(key), before, after, (*path, "f:" + key))
        for key in one.keys() - two.keys():
            self.visit(form.at(key), one[key], MISSING, (*path, "f:" + key))

    def _lists(self, form: ListAtom, old: Any, new: Any, path: tuple[str, ...]) -> None:
        one = grouped(form, old) if isinstance(old, list) else {}
        two = grouped(form, new) if isinstance(new, list) else {}
        for element in one | two:
            before, after = one.get(element, []), two.get(element, [])
            here = (*path, element)
            if len(before) <= 1 and len(after) <= 1:
                self.visit(form.element, before[0] if before else MISSING, after[0] if after else MISSING, here)
            else:
                self._repeated(before, after, here)

    def _repeated(self, before: list[Any], after: list[Any], here: tuple[str, ...]) -> None:
        """Elements with the same key cannot be told apart: together they are one field."""
        if not before:
            insert(self.added, here)
        elif not after:
            insert(self.removed, here)
        elif before != after:
            insert(self.modified, here)


def taken_by(atom: Atom, old: Any, new: Any, depth: int = 0) -> FieldSet | None:
    """The fields that are added or modified, as the node of this field; None if there are none.

    The same as `compare(…).changed`, but without the removed fields: a new object has no other owners to take from.
    """
    if old is MISSING:
        return everything_in(atom, new)
    if old is new or (depth < _COMPARED_WHOLE and old == new):
        return None
    before, after = form_of(atom, old), form_of(atom, new)
    # A field of several forms (int-or-string) that changes its form is new as a whole.
    if old is not None and new is not None and before is not after:
        return everything_in(atom, new)
    form = before if new is None else after
    if form is None or not (_filled(old) or _filled(new)) or _atomic(form):
        return {} if old != new else None
    if isinstance(form, MapAtom):
        return _taken_in_map(form, old, new, depth) or None
    return _taken_in_list(form, old, new, depth) or None


def _taken_in_map(form: MapAtom, old: Any, new: Any, depth: int) -> FieldSet:
    one = old if isinstance(old, dict) else {}
    two = new if isinstance(new, dict) else {}
    node = _added_fields(form, two, two.keys() - one.keys())
    for key in two.keys() & one.keys():
        before, after = one[key], two[key]
        if before is after:
            continue
        taken = taken_by(form.at(key), before, after, depth + 1)
        if taken is not None:
            node["f:" + key] = taken
    return node


def _added_fields(form: MapAtom, value: dict[str, Any], keys: Collection[str]) -> FieldSet:
    """The nodes of added fields, with all that they hold."""
    inner = form.inner(keys)
    node: FieldSet = {}
    for key in keys:
        node["f:" + key] = everything_in(form.at(key), value[key]) if key in inner else _LEAF
    return node


def _taken_in_list(form: ListAtom, old: Any, new: Any, depth: int) -> FieldSet:
    one = grouped(form, old) if isinstance(old, list) else {}
    node: FieldSet = {}
    for element, after in (grouped(form, new) if isinstance(new, list) else {}).items():
        before = one.get(element, [])
        if len(before) <= 1 and len(after) == 1:
            taken = taken_by(form.element, before[0] if before else MISSING, after[0], depth + 1)
        else:
            taken = {} if before != after else None
        if taken is not None:
            node[element] = taken
    return node


def everything_in(atom: Atom, value: Any) -> FieldSet:
    """The node of an added field, with all that it holds."""
    if not value:
        return {}
    if isinstance(value, dict) and (members := atom.members) is not None:
        return {} if members.atomic else {SELF: {}, **_added_fields(members, value, value)}
    if isinstance(value, list) and (items := atom.items) is not None and items.type != ATOMIC:
        node: FieldSet = {SELF: {}}
        for element, same in grouped(items, value).items():
            node[element] = everything_in(items.element, same[0]) if len(same) == 1 else {}
        return node if len(node) > 1 else {}
    return {}


def _filled(value: Any) -> bool:
    return bool(value) and isinstance(value, _CONTAINERS)


def _atomic(form: MapAtom | ListAtom) -> bool:
    return form.atomic if isinstance(form, MapAtom) else form.type == ATOMIC


def fields_of(atom: Atom, value: Any) -> FieldSet:
    """The fields that an applied object sets: leaves, list elements, keys of maps, and empty or null values."""
    result: FieldSet = {}
    _collect(atom, value, (), result)
    return result


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
