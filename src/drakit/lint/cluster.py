"""The cluster that the texts describe: devices, classes, nodes, and who asks for what.

In:  manifests that a server would accept.
Out: what the warnings are computed from. Devices in use count as free: a warning is about what can never be allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from drakit.allocator import Inventory
from drakit.api import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    Node,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drakit.base.errors import SelectorInvalid
from drakit.base.gates import FeatureGates
from drakit.manifests import Manifest
from drakit.selectors import BoundDevice, Selector, bind, compile_selector

Asked = ExactDeviceRequest | DeviceSubRequest


class ClaimRequests(msgspec.Struct, frozen=True):
    """A claim or template, with the path of its devices."""

    manifest: Manifest
    path: str
    devices: DeviceClaim

    def requests(self) -> Iterator[tuple[str, Asked]]:
        """Every exact request and every alternative, with its path."""
        for index, request in enumerate(self.devices.requests):
            path = f"{self.path}.requests[{index}]"
            if request.exactly is not None:
                yield f"{path}.exactly", request.exactly
            for number, alternative in enumerate(request.first_available):
                yield f"{path}.firstAvailable[{number}]", alternative


class PlacedSelectors(msgspec.Struct, frozen=True):
    """Selectors and where they stand."""

    manifest: Manifest
    path: str
    selectors: tuple[DeviceSelector, ...]


class Cluster:
    def __init__(self, manifests: Iterable[Manifest], gates: FeatureGates) -> None:
        # Of an object that is there twice, the later one is what applying leaves.
        self.manifests = tuple({manifest.identity: manifest for manifest in manifests}.values())
        self.gates = gates

    def of(self, model: type[msgspec.Struct]) -> list[Manifest]:
        return [manifest for manifest in self.manifests if isinstance(manifest.view, model)]

    @cached_property
    def asking(self) -> list[ClaimRequests]:
        claims = [ClaimRequests(each, "spec.devices", each.view.spec.devices) for each in self.of(ResourceClaim)]
        templates = [
            ClaimRequests(each, "spec.spec.devices", each.view.spec.spec.devices)
            for each in self.of(ResourceClaimTemplate)
        ]
        return claims + templates

    @cached_property
    def classes(self) -> dict[str, DeviceClass]:
        return {each.metadata.name: each.view for each in self.of(DeviceClass)}

    @cached_property
    def devices(self) -> list[tuple[ResourceSlice, Device, BoundDevice]]:
        return [
            (each.view, device, bind(each.view.spec.driver, device))
            for each in self.of(ResourceSlice)
            for device in each.view.spec.devices
        ]

    @cached_property
    def inventory(self) -> Inventory:
        inventory = Inventory(self.gates)
        for manifest in self.of(Node):
            inventory.put_node(manifest.view)
        for device_class in self.classes.values():
            inventory.put_class(device_class)
        for manifest in self.of(ResourceSlice):
            inventory.put_slice(manifest.view)
        return inventory

    @cached_property
    def nodes(self) -> list[str]:
        """The Nodes and the nodes that slices name; if there are none, one without a name, which sees what all see."""
        named = {each.view.spec.node_name for each in self.of(ResourceSlice)}
        named |= {device.node_name for _, device, _ in self.devices}
        return sorted({*self.inventory.nodes, *filter(None, named)}) or [""]

    @cached_property
    def lacks_nodes(self) -> bool:
        """Whether devices select nodes by labels and no node is given: nobody can say which node sees what."""
        selecting = any(each.view.spec.node_selector is not None for each in self.of(ResourceSlice))
        return not self.of(Node) and (selecting or any(each.node_selector is not None for _, each, _ in self.devices))

    def selectors(self) -> Iterator[PlacedSelectors]:
        """Every list of selectors in the texts."""
        for asking in self.asking:
            for path, asked in asking.requests():
                yield PlacedSelectors(asking.manifest, f"{path}.selectors", asked.selectors)
        for manifest in self.of(DeviceClass):
            yield PlacedSelectors(manifest, "spec.selectors", manifest.view.spec.selectors)
        for manifest in self.of(DeviceTaintRule):
            chosen = manifest.view.spec.device_selector
            yield PlacedSelectors(manifest, "spec.deviceSelector.selectors", chosen.selectors if chosen else ())

    def compiled(self, selectors: Sequence[DeviceSelector]) -> list[Selector]:
        """The selectors that compile; the others are reported as errors."""
        found = []
        for selector in selectors:
            try:
                found += [self.compile(selector.cel.expression)] if selector.cel else []
            except SelectorInvalid:
                continue
        return found

    def compile(self, text: str) -> Selector:
        return compile_selector(
            text,
            list_attributes=self.gates.enabled("DRAListTypeAttributes"),
            consumable_capacity=self.gates.enabled("DRAConsumableCapacity"),
        )

    def wanted(self, asked: Asked) -> list[Selector]:
        """All selectors that a device must pass: those of the class, if it is there, and those of the request."""
        device_class = self.classes.get(asked.device_class_name)
        of_class = self.compiled(device_class.spec.selectors) if device_class else []
        return of_class + self.compiled(asked.selectors)

    def matching(self, selectors: Sequence[Selector]) -> list[Device]:
        return [device for _, device, bound in self.devices if passes(bound, selectors)]


def passes(bound: BoundDevice, selectors: Sequence[Selector]) -> bool:
    return all(selector.evaluate(bound).matches for selector in selectors)
