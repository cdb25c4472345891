"""Shapes: what a selector, a constraint or a counter can tell of a device, without its name and place.

In:  devices of slices.
Out: one Shape for all devices that are alike, so that an expression runs once per shape and not once per device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from drakit.api import Device, to_json
from drakit.selectors import BoundDevice, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.allocator.inventory.selectors import Verdict

CounterKey = tuple[str, str]
_MAX_VERDICTS = 512


class Build:
    """What a device is made of, whatever its attributes say. Interned like shapes, and far fewer."""

    __slots__ = ("__weakref__", "binding", "capacity", "consumes", "shared")

    def __init__(self, device: Device) -> None:
        self.capacity = device.capacity
        self.shared = bool(device.allow_multiple_allocations)
        self.binding = bool(device.binding_conditions)
        self.consumes = counter_use(device)


class Shape:
    """Interned: two devices of the same shape have the same object.

    `verdicts` remembers selections by their texts. It lives here so that it goes when the last such device goes.
    """

    __slots__ = ("__weakref__", "_bound", "build", "device", "driver", "verdicts")

    def __init__(self, driver: str, device: Device, build: Build) -> None:
        self.driver = driver
        self.device = device
        self.build = build
        self.verdicts: dict[str, Verdict] = {}
        self._bound: BoundDevice | None = None

    @property
    def bound(self) -> BoundDevice:
        """The device as selectors see it."""
        if self._bound is None:
            self._bound = bind(self.driver, self.device)
        return self._bound

    def remember(self, key: str, verdict: Verdict) -> None:
        if len(self.verdicts) >= _MAX_VERDICTS:
            self.verdicts.clear()
        self.verdicts[key] = verdict


class Shapes:
    """The shapes in use; a shape that no pool holds any more is forgotten."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, bytes, bytes], Shape] = WeakValueDictionary()
        self._builds: WeakValueDictionary[bytes, Build] = WeakValueDictionary()

    def of(self, driver: str, device: Device) -> Shape:
        plain = msgspec.structs.replace(
            device, name="", node_name=None, node_selector=None, all_nodes=None, taints=(), binds_to_node=None
        )
        made = to_json(msgspec.structs.replace(plain, attributes={}))
        key = (driver, made, to_json(Device(name="", attributes=plain.attributes)))
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = Shape(driver, plain, self._build(made, plain))
        return shape

    def _build(self, key: bytes, plain: Device) -> Build:
        build = self._builds.get(key)
        if build is None:
            build = self._builds[key] = Build(plain)
        return build

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
