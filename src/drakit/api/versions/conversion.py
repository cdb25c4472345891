"""Between the served versions of a kind and the internal form, on plain data.

v1 is the internal form. v1beta2 has the same structure. v1beta1 writes an exact request flat into the request and a
device's content under `basic`. DeviceTaintRule and ResourcePoolStatusRequest have one structure in all their versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drakit.api.objects.plain import Plain
from drakit.api.versions.autoscalers import autoscaler_from_v1, autoscaler_to_v1

_FLAT = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_POINTERS = ("adminAccess", "capacity")
_PLACES = ("nodeName", "allNodes")


def to_internal(group_version: str, kind: str, data: Plain) -> Plain:
    """Convert an object to the internal form, except for `apiVersion`. `data` is not changed."""
    convert = _TO_INTERNAL.get((group_version, kind))
    return convert(data) if convert else data


def from_internal(group_version: str, kind: str, data: Plain) -> Plain:
    """Convert an object of the internal form to a version, except for `apiVersion`. `data` is not changed."""
    convert = _FROM_INTERNAL.get((group_version, kind))
    return convert(data) if convert else data


def _nest_request(flat: Plain) -> Plain:
    """Move the fields of a v1beta1 request to `exactly`, if any of them is set: else it is a prioritized list."""
    exactly = {name: flat[name] for name in _FLAT if name in flat}
    rest = {name: value for name, value in flat.items() if name not in _FLAT}
    given = any(value or name in _POINTERS for name, value in exactly.items())
    return {**rest, "exactly": exactly} if given else rest


def _flatten_request(request: Plain) -> Plain:
    rest = {name: value for name, value in request.items() if name != "exactly"}
    return {**rest, **(request.get("exactly") or {})}


def _unwrap_device(device: Plain) -> Plain:
    return {"name": device.get("name", ""), **(device.get("basic") or {})}


def _wrap_device(device: Plain) -> Plain:
    return {
        "name": device.get("name", ""),
        "basic": {name: value for name, value in device.items() if name != "name"},
    }


def _without_empty_place(data: Plain) -> Plain:
    """In v1beta1 an empty `nodeName` and a false `allNodes` of a slice mean the same as no field."""
    spec = data.get("spec")
    if not spec:
        return data
    return {**data, "spec": {name: value for name, value in spec.items() if value or name not in _PLACES}}


def _each(path: tuple[str, ...], change: Callable[[Plain], Plain]) -> Callable[[Plain], Plain]:
    """A function that changes every element of the list at `path`, copying only what leads there."""

    def convert(data: Plain) -> Plain:
        return _at(data, path, change)

    return convert


def _at(data: Plain, path: tuple[str, ...], change: Callable[[Plain], Plain]) -> Plain:
    inner = data.get(path[0])
    if not inner:
        return data
    changed = _at(inner, path[1:], change) if len(path) > 1 else [change(each) for each in inner]
    return {**data, path[0]: changed}


_REQUESTS: Mapping[str, tuple[str, ...]] = {
    "ResourceClaim": ("spec", "devices", "requests"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "requests"),
}
_DEVICES = ("spec", "devices")
_BETA = "resource.k8s.io/v1beta1"
_AUTOSCALER = ("autoscaling/v1", "HorizontalPodAutoscaler")
_TO_INTERNAL: Mapping[tuple[str, str], Callable[[Plain], Plain]] = {
    **{(_BETA, kind): _each(path, _nest_request) for kind, path in _REQUESTS.items()},
    (_BETA, "ResourceSlice"): lambda data: _without_empty_place(_at(data, _DEVICES, _unwrap_device)),
    _AUTOSCALER: autoscaler_from_v1,
}
_FROM_INTERNAL: Mapping[tuple[str, str], Callable[[Plain], Plain]] = {
    **{(_BETA, kind): _each(path, _flatten_request) for kind, path in _REQUESTS.items()},
    (_BETA, "ResourceSlice"): _each(_DEVICES, _wrap_device),
    _AUTOSCALER: autoscaler_to_v1,
}
