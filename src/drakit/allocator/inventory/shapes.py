"""Shapes: what a selector, a constraint or a counter can tell of a device, without its name and node.

In:  devices of slices.
Out: one DeviceShape for all devices that are alike, so that an expression runs once per shape and not once per device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

import msgspec

from drakit.api import Device, to_json
from drakit.selectors import BoundDevice, bind

CounterKey = tuple[str, str]
"""(counter set, counter)"""
_MAX_RESULTS = 512
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ShapeMatch:
    """What the selectors of a class and a request say of one shape.

    `refused_by` is the position of the selector that did not match; `error` is set when it could not be evaluated.
    """

    matches: bool
    refused_by: int = -1
    error: str = ""
    fails: bool = False


class DeviceResources:
    """A device without its attributes: capacity, sharing, counters. Interned like shapes, and far fewer."""

    __slots__ = ("__weakref__", "binding", "capacity", "consumes", "driver", "shared")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        """The driver, whose domain capacity names may omit; empty for a device without capacity."""
        self.capacity = device.capacity
        self.shared = bool(device.allow_multiple_allocations)
        self.binding = bool(device.binding_conditions)
        self.consumes = counter_use(device)


class DeviceShape:
    """Interned: two devices of the same shape have the same object. `device` is the first of them."""

    __slots__ = ("__weakref__", "_bound", "_results", "device", "driver", "resources")

    def __init__(self, driver: str, device: Device, resources: DeviceResources) -> None:
        self.driver = driver
        self.device = device
        self.resources = resources
        # By the texts of the selectors. It lives here so that it goes when the last such device goes.
        self._results: dict[str, ShapeMatch] = {}
        self._bound: BoundDevice | None = None

    @property
    def bound(self) -> BoundDevice:
        """The device as selectors see it."""
        if self._bound is None:
            self._bound = bind(self.driver, self.device)
        return self._bound

    def known_result(self, key: str) -> ShapeMatch | None:
        return self._results.get(key)

    def remember(self, key: str, result: ShapeMatch) -> None:
        if len(self._results) >= _MAX_RESULTS:
            self._results.clear()
        self._results[key] = result


class DeviceShapes:
    """The shapes in use; a shape that no pool holds any more is forgotten."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, bytes, bytes], DeviceShape] = WeakValueDictionary()
        self._resources: WeakValueDictionary[tuple[str, bytes], DeviceResources] = WeakValueDictionary()

    def of(self, driver: str, device: Device) -> DeviceShape:
        # Without what selectors cannot see: thousands of devices then share a few shapes.
        plain = msgspec.structs.replace(
            device,
            name="",
            node_name=None,
            node_selector=None,
            all_nodes=None,
            taints=(),
            binds_to_node=None,
            attributes={},
        )
        made = to_json(plain)
        key = (driver, made, _ENCODER.encode(device.attributes) if device.attributes else b"")
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = DeviceShape(driver, device, self._resources_of(driver, made, plain))
        return shape

    def _resources_of(self, driver: str, made: bytes, plain: Device) -> DeviceResources:
        # The driver makes a difference only to capacity names, which may omit its domain.
        key = (driver if plain.capacity else "", made)
        resources = self._resources.get(key)
        if resources is None:
            resources = self._resources[key] = DeviceResources(key[0], plain)
        return resources

    def __len__(self) -> int:
        return len(self._known)


def counter_use(device: Device) -> Mapping[CounterKey, int]:
    """What the device takes of each shared counter, in nanos."""
    used: dict[CounterKey, int] = {}
    for each in device.consumes_counters:
        for name, counter in each.counters.items():
            key = (each.counter_set, name)
            used[key] = used.get(key, 0) + counter.value.nanos
    return used
