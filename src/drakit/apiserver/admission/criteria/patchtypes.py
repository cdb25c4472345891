"""The types that expressions of mutations construct: `Object`, `Object.spec`, ..., and `JSONPatch`.

In:  names of types; values of expressions.
Out: the fields of a type; plain data of a value, for patches.

The fields of an Object are those of whatever kind the policy meets, so any name and any value is allowed. What does not
fit the kind is found when the patch is applied.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.cel import (
    DYN,
    STRING,
    Duration,
    EvalError,
    Function,
    Message,
    Overload,
    Timestamp,
    Type,
    Uint,
    Value,
    list_of,
    struct,
    type_name,
)
from drakit.cel.library.times import format_duration, format_timestamp
from drakit.cel.values import keys

OBJECT = struct("Object")
JSON_PATCH = struct("JSONPatch")
JSON_PATCHES = list_of(JSON_PATCH)
_PATCH_FIELDS: Mapping[str, Type] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class _AnyField(Mapping[str, Type]):
    """Every name is a field."""

    def __getitem__(self, name: str) -> Type:
        return DYN

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY_FIELD = _AnyField()


def patch_types(name: str) -> Mapping[str, Type] | None:
    if name == JSON_PATCH.name:
        return _PATCH_FIELDS
    return _ANY_FIELD if name == OBJECT.name or name.startswith(f"{OBJECT.name}.") else None


def _escaped(key: Value) -> Value:
    """A key as a segment of a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


FUNCTIONS = (
    Function(
        "jsonpatch.escapeKey",
        (Overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped, raises=False),),
    ),
)


class NotPlain(ValueError):
    """A value that JSON has no form for, or an object of a type that does not belong where it stands."""


def misplaced(value: Value, path: str) -> Iterator[str]:
    """Objects whose type does not name the place where they stand. Lists and maps on the way have no names."""
    if isinstance(value, Message):
        if value.type_name != path:
            what = f'unexpected type name "{value.type_name}", expected "{path}"'
            yield f"{what}, which matches field name path from root Object type"
        for name, each in value.items():
            yield from misplaced(each, f"{path}.{name}")
    elif isinstance(value, tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from misplaced(each, path)


def plain_value(value: Value) -> Any:
    """The JSON of a value. Raise NotPlain if it has none."""
    match value:
        case EvalError():
            raise NotPlain(value.message)
        case dict():
            return {_key(key): plain_value(each) for key, each in zip(keys(value), value.values(), strict=True)}
        case tuple():
            return [plain_value(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return format_timestamp(value) if isinstance(value, Timestamp) else format_duration(value)
        case Uint():
            return int(value)
        case float() if value.is_integer():
            return int(value)
        case None | bool() | int() | float() | str():
            return value
    raise NotPlain(f"a value of type {type_name(value)} has no JSON form")


def typed_parts(value: Value, path: str) -> Iterator[tuple[str, str]]:
    """Bytes and times, with what is wrong: a JSON patch writes them as text, a configuration may not have them."""
    match value:
        case dict():
            for key, each in zip(keys(value), value.values(), strict=True):
                yield from typed_parts(each, f"{path}.{key}")
        case tuple():
            for index, each in enumerate(value):
                yield from typed_parts(each, f"{path}[{index}]")
        case bytes() | Timestamp() | Duration():
            yield path, f"{type_name(value)} has no form in JSON"


def _key(key: Value) -> str:
    if not isinstance(key, str):
        raise NotPlain(f"map key {key} is of type {type_name(key)}, not string")
    return key
