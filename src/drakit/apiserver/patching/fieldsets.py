"""Sets of fields in the form that `managedFields` has on the wire (FieldsV1).

A set is a tree of dicts. A key is a path element: `f:spec` a field, `k:{"uid":"u0"}` a list element by its keys,
`v:"a"` an element of a set by its value. A field is in the set when its dict is empty or has the key `.`; the other
keys lead to the fields below it. Working on this form saves a translation on every write.

Invariant: no function changes its arguments; parts of sets are shared. A node without a field in or below it is not
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from drakit.base.fields import quote

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
    return result


def insert(target: FieldSet, path: Elements, node: FieldSet = _LEAF) -> None:
    """Add one field to a set that is still being built: the one function that changes its argument.

    `node` is the field with what it holds, for one of which nothing is in the set yet.
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
    """Whether the field right below the root is in the set."""
    node = fields.get(element)
    return node is not None and (not node or SELF in node)


def below(fields: FieldSet, element: str) -> FieldSet:
    """The fields under an element, without the element itself."""
    node: FieldSet = fields.get(element) or {}
    return {key: each for key, each in node.items() if key != SELF} if SELF in node else node


def union(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one or not two:
        return one or two
    result = dict(one)
    for key, node in two.items():
        mine = result.get(key)
        result[key] = node if mine is None else mine if mine is node else _unite(mine, node)
    return result


def _unite(one: FieldSet, two: FieldSet) -> FieldSet:
    together = union(one or _ALONE, two or _ALONE)
    return _LEAF if len(together) == 1 and SELF in together else together


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """The fields of one that are not in two. Fields below one that goes stay."""
    result: FieldSet = {}
    for key, node in one.items():
        other = two.get(key)
        if other is None:
            result[key] = node
        elif key != SELF:
            rest = difference(node or _ALONE, other or _ALONE)
            if rest:
                result[key] = _LEAF if len(rest) == 1 and SELF in rest else rest
    return result


def without(one: FieldSet, two: FieldSet) -> FieldSet:
    """The fields of one that are neither in two nor below a field of two."""
    result: FieldSet = {}
    for key, node in one.items():
        other = two.get(key)
        if other is None:
            result[key] = node
        elif other and SELF not in other:
            rest = without(node or _ALONE, other)
            if rest:
                result[key] = _LEAF if len(rest) == 1 and SELF in rest else rest
    return result


def within(one: FieldSet, two: FieldSet) -> FieldSet:
    """The fields of one that are in two or below a field of two; in two, `*` stands for any element."""
    result: FieldSet = {}
    for key, node in one.items():
        other = two.get(key, two.get(ANY))
        if other is None or key == SELF:
            continue
        rest = node if not other or SELF in other else within(node, other)
        if rest or not other or SELF in other:
            result[key] = rest
    return result


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, node in one.items():
        other = two.get(key)
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
    """Every field, in order; of one level first the fields in the set, then what lies below."""
    ordered = sorted(key for key in fields if key != SELF)
    for key in ordered:
        if has(fields, key):
            yield (*prefix, key)
    for key in ordered:
        yield from paths(below(fields, key), (*prefix, key))


def in_order(fields: FieldSet) -> FieldSet:
    """The same set with sorted keys, so that equal sets have equal bytes."""
    result: FieldSet = {}
    for key in sorted(fields):
        below = fields[key]
        result[key] = in_order(below) if below else _LEAF
    return result


def normalized(data: Any) -> FieldSet:
    """A set that a client sent; ValueError when it is none. Elements of kinds that are not known are passed over."""
    if not isinstance(data, dict):
        raise ValueError("fieldsV1 is no object")
    result: FieldSet = {}
    for key, each in data.items():
        element = key if key == SELF else _normalized_element(key)
        if element:
            result[element] = {} if element == SELF else normalized(each)
    return result


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
        return key_element(tuple(value.items()))
    return value_element(value)


def key_element(keys: tuple[tuple[str, Any], ...]) -> str:
    """The element of a keyed list whose key fields have these values."""
    return "k:" + msgspec.json.encode(dict(sorted(keys))).decode()


def value_element(value: Any) -> str:
    return "v:" + msgspec.json.encode(value).decode()


@lru_cache(maxsize=4096)
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
