"""Opaque configuration of claims and classes, decoded into the driver author's types.

In:  the configurations of an allocation that are for this driver and cover a device.
Out: per type one object, in which later fields win over earlier ones and those of the claim over those of the class;
     or every error, with its field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, get_origin, get_type_hints

import msgspec

from drakit.api import DeviceRequestAllocationResult, ResourceClaim, covers
from drakit.base.errors import InvalidObject
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required
from drakit.base.structs import Model

PRIVILEGED = msgspec.Meta(extra={"privileged": True})
"""Marks a field that only a DeviceClass may set: `power_limit: Annotated[int | None, PRIVILEGED] = None`."""

_PARAMETERS = Path("status") / "allocation" / "devices" / "config"
_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")


class DeviceConfig(Model, forbid_unknown_fields=True):
    """Base of an author's configuration. Fields are written in camelCase in claims and classes.

    `api_version` is `<group>/<version>`; `kind` is the name of the class unless said otherwise.
    """

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    @classmethod
    def type_name(cls) -> tuple[str, str]:
        return cls.api_version, cls.kind or cls.__name__


class _Layer(msgspec.Struct, frozen=True):
    """One configuration of the allocation that applies."""

    path: Path
    from_class: bool
    type_name: tuple[str, str]
    values: Mapping[str, Any]


def decode_configs(
    claim: ResourceClaim,
    result: DeviceRequestAllocationResult,
    types: Sequence[type[DeviceConfig]],
) -> tuple[DeviceConfig, ...]:
    """One object per type that is configured for the device. Raise InvalidObject with every error."""
    known = {each.type_name(): each for each in types}
    errors: list[FieldError] = []
    layers = list(_layers(claim, result, errors))
    errors.extend(_unknown_kinds(layers, known))
    found: list[DeviceConfig] = []
    for type_name, type_ in known.items():
        of_type = [layer for layer in layers if layer.type_name == type_name]
        # Checked on each layer, before merging: afterwards nobody can tell who set a field.
        errors.extend(_not_allowed(of_type, type_))
        if of_type:
            found.extend(_convert(of_type, type_, errors))
    if errors:
        raise InvalidObject("ResourceClaim", claim.metadata.name, errors)
    return tuple(found)


def _layers(claim: ResourceClaim, result: DeviceRequestAllocationResult, errors: list[FieldError]) -> Iterator[_Layer]:
    """What applies to the device, in order of precedence: the last one wins."""
    allocation = claim.status.allocation
    numbered = list(enumerate(allocation.devices.config if allocation else ()))
    # Classes come first in what a scheduler writes; nothing but this line makes sure of it.
    for index, config in sorted(numbered, key=lambda each: each[1].source != "FromClass"):
        opaque = config.opaque
        if opaque is None or opaque.driver != result.driver or not covers(config.requests, result.request):
            continue
        path = _PARAMETERS[index] / "opaque" / "parameters"
        if not isinstance(opaque.parameters, Mapping):
            errors.append(invalid(path, opaque.parameters, "must be an object"))
            continue
        values = dict(opaque.parameters)
        type_name = (str(values.pop("apiVersion", "")), str(values.pop("kind", "")))
        yield _Layer(path, config.source == "FromClass", type_name, values)


def _unknown_kinds(
    layers: Sequence[_Layer], known: Mapping[tuple[str, str], type[DeviceConfig]]
) -> Iterator[FieldError]:
    names = [f"{version} {kind}" for version, kind in known]
    for layer in layers:
        if layer.type_name not in known:
            version, kind = layer.type_name
            if not names:
                yield forbidden(layer.path, "this driver takes no configuration")
            elif not kind:
                yield required(layer.path / "kind", f"expected one of {', '.join(names)}")
            else:
                yield not_supported(layer.path / "kind", f"{version} {kind}".strip(), names)


def _not_allowed(layers: Sequence[_Layer], type_: type[DeviceConfig]) -> Iterator[FieldError]:
    for layer in layers:
        for name in () if layer.from_class else privileged_fields(type_) & layer.values.keys():
            yield forbidden(layer.path / name, "may only be set in a DeviceClass")


def _convert(layers: Sequence[_Layer], type_: type[DeviceConfig], errors: list[FieldError]) -> Iterator[DeviceConfig]:
    merged: Mapping[str, Any] = {}
    for layer in layers:
        merged = _merged(merged, layer.values)
    try:
        yield msgspec.convert(merged, type_)
    except msgspec.ValidationError as error:
        errors.append(_located(error, layers))


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged field by field; everything else is replaced, and null means: as if it had not been said."""
    result = dict(below)
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(result.get(name), Mapping):
            result[name] = _merged(result[name], value)
        else:
            result[name] = value
    return result


def _located(error: msgspec.ValidationError, layers: Sequence[_Layer]) -> FieldError:
    """The error at the field of the configuration that it came from: the last one that says something about it."""
    message = str(error)
    place = _PLACE.search(message)
    where = place.group(1) if place else ""
    detail = _PLACE.sub("", message)
    if (missing := _MISSING.search(detail)) is not None:
        return required(_at(layers[-1].path, where) / missing.group(1), "")
    unknown = _UNKNOWN.search(detail)
    if unknown is not None:
        where = ".".join(filter(None, (where, unknown.group(1))))
    first = re.split(r"[.\[]", where)[0]
    # The last layer that has the field is the one whose value counted.
    layer = next((each for each in reversed(layers) if first in each.values), layers[-1])
    if unknown is not None:
        return forbidden(_at(layer.path, where), "unknown field")
    return invalid(_at(layer.path, where), _value_at(layer.values, where), detail)


def _at(path: Path, where: str) -> Path:
    return path / where if where else path


def _value_at(values: Mapping[str, Any], where: str) -> Any:
    found: Any = values
    for part in filter(None, re.split(r"[.\[\]]", where)):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


@cache
def privileged_fields(type_: type[DeviceConfig]) -> frozenset[str]:
    """Fields of a configuration, by their names in claims, that only a class may set."""
    hints = get_type_hints(type_, include_extras=True)
    wire = dict(zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True))
    return frozenset(wire[name] for name in wire if _is_privileged(hints[name]))


def _is_privileged(hint: Any) -> bool:
    return get_origin(hint) is Annotated and PRIVILEGED in hint.__metadata__
