"""Values inside error texts, spelled as Kubernetes spells them.

In:  a struct, or something made of structs.
Out: plain data with the names that the server's own types have (`DeviceClassName`), nothing left out, no list as null.
     Metadata and conditions keep the names of the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def as_go(value: Any) -> Any:
    """Plain data for an error text."""
    if isinstance(value, Model):
        return _struct(value)
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, tuple | list):
        return [as_go(item) for item in value] or None
    if isinstance(value, Mapping):
        return {key: as_go(inner) for key, inner in sorted(value.items())} or None
    return value


def _struct(value: Model) -> Any:
    if isinstance(value, _WIRE_TYPES):
        return to_plain(value)
    if isinstance(value, OpaqueDeviceConfiguration):
        return {"Driver": value.driver, "Parameters": value.parameters}
    if isinstance(value, ResourceClaimTemplateSpec):
        return {**to_plain(value.metadata), "Spec": as_go(value.spec)}
    return {shown: as_go(getattr(value, name)) for name, shown in _fields(type(value))}


@cache
def _fields(model: type[Model]) -> tuple[tuple[str, str], ...]:
    special = _ATTRIBUTE_NAMES if model is DeviceAttribute else _NAMES
    return tuple(
        (field, special.get(field) or "".join(part.title() for part in field.split("_")))
        for field in model.__struct_fields__
    )


def set_fields(names: list[str]) -> str:
    """The fields of a choice that are set, as one value: {`a`, `b`}."""
    return "{" + ", ".join(f"`{name}`" for name in names) + "}"
