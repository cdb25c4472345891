"""What a driver's code answered, checked and made into what is remembered and told.

In:  a claim, and the devices that the author's code prepared for it.
Out: the record of the claim, or AuthorFailed, or InvalidObject with every field that a runtime would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drakit.api import DeviceRequestAllocationResult, ResourceClaim, results_of
from drakit.base.errors import InvalidObject, Terminal
from drakit.base.fields import FieldError, Path
from drakit.base.wellknown import POD_CLAIM_ANNOTATION
from drakit.driverkit.calls.inventory import PublishedDevices
from drakit.driverkit.cdi import check_edits
from drakit.driverkit.claims import AllocatedClaim, AllocatedDevice, PreparedDevice
from drakit.driverkit.state.records import Preparation, RecordState


class AuthorFailed(Terminal):
    """The driver's code returned something that cannot be used."""


class Answer(msgspec.Struct, frozen=True):
    """What the kubelet is told about one claim."""

    record: Preparation | None = None
    cdi_ids: tuple[tuple[str, ...], ...] = ()
    error: str = ""

    @property
    def devices(self) -> tuple[tuple[PreparedDevice, tuple[str, ...]], ...]:
        """Devices with their CDI ids."""
        return tuple(zip(self.record.devices, self.cdi_ids, strict=True)) if self.record else ()


def preparation_of(claim: AllocatedClaim, made: Sequence[PreparedDevice], boot_id: str) -> Preparation:
    """The record of a claim with exactly the devices that it was given, in their order."""
    given = [_key(each) for each in claim.devices]
    by_key = {_key(each): each for each in made}
    # More than was allocated is an error of the driver: the container would get a device of somebody else.
    for each in made:
        if _key(each) not in given:
            raise AuthorFailed(f"prepare returned device {each.pool}/{each.device}, which the claim does not have")
    for _, pool, device, _ in (key for key in given if key not in by_key):
        raise AuthorFailed(f"prepare returned nothing for device {pool}/{device}")
    errors: list[FieldError] = []
    for index, each in enumerate(made):
        errors.extend(check_edits(each.edits, Path("devices")[index] / "edits"))
    if errors:
        raise InvalidObject("CDI spec", claim.ref.name, errors)
    return Preparation(
        ref=claim.ref,
        state=RecordState.PREPARED,
        boot_id=boot_id,
        # In the order of the allocation, whatever the order of the driver's answer: repeated calls answer alike.
        devices=tuple(by_key[key] for key in given),
        pod_claim_name=claim.claim.metadata.annotations.get(POD_CLAIM_ANNOTATION, ""),
    )


def described(record: Preparation, claim: AllocatedClaim, published: PublishedDevices) -> Preparation:
    """With the attributes that metadata shows: the author's, else those that are published."""
    devices = tuple(_with_attributes(*each, published) for each in zip(record.devices, claim.devices, strict=True))
    return msgspec.structs.replace(record, devices=devices)


def _with_attributes(device: PreparedDevice, given: AllocatedDevice, published: PublishedDevices) -> PreparedDevice:
    found = None if device.attributes else published.find(given)
    return device if found is None else msgspec.structs.replace(device, attributes=found.attributes)


def is_of(record: Preparation, claim: ResourceClaim, driver: str) -> bool:
    """Whether the record has the devices that are allocated to the claim now."""
    given = {_key(each) for each in results_of(claim) if each.driver == driver}
    return given == {_key(each) for each in record.devices}


def _key(
    device: AllocatedDevice | PreparedDevice | DeviceRequestAllocationResult,
) -> tuple[str, str, str, str | None]:
    return device.request, device.pool, device.device, device.share_id
