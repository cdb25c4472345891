"""What passes between the kit and a driver's code: claims to prepare, devices that were prepared.

In:  claims with an allocation, as the server has them.
Out: what the driver made of each device; it is remembered, and comes back when the claim is unprepared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from drakit.api import (
    Condition,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    Quantity,
    ResourceClaim,
    base_request_name,
    results_of,
)
from drakit.base.structs import Model
from drakit.driverkit.cdi import ContainerEdits, DeviceNode, Hook, Mount
from drakit.driverkit.config import DeviceConfig, decode_configs

C = TypeVar("C", bound=DeviceConfig)


class ClaimRef(Model):
    """Which claim. The uid tells it from others that had, or will have, the same name."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(Model):
    """One allocated device, made ready. `AllocatedDevice.ready` makes it with the first fields filled in."""

    request: str
    """The request that the device was allocated for, with the alternative if there is one: `gpu`, `gpu/large`."""
    pool: str
    device: str
    share_id: str | None = None
    edits: ContainerEdits = ContainerEdits()
    cdi_device_ids: tuple[str, ...] = ()
    """Further CDI devices, from spec files that the driver keeps itself."""
    attributes: Mapping[str, DeviceAttribute] = {}
    """What the device's metadata file says. Empty: what the driver publishes for it."""
    network_data: NetworkDeviceData | None = None
    """Goes to the claim's status and to the metadata file."""
    conditions: tuple[Condition, ...] = ()
    """Go to the claim's status."""
    data: Any = None
    """Any JSON object for the claim's status."""
    notes: Any = None
    """Anything that JSON can hold, for the driver itself: it is there again at unprepare."""

    @property
    def key(self) -> tuple[str, str, str | None]:
        return self.pool, self.device, self.share_id


class AllocatedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device of this driver that a claim was given."""

    request: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    """The claim may only look after the device; somebody else may be using it."""
    consumed_capacity: Mapping[str, Quantity] = {}
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    configs: tuple[DeviceConfig, ...] = ()

    def config(self, type_: type[C]) -> C:
        """What claim and class say, decoded; the type's own defaults where they say nothing."""
        for each in self.configs:
            if isinstance(each, type_):
                return each
        return type_()

    def ready(
        self,
        *,
        env: Mapping[str, str] | None = None,
        device_nodes: Sequence[DeviceNode | str] = (),
        mounts: Sequence[Mount] = (),
        hooks: Sequence[Hook] = (),
        edits: ContainerEdits | None = None,
        **rest: Any,
    ) -> PreparedDevice:
        """The device, prepared. A device node may be just its path; `rest` are further fields of PreparedDevice."""
        if edits is None:
            nodes = tuple(DeviceNode(path=each) if isinstance(each, str) else each for each in device_nodes)
            edits = ContainerEdits(env=env or {}, device_nodes=nodes, mounts=tuple(mounts), hooks=tuple(hooks))
        return PreparedDevice(
            request=self.request, pool=self.pool, device=self.device, share_id=self.share_id, edits=edits, **rest
        )


class AllocatedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is to be prepared: its devices of this driver."""

    ref: ClaimRef
    devices: tuple[AllocatedDevice, ...]
    claim: ResourceClaim
    """The whole object, for what is not above."""

    @property
    def uid(self) -> str:
        return self.ref.uid

    def __str__(self) -> str:
        return str(self.ref)


class PreparedClaim(Model):
    """A claim that is to be unprepared.

    `devices` is what prepare returned. It is empty when prepare never ended, or when what was remembered is damaged:
    then remove whatever there is of this claim.
    """

    ref: ClaimRef
    devices: tuple[PreparedDevice, ...] = ()

    @property
    def uid(self) -> str:
        return self.ref.uid

    def __str__(self) -> str:
        return str(self.ref)


def allocated_claim(claim: ResourceClaim, driver: str, types: Sequence[type[DeviceConfig]]) -> AllocatedClaim:
    """The claim as the driver sees it. Raise InvalidObject when a configuration for it makes no sense."""
    metadata = claim.metadata
    return AllocatedClaim(
        ref=ClaimRef(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        devices=tuple(_device(claim, each, types) for each in results_of(claim) if each.driver == driver),
        claim=claim,
    )


def _device(
    claim: ResourceClaim, result: DeviceRequestAllocationResult, types: Sequence[type[DeviceConfig]]
) -> AllocatedDevice:
    return AllocatedDevice(
        request=result.request,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        admin_access=bool(result.admin_access),
        consumed_capacity=result.consumed_capacity,
        binding_conditions=result.binding_conditions,
        binding_failure_conditions=result.binding_failure_conditions,
        configs=decode_configs(claim, result, types),
    )


def answered_request(device: PreparedDevice) -> str:
    """The name that a kubelet knows: the request without the alternative that was chosen."""
    return base_request_name(device.request)
