"""Values inside error texts, spelled as Kubernetes spells them.

In:  a struct, or something made of structs.
Out: plain data with the names that the server's own types have (`DeviceClassName`), nothing left out, no list as null.
     Metadata and conditions keep the names of the wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from typing import Any

from drakit.api import (
    Condition,
    DeviceAttribute,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    OwnerReference,
    ResourceClaimTemplateSpec,
    to_plain,
)
from drakit.base.quantity import Quantity
from drakit.base.structs import Model

_WIRE_TYPES = (Condition, ObjectMeta, OwnerReference)
_NAMES = {"cel": "CEL", "share_id": "ShareID", "uid": "UID", "ips": "IPs", "api_group": "APIGroup"}
_ATTRIBUTE_NAMES = {
    "int_": "IntValue",
    "bool_": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
}


def as_go(value: Any, path: str = "", empty: Set[str] = frozenset()) -> Any:
    """Plain data for an error text. `empty` are the paths at which a client sent `[]`: these are no nulls."""
    if isinstance(value, Model):
        return _struct(value, path, empty)
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, tuple | list):
        items = [as_go(item, f"{path}[{index}]", empty) for index, item in enumerate(value)]
        return items or ([] if path in empty else None)
    if isinstance(value, Mapping):
        return {key: as_go(inner, f"{path}.{key}", empty) for key, inner in sorted(value.items())} or None
    return value


def _struct(value: Model, path: str, empty: Set[str]) -> Any:
    if isinstance(value, _WIRE_TYPES):
        return to_plain(value)
    if isinstance(value, OpaqueDeviceConfiguration):
        return {"Driver": value.driver, "Parameters": value.parameters}
    if isinstance(value, ResourceClaimTemplateSpec):
        return {**to_plain(value.metadata), "Spec": as_go(value.spec, f"{path}.spec", empty)}
    return {shown: as_go(getattr(value, name), f"{path}.{sent}", empty) for name, sent, shown in _fields(type(value))}


@cache
def _fields(model: type[Model]) -> tuple[tuple[str, str, str], ...]:
    """The name in Python, the one of the wire, and Go's."""
    special = _ATTRIBUTE_NAMES if model is DeviceAttribute else _NAMES
    return tuple(
        (field, sent, special.get(field) or "".join(part.title() for part in field.split("_")))
        for field, sent in zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True)
    )


def set_fields(names: list[str]) -> str:
    """The fields of a choice that are set, as one value: {`a`, `b`}."""
    return "{" + ", ".join(f"`{name}`" for name in names) + "}"
