"""Sets of fields in the form that `managedFields` has on the wire (FieldsV1).

A set is a tree of dicts. A key is a path element: `f:spec` a field, `k:{"uid":"u0"}` a list element by its keys,
`v:"a"` an element of a set by its value. A field is in the set when its dict is empty or has the key `.`; the other
keys lead to the fields below it. Working on this form saves a translation on every write.

Invariant: no function but `insert` changes its arguments; sets share parts. A node has a field in it or below it. Keys
are sorted, so that equal sets encode to equal bytes; only a set that `insert` builds has to be put `in_order`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from drakit.base.fields import quote
from drakit.base.memo import remember_short

FieldSet = dict[str, Any]
Elements = tuple[str, ...]

SELF = "."
ANY = "*"
_LEAF: FieldSet = {}
_ALONE: FieldSet = {SELF: {}}


def field(name: str) -> str:
    return "f:" + name


def set_of(paths: Iterable[Elements]) -> FieldSet:
    """The set of exactly these fields."""
    result: FieldSet = {}
    for path in paths:
        insert(result, path)
    return in_order(result)


def insert(target: FieldSet, path: Elements, node: FieldSet = _LEAF) -> None:
    """Add one field to a set that is being built. Changes its argument.

    `node` is the field with what it holds; nothing of the field may be in the set yet.
    """
    place = target
    for element in path[:-1]:
        below = place.get(element)
        if below is None:
            below = place[element] = {}
        elif not below:
            below = place[element] = {SELF: {}}
        place = below
    last = place.get(path[-1])
    if last is None:
        place[path[-1]] = node or {}
    elif last:
        last[SELF] = {}


def has(fields: FieldSet, element: str) -> bool:
    """Whether a field of the top level is in the set."""
    node = fields.get(element)
    return node is not None and (not node or SELF in node)


def below(fields: FieldSet, element: str) -> FieldSet:
    """The fields below an element, without the element itself."""
    node: FieldSet = fields.get(element) or {}
    return {key: each for key, each in node.items() if key != SELF} if SELF in node else node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Fields of either set."""
    if not left or not right:
        return left or right
    result = dict(left)
    for key, node in right.items():
        mine = result.get(key)
        result[key] = node if mine is None else mine if mine is node else _unite(mine, node)
    return {key: result[key] for key in sorted(result)} if len(result) > len(left) else result


def _unite(left: FieldSet, right: FieldSet) -> FieldSet:
    # An empty node is the field itself. It is written out here, or it would be lost beside fields below it.
    together = union(left or _ALONE, right or _ALONE)
    return _LEAF if len(together) == 1 and SELF in together else together


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Fields of `left` that `right` does not have. Fields below a removed field stay."""
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            result[key] = node
        elif key != SELF:
            rest = difference(node or _ALONE, other or _ALONE)
            if rest:
                result[key] = _LEAF if len(rest) == 1 and SELF in rest else rest
    return result


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Fields of `left` that are neither in `right` nor below a field of `right`."""
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            result[key] = node
        elif other and SELF not in other:
            rest = without(node or _ALONE, other)
            if rest:
                result[key] = _LEAF if len(rest) == 1 and SELF in rest else rest
    return result


def within(left: FieldSet, right: FieldSet) -> FieldSet:
    """Fields of `left` that are in `right` or below a field of `right`. In `right`, `*` stands for any element."""
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key, right.get(ANY))
        if other is None or key == SELF:
            continue
        rest = node if not other or SELF in other else within(node, other)
        if rest or not other or SELF in other:
            result[key] = rest
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Fields of `left` that `right` has as well."""
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            continue
        if key == SELF:
            result[key] = node
            continue
        both = intersection(node or _ALONE, other or _ALONE)
        if both:
            result[key] = _LEAF if len(both) == 1 and SELF in both else both
    return result


def paths(fields: FieldSet, prefix: Elements = ()) -> Iterator[Elements]:
    """Every field, sorted. Of each level first the fields themselves, then the fields below them: as upstream."""
    ordered = sorted(key for key in fields if key != SELF)
    for key in ordered:
        if has(fields, key):
            yield (*prefix, key)
    for key in ordered:
        yield from paths(below(fields, key), (*prefix, key))


def in_order(fields: FieldSet) -> FieldSet:
    """The set with sorted keys."""
    result: FieldSet = {}
    for key in sorted(fields):
        below = fields[key]
        result[key] = in_order(below) if below else _LEAF
    return result


def normalized(data: Any) -> FieldSet:
    """A set that a client sent; ValueError if it is malformed. Path elements of unknown types are dropped."""
    if not isinstance(data, dict):
        raise ValueError("fieldsV1 is no object")
    result: FieldSet = {}
    for key, each in data.items():
        element = key if key == SELF else _normalized_element(key)
        if element:
            result[element] = {} if element == SELF else normalized(each)
    return {element: result[element] for element in sorted(result)}


def _normalized_element(text: str) -> str:
    if len(text) < 2 or text[1] != ":":
        raise ValueError(f"no path element: {text!r}")
    if text[0] == "f":
        return text
    if text[0] not in "kv":
        return ""
    value = json.loads(text[2:])
    if text[0] == "k":
        if not isinstance(value, dict):
            raise ValueError(f"no key of a list element: {text!r}")
        return key_element({key: value[key] for key in sorted(value)})
    return value_element(value)


def key_element(keys: dict[str, Any]) -> str:
    """The element of a keyed list whose key fields, which are sorted, have these values."""
    return "k:" + msgspec.json.encode(keys).decode()


def value_element(value: Any) -> str:
    return "v:" + msgspec.json.encode(value).decode()


@remember_short(4096)
def _rendered(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return "." + text
    if kind == "v":
        return f"[={_literal(json.loads(text))}]"
    return "[" + ",".join(f"{name}={_literal(value)}" for name, value in json.loads(text).items()) + "]"


def _literal(value: Any) -> str:
    return quote(value) if isinstance(value, str) else json.dumps(value)


def render(path: Elements) -> str:
    """`.status.reservedFor[uid="u0"].name`."""
    return "".join(map(_rendered, path))
