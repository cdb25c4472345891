"""Disabled fields of claims and templates, and reports about devices that a claim no longer has."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from drakit.api import (
    AllocatedDeviceStatus,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from drakit.base.gates import FeatureGates

Asked = ExactDeviceRequest | DeviceSubRequest
Result = DeviceRequestAllocationResult


def drop_claim_fields(new: ResourceClaim, old: ResourceClaim | None, gates: FeatureGates) -> ResourceClaim:
    off = [each for each in _switched_off(gates) if old is None or not each.used(old.spec, old.status)]
    spec, status = new.spec, new.status
    for feature in off:
        spec, status = feature.drop_spec(spec), feature.drop_status(status)
    if not gates.enabled("DRAResourceClaimDeviceStatus") and not (old is not None and old.status.devices):
        status = replace(status, devices=())
    if spec is new.spec and status is new.status:
        return new
    return new if (spec, status) == (new.spec, new.status) else replace(new, spec=spec, status=status)


@lru_cache(maxsize=16)
def _switched_off(gates: FeatureGates) -> tuple[_Feature, ...]:
    return tuple(feature for feature in _FEATURES if not feature.enabled(gates))


def drop_template_fields(
    new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, gates: FeatureGates
) -> ResourceClaimTemplate:
    spec, nothing = new.spec.spec, ResourceClaimStatus()
    for feature in _switched_off(gates):
        if old is None or not feature.used(old.spec.spec, nothing):
            spec = feature.drop_spec(spec)
    return new if spec == new.spec.spec else replace(new, spec=replace(new.spec, spec=spec))


def drop_deallocated_devices(new: ResourceClaim, old: ResourceClaim) -> ResourceClaim:
    """Reports about devices that this change takes from the claim go with them."""
    if not new.status.devices:
        return new
    gone = _devices(old.status) - _devices(new.status)
    kept = tuple(device for device in new.status.devices if _key(device) not in gone)
    return new if kept == new.status.devices else replace(new, status=replace(new.status, devices=kept))


def _devices(status: ResourceClaimStatus) -> set[tuple[str, ...]]:
    return {_key(result) for result in status.allocation.devices.results} if status.allocation else set()


def _key(device: Result | AllocatedDeviceStatus) -> tuple[str, ...]:
    """A share of a device is a device of its own."""
    return device.driver, device.pool, device.device, device.share_id or ""


class _Feature:
    """The fields that come and go together, of requests, alternatives, constraints and results."""

    gate = ""

    def enabled(self, gates: FeatureGates) -> bool:
        return gates.enabled(self.gate)

    def request(self, request: DeviceRequest) -> DeviceRequest:
        exactly = self.asked(request.exactly) if request.exactly else None
        alternatives = tuple(self.asked(alternative) for alternative in request.first_available)
        return replace(request, exactly=exactly, first_available=alternatives)

    def asked(self, asked: Asked) -> Asked:
        return asked

    def constraint(self, constraint: DeviceConstraint) -> DeviceConstraint:
        return constraint

    def result(self, result: Result) -> Result:
        return result

    def drop_spec(self, spec: ResourceClaimSpec) -> ResourceClaimSpec:
        devices = replace(
            spec.devices,
            requests=tuple(map(self.request, spec.devices.requests)),
            constraints=tuple(map(self.constraint, spec.devices.constraints)),
        )
        return replace(spec, devices=devices)

    def drop_status(self, status: ResourceClaimStatus) -> ResourceClaimStatus:
        if status.allocation is None:
            return status
        devices = status.allocation.devices
        devices = replace(devices, results=tuple(map(self.result, devices.results)))
        return replace(status, allocation=replace(status.allocation, devices=devices))

    def used(self, spec: ResourceClaimSpec, status: ResourceClaimStatus) -> bool:
        """Whether dropping would change anything."""
        return self.drop_spec(spec) != spec or self.drop_status(status) != status


class _PrioritizedList(_Feature):
    gate = "DRAPrioritizedList"

    def request(self, request: DeviceRequest) -> DeviceRequest:
        return replace(request, first_available=())


class _AdminAccess(_Feature):
    gate = "DRAAdminAccess"

    def asked(self, asked: Asked) -> Asked:
        return replace(asked, admin_access=None) if isinstance(asked, ExactDeviceRequest) else asked

    def result(self, result: Result) -> Result:
        return replace(result, admin_access=None)


class _Taints(_Feature):
    gate = "DRADeviceTaints"

    def asked(self, asked: Asked) -> Asked:
        return replace(asked, tolerations=())

    def result(self, result: Result) -> Result:
        return replace(result, tolerations=())


class _ConsumableCapacity(_Feature):
    gate = "DRAConsumableCapacity"

    def asked(self, asked: Asked) -> Asked:
        return replace(asked, capacity=None)

    def constraint(self, constraint: DeviceConstraint) -> DeviceConstraint:
        return replace(constraint, distinct_attribute=None)

    def result(self, result: Result) -> Result:
        return replace(result, share_id=None, consumed_capacity={})

    def drop_status(self, status: ResourceClaimStatus) -> ResourceClaimStatus:
        reports = tuple(replace(report, share_id=None) for report in status.devices)
        return replace(super().drop_status(status), devices=reports)


class _BindingConditions(_Feature):
    gate = "DRADeviceBindingConditions"

    def enabled(self, gates: FeatureGates) -> bool:
        return gates.enabled(self.gate) and gates.enabled("DRAResourceClaimDeviceStatus")

    def result(self, result: Result) -> Result:
        return replace(result, binding_conditions=(), binding_failure_conditions=())

    def drop_status(self, status: ResourceClaimStatus) -> ResourceClaimStatus:
        status = super().drop_status(status)
        if status.allocation is None:
            return status
        return replace(status, allocation=replace(status.allocation, allocation_timestamp=None))


_FEATURES: tuple[_Feature, ...] = (
    _PrioritizedList(),
    _AdminAccess(),
    _Taints(),
    _ConsumableCapacity(),
    _BindingConditions(),
)
