"""What the API server fills in when a client leaves it out.

In:  an object that was decoded, and the time.
Out: the object with Kubernetes' defaults; the same object when nothing was missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from drakit.api.objects.claims import (
    EXACT_COUNT,
    AllocationResult,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from drakit.api.objects.partial import Partial
from drakit.api.objects.poolstatus import ResourcePoolStatusRequest
from drakit.api.objects.slices import Device, NodeAllocatableResourceMapping, ResourceSlice
from drakit.api.objects.taintrules import DeviceTaintRule
from drakit.api.objects.workloads import PodGroup
from drakit.api.text.times import format_time
from drakit.api.versions.coredefaults import default_document
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import EQUAL, DeviceTaint, DeviceToleration

POOL_STATUS_LIMIT = 100
DISRUPTION_MODE = "Pod"
_ONE = Quantity.parse("1")

T = TypeVar("T")
O = TypeVar("O", bound="Model | Partial[Any]")  # noqa: E741 - an object
R = TypeVar("R", ExactDeviceRequest, DeviceSubRequest)


def set_defaults(value: O, now: datetime, *, has_spec_defaults: bool = False) -> O:
    """The object with everything that Kubernetes fills in; `now` goes into taints without `timeAdded`.

    With `has_spec_defaults` the spec has its defaults already, and only the rest gets them.
    """
    if isinstance(value, Partial):
        document = default_document(value.document, has_spec_defaults=has_spec_defaults)
        return value if document is value.document else Partial.of(type(value.view), document)  # type: ignore[return-value]
    rule = (_WITH_SPEC_DEFAULTS if has_spec_defaults else _RULES).get(type(value))
    return rule(value, now) if rule else value


def _each(items: tuple[T, ...], change: Callable[[T], T]) -> tuple[T, ...]:
    """Change each item. Return the same tuple if no item changed."""
    changed = tuple(map(change, items))
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def _toleration(toleration: DeviceToleration) -> DeviceToleration:
    return toleration if toleration.operator else replace(toleration, operator=EQUAL)


def _counted(request: R) -> R:
    mode = request.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and request.count == 0 else request.count
    tolerations = _each(request.tolerations, _toleration)
    if (mode, count) == (request.allocation_mode, request.count) and tolerations is request.tolerations:
        return request
    return replace(request, allocation_mode=mode, count=count, tolerations=tolerations)


def _request(request: DeviceRequest) -> DeviceRequest:
    exactly = _counted(request.exactly) if request.exactly else None
    alternatives = _each(request.first_available, _counted)
    if exactly is request.exactly and alternatives is request.first_available:
        return request
    return replace(request, exactly=exactly, first_available=alternatives)


def _spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = _each(spec.devices.requests, _request)
    return (
        spec if requests is spec.devices.requests else replace(spec, devices=replace(spec.devices, requests=requests))
    )


def _result(result: DeviceRequestAllocationResult) -> DeviceRequestAllocationResult:
    tolerations = _each(result.tolerations, _toleration)
    return result if tolerations is result.tolerations else replace(result, tolerations=tolerations)


def _allocation(allocation: AllocationResult) -> AllocationResult:
    results = _each(allocation.devices.results, _result)
    if results is allocation.devices.results:
        return allocation
    return replace(allocation, devices=replace(allocation.devices, results=results))


def _claim(claim: ResourceClaim, _now: datetime) -> ResourceClaim:
    spec = _spec(claim.spec)
    return _claim_status(claim if spec is claim.spec else replace(claim, spec=spec))


def _claim_status(claim: ResourceClaim) -> ResourceClaim:
    before = claim.status.allocation
    if before is None or (allocation := _allocation(before)) is before:
        return claim
    return replace(claim, status=replace(claim.status, allocation=allocation))


def _template(template: ResourceClaimTemplate, _now: datetime) -> ResourceClaimTemplate:
    spec = _spec(template.spec.spec)
    return template if spec is template.spec.spec else replace(template, spec=replace(template.spec, spec=spec))


def _taint(taint: DeviceTaint, now: datetime) -> DeviceTaint:
    return taint if taint.time_added else replace(taint, time_added=format_time(now))


def _mapping(mapping: NodeAllocatableResourceMapping) -> NodeAllocatableResourceMapping:
    return mapping if mapping.allocation_multiplier is not None else replace(mapping, allocation_multiplier=_ONE)


def _device(device: Device, now: datetime) -> Device:
    taints = _each(device.taints, lambda taint: _taint(taint, now))
    mappings = device.node_allocatable_resource_mappings
    if any(each.allocation_multiplier is None for each in mappings.values()):
        mappings = {name: _mapping(each) for name, each in mappings.items()}
    if taints is device.taints and mappings is device.node_allocatable_resource_mappings:
        return device
    return replace(device, taints=taints, node_allocatable_resource_mappings=mappings)


def _slice(resource_slice: ResourceSlice, now: datetime) -> ResourceSlice:
    devices = _each(resource_slice.spec.devices, lambda device: _device(device, now))
    if devices is resource_slice.spec.devices:
        return resource_slice
    return replace(resource_slice, spec=replace(resource_slice.spec, devices=devices))


def _rule(rule: DeviceTaintRule, now: datetime) -> DeviceTaintRule:
    taint = _taint(rule.spec.taint, now)
    return rule if taint is rule.spec.taint else replace(rule, spec=replace(rule.spec, taint=taint))


def _pool_status(request: ResourcePoolStatusRequest, _now: datetime) -> ResourcePoolStatusRequest:
    if request.spec.limit is not None:
        return request
    return replace(request, spec=replace(request.spec, limit=POOL_STATUS_LIMIT))


def _pod_group(group: PodGroup, _now: datetime) -> PodGroup:
    if group.spec.disruption_mode is not None:
        return group
    return replace(group, spec=replace(group.spec, disruption_mode=DISRUPTION_MODE))


_RULES: Mapping[type[Model], Callable[[Any, datetime], Any]] = {
    ResourceClaim: _claim,
    ResourceClaimTemplate: _template,
    ResourceSlice: _slice,
    DeviceTaintRule: _rule,
    ResourcePoolStatusRequest: _pool_status,
    PodGroup: _pod_group,
}
TIMED = frozenset((ResourceSlice, DeviceTaintRule))
"""Kinds whose defaults contain the time: of equal specs each becomes another one."""
_WITH_SPEC_DEFAULTS: Mapping[type[Model], Callable[[Any, datetime], Any]] = {
    **_RULES,
    ResourceClaim: lambda claim, _now: _claim_status(claim),
}
