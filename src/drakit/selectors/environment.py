"""The variable `device` as expressions see it: its type, the bounds of its parts, and what the gates add.

In:  which gates are on.
Out: a CEL Environment and the sizes that the cost estimate needs.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from drakit.cel import (
    ANY,
    BOOL,
    DYN,
    QUANTITY,
    STRING,
    Environment,
    EvalError,
    Function,
    Overload,
    Size,
    Type,
    Value,
    kubernetes,
    map_of,
    matches,
    struct,
)

MAX_LENGTH = 10 * 1024
COST_LIMIT = 1_000_000
MAX_LIST = 48  # values of one list attribute

_DEVICE = struct("kubernetes.DRADevice")
_MAX_DOMAIN, _MAX_ID, _MAX_DRIVER, _MAX_VALUE, _MAX_ENTRIES = 63, 32, 63, 64, 32


class Gates(NamedTuple):
    """What feature gates make of the environment."""

    list_attributes: bool = False
    consumable_capacity: bool = True


@cache
def environment(gates: Gates) -> Environment:
    """The environment of device selectors under these gates."""
    attribute = DYN if gates.list_attributes else ANY
    fields: dict[str, Type] = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if gates.consumable_capacity:
        fields["allowMultipleAllocations"] = BOOL
    includes_function = Function("includes", (Overload(_INCLUDES, (DYN, DYN), BOOL, includes, member=True),))
    return kubernetes().extended(
        variables={"device": _DEVICE},
        structs={_DEVICE.name: fields},
        functions=(includes_function,) if gates.list_attributes else (),
        call_costs={_INCLUDES: MAX_LIST},
        total=frozenset({(_DEVICE.name, "attributes"), (_DEVICE.name, "capacity")}),
    )


_INCLUDES = "dra_includes_dyn_dyn"


def includes(target: Value, wanted: Value) -> bool:
    """Whether a list has a value, or a single value is it."""
    if target.__class__ is not tuple:
        return matches(target, wanted)
    for index, value in enumerate(target):
        if index >= MAX_LIST:
            raise EvalError(f"'includes' function cannot be applied to lists longer than {MAX_LIST} values")
        if matches(value, wanted):
            return True
    return False


def size_of(path: tuple[str, ...]) -> Size | None:
    """The bounds of a part of the device: `device.attributes`, its `@keys`, the `@values` of those, and so on."""
    match path:
        case ("device",):
            return Size(0, 0)
        case ("device", "driver"):
            return Size(0, _MAX_DRIVER)
        case ("device", "allowMultipleAllocations"):
            return Size(0, 1)
        case ("device", "attributes" | "capacity", *rest):
            return _size_in_maps(path[1], rest)
    return None


def _size_in_maps(name: str, rest: list[str]) -> Size | None:
    match rest:
        case [] | ["@values"] | ["@items"]:
            return Size(0, _MAX_ENTRIES)
        case ["@keys"]:
            return Size(0, _MAX_DOMAIN)
        case ["@values" | "@items", "@keys"]:
            return Size(0, _MAX_ID)
        case ["@values" | "@items", last]:
            if name == "attributes":
                return Size(0, _MAX_VALUE)
            return Size(0, 0) if last in {"@values", "@items"} else None
    return None
