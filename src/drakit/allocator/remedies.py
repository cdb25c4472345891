"""Remedies: the single change that would make a claim fit on a node.

In:  a claim with one request that does not fit.
Out: changes that were tried on a fork of the inventory, and worked: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from drakit.allocator.outcomes import Allocated
from drakit.api import (
    Device,
    DeviceClaim,
    DeviceRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drakit.base.taints import EXISTS, untolerated

if TYPE_CHECKING:
    from drakit.allocator.inventory import Inventory

_MAX_STEPS = 2_000
_NEW = "one-more"


@dataclass(frozen=True, slots=True)
class Remedy:
    """`kind` is device, toleration, selector or constraint; `text` completes "it would fit with …"."""

    kind: str
    text: str


def find_remedies(inventory: Inventory, claims: Sequence[ResourceClaim], node: str) -> Iterator[Remedy]:
    """Every kind of single change that helps a claim with exactly one request."""
    if len(claims) != 1 or len(claims[0].spec.devices.requests) != 1:
        return
    (request,) = claims[0].spec.devices.requests
    if request.exactly is not None:
        trial = _Trial(inventory, claims[0], request, request.exactly, node)
        yield from trial.one_more_device()
        yield from trial.toleration()
        yield from trial.selector_dropped()
        yield from trial.constraint_dropped()


@dataclass(frozen=True, slots=True)
class _Trial:
    inventory: Inventory
    claim: ResourceClaim
    request: DeviceRequest
    exactly: ExactDeviceRequest
    node: str

    def one_more_device(self) -> Iterator[Remedy]:
        """One device more like one that is there, the first of each driver that helps."""
        done: set[str] = set()
        for view in self.inventory.views(self.node):
            driver = view.key[0]
            for device, shape in zip(view.devices, view.content.shapes, strict=True):
                if driver not in done and self._fits_with_device(driver, device):
                    done.add(driver)
                    told = ", ".join(_attributes(shape.device))
                    yield Remedy("device", f"one more device like {'/'.join((*view.key, device.name))} ({told})")

    def _fits_with_device(self, driver: str, device: Device) -> bool:
        fork = self.inventory.fork()
        added = msgspec.structs.replace(
            device, name=_NEW, taints=(), consumes_counters=(), node_name=None, node_selector=None, all_nodes=None
        )
        pool = ResourcePool(name=_NEW, generation=1, resource_slice_count=1)
        spec = ResourceSliceSpec(driver=driver, pool=pool, node_name=self.node, devices=(added,))
        fork.put_slice(ResourceSlice(metadata=ObjectMeta(name=f"{_NEW}-{self.node}"), spec=spec))
        return self._fits(fork, self.claim)

    def toleration(self) -> Iterator[Remedy]:
        """One toleration of one taint."""
        views = self.inventory.views(self.node)
        taints = (untolerated(each, self.exactly.tolerations) for view in views for each in view.content.taints)
        for taint in dict.fromkeys(each for each in taints if each is not None):
            added = DeviceToleration(key=taint.key, operator=EXISTS, effect=taint.effect)
            if self._fits(self.inventory, self._with(tolerations=(*self.exactly.tolerations, added))):
                value = f"={taint.value}" if taint.value else ""
                yield Remedy("toleration", f"a toleration of {taint.key}{value}:{taint.effect}")

    def selector_dropped(self) -> Iterator[Remedy]:
        """One selector less, of the request or of its class."""
        chosen = self.exactly.selectors
        for number, each in enumerate(chosen):
            if self._fits(self.inventory, self._with(selectors=chosen[:number] + chosen[number + 1 :])):
                text = each.cel.expression if each.cel else ""
                yield Remedy("selector", f"selector #{number} of the request dropped: {text}")
        named = self.inventory.classes.get(self.exactly.device_class_name)
        for number, each in enumerate(named.spec.selectors if named else ()):
            if named and self._fits_with_class_selector_dropped(number):
                text = each.cel.expression if each.cel else ""
                yield Remedy("selector", f"selector #{number} of class {named.metadata.name} dropped: {text}")

    def _fits_with_class_selector_dropped(self, number: int) -> bool:
        fork = self.inventory.fork()
        named = fork.classes[self.exactly.device_class_name]
        kept = named.spec.selectors[:number] + named.spec.selectors[number + 1 :]
        spec = msgspec.structs.replace(named.spec, selectors=kept)
        fork.put_class(msgspec.structs.replace(named, spec=spec))
        return self._fits(fork, self.claim)

    def constraint_dropped(self) -> Iterator[Remedy]:
        """One constraint less."""
        devices = self.claim.spec.devices
        for number, each in enumerate(devices.constraints):
            kept = devices.constraints[:number] + devices.constraints[number + 1 :]
            if self._fits(self.inventory, self._asking(msgspec.structs.replace(devices, constraints=kept))):
                name = each.match_attribute or each.distinct_attribute
                yield Remedy("constraint", f"constraint #{number} on {name} dropped")

    def _with(self, **changes: object) -> ResourceClaim:
        exactly = msgspec.structs.replace(self.exactly, **changes)
        request = msgspec.structs.replace(self.request, exactly=exactly)
        return self._asking(msgspec.structs.replace(self.claim.spec.devices, requests=(request,)))

    def _asking(self, devices: DeviceClaim) -> ResourceClaim:
        return msgspec.structs.replace(self.claim, spec=ResourceClaimSpec(devices=devices))

    def _fits(self, inventory: Inventory, claim: ResourceClaim) -> bool:
        from drakit.allocator.allocation import Allocator

        steps = iter(range(_MAX_STEPS // 64))
        allocator = Allocator(inventory, [claim], expired=lambda: next(steps, None) is None)
        return isinstance(allocator.allocate(self.node, new_uid=str), Allocated)


def _attributes(device: Device) -> Iterator[str]:
    for name, each in list(device.attributes.items())[:4]:
        value = next((v for v in (each.string, each.int_, each.bool_, each.version) if v is not None), None)
        if value is not None:
            yield f"{name}={value}"
