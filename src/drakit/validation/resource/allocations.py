"""The status of a ResourceClaim: what was given, to whom, and what drivers report about it.

In:  a claim with a new status and the same claim before.
Out: errors under `status`. An allocation is set once and stays until it is cleared, it is not cleared while somebody
     has reserved the claim, and reservations and device reports need an allocation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from drakit.api import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required, too_long, too_many
from drakit.validation.context import Context
from drakit.validation.fields.conditions import check_conditions
from drakit.validation.fields.metadata import check_metadata_update, immutable
from drakit.validation.fields.names import (
    check_driver,
    check_label,
    check_pool,
    check_share,
    is_driver,
    is_label,
    is_subdomain,
)
from drakit.validation.fields.nodeselectors import check_node_selector, names_one_node
from drakit.validation.fields.sequences import each, each_once
from drakit.validation.resource.bindingconditions import check_binding_conditions
from drakit.validation.resource.claims import (
    ADMIN_DENIED,
    RequestNames,
    check_reference,
    check_references,
    request_names,
)
from drakit.validation.resource.opaque import DATA_LENGTH, check_configuration, check_json_object

RESERVATIONS = 256
RESULTS = 32
CONFIGURATIONS = 64
DEVICE_CONDITIONS = 8
ADDRESSES = 16
INTERFACE_LENGTH = 256
HARDWARE_ADDRESS_LENGTH = 128
SOURCES = ("FromClaim", "FromClass")
STATUS = Path("status")
_RESERVED = STATUS / "reservedFor"
_REPORTS = STATUS / "devices"
_ALLOCATION = STATUS / "allocation"

DeviceKey = tuple[str, str, str, str]
"""Driver, pool, device and share of something that was allocated."""


def check_claim_status_update(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> Iterator[FieldError]:
    # The order of these is the order of errors that share a path: as upstream.
    if ctx.admin_namespace is False:
        yield from _check_admin(new.status.allocation, old.status.allocation)
    yield from check_metadata_update(new.metadata, old.metadata)
    reserved = new.status.reserved_for
    if len(reserved) > 1 or not all(map(_is_complete, reserved)):
        yield from each_once(reserved, _RESERVED, _check_consumer, lambda consumer: consumer.uid, limit=RESERVATIONS)
    if new.status.devices:
        yield from _check_reports(new.status, old.status, _REPORTS)
    if new.status.reserved_for:
        yield from _check_reservations(new, old, _RESERVED)
    yield from _check_transition(new, old.status, ctx)


def _check_admin(new: AllocationResult | None, old: AllocationResult | None) -> Iterator[FieldError]:
    """Refuse admin access. What was granted before is left alone."""
    if _first_admin(old) is not None:
        return
    index = _first_admin(new)
    if index is not None:
        yield forbidden((STATUS / "allocation" / "devices" / "results")[index] / "adminAccess", ADMIN_DENIED)


def _first_admin(allocation: AllocationResult | None) -> int | None:
    results = allocation.devices.results if allocation else ()
    return next((index for index, result in enumerate(results) if result.admin_access), None)


def _is_complete(consumer: ResourceClaimConsumerReference) -> bool:
    return bool(consumer.resource and consumer.name and consumer.uid)


def _check_consumer(consumer: ResourceClaimConsumerReference, path: Path) -> Iterator[FieldError]:
    for name, value in (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid)):
        if not value:
            yield required(path / name)


def _check_reservations(new: ResourceClaim, old: ResourceClaim, path: Path) -> Iterator[FieldError]:
    if new.status.allocation is None:
        yield forbidden(path, "may not be specified when `allocated` is not set")
    elif new.metadata.deletion_timestamp is not None:
        known = set(old.status.reserved_for)
        if any(consumer not in known for consumer in new.status.reserved_for):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden(path, detail)


def _check_transition(new: ResourceClaim, old: ResourceClaimStatus, ctx: Context) -> Iterator[FieldError]:
    """An allocation is not checked again once it is there: rules for new ones may be stricter."""
    allocation, path = new.status.allocation, _ALLOCATION
    if allocation is None:
        return
    if old.allocation is not None:
        yield from immutable(allocation, old.allocation, path, ctx.empty_lists)
        return
    known = request_names(new.spec.devices)
    if not _is_plain(allocation.devices, known):
        yield from _check_given(allocation.devices, path / "devices", known, ctx)
    if allocation.node_selector is not None and not names_one_node(allocation.node_selector):
        yield from check_node_selector(allocation.node_selector, path / "nodeSelector")


def _is_plain(given: DeviceAllocationResult, known: RequestNames) -> bool:
    """Whether there are only devices, and nothing of them can break a rule but names, which are good.

    Mostly it is so. Then no path is built, which takes longer than the rules.
    """
    if given.config or len(given.results) > RESULTS:
        return False
    for result in given.results:
        if result.binding_conditions or result.binding_failure_conditions or result.share_id is not None:
            return False
        if result.request not in known or not is_driver(result.driver):
            return False
        if not is_subdomain(result.pool) or not is_label(result.device):
            return False
    return True


def _check_given(given: DeviceAllocationResult, path: Path, known: RequestNames, ctx: Context) -> Iterator[FieldError]:
    def check_result(result: DeviceRequestAllocationResult, where: Path) -> Iterator[FieldError]:
        return _check_result(result, where, known, ctx)

    def check_config(config: DeviceAllocationConfiguration, where: Path) -> Iterator[FieldError]:
        if not config.source:
            yield required(where / "source")
        elif config.source not in SOURCES:
            yield not_supported(where / "source", config.source, SOURCES)
        yield from check_references(config.requests, where / "requests", known)
        yield from check_configuration(config.opaque, where)

    yield from each(given.results, path / "results", check_result, limit=RESULTS)
    yield from each(given.config, path / "config", check_config, limit=CONFIGURATIONS)


def _check_result(
    result: DeviceRequestAllocationResult, path: Path, known: RequestNames, ctx: Context
) -> Iterator[FieldError]:
    yield from check_reference(result.request, path / "request", known)
    yield from check_driver(result.driver, path / "driver")
    yield from check_pool(result.pool, path / "pool")
    yield from check_label(result.device, path / "device")
    yield from check_binding_conditions(result.binding_conditions, result.binding_failure_conditions, path, ctx)
    if result.share_id is not None:
        yield from check_share(result.share_id, path / "shareID")


def _check_reports(new: ResourceClaimStatus, old: ResourceClaimStatus, path: Path) -> Iterator[FieldError]:
    """Check what drivers report. A report is skipped if neither it nor the allocation has changed."""
    allocated = {_key(result) for result in new.allocation.devices.results} if new.allocation else set()
    # With another allocation every report is checked again: it may be about a device that the claim no longer has.
    unchanged = {_key(each): each for each in old.devices} if new.allocation == old.allocation else {}

    def check(report: AllocatedDeviceStatus, where: Path) -> Iterator[FieldError]:
        if unchanged.get(_key(report)) != report:
            yield from _check_report(report, where, allocated)

    yield from each_once(new.devices, path, check, _key, show=lambda report: _shown(_key(report)))


def _check_report(report: AllocatedDeviceStatus, path: Path, allocated: set[DeviceKey]) -> Iterator[FieldError]:
    yield from check_driver(report.driver, path / "driver")
    yield from check_pool(report.pool, path / "pool")
    yield from check_label(report.device, path / "device")
    if report.share_id is not None:
        yield from check_share(report.share_id, path / "shareID")
    if _key(report) not in allocated:
        yield invalid(path, _shown(_key(report)), "must be an allocated device in the claim")
    if len(report.conditions) > DEVICE_CONDITIONS:
        yield too_many(path / "conditions", len(report.conditions), DEVICE_CONDITIONS)
    yield from check_conditions(report.conditions, path / "conditions")
    if report.data is not None:
        yield from check_json_object(report.data, path / "data", DATA_LENGTH)
    if report.network_data is not None:
        yield from _check_network(report.network_data, path / "networkData")


def _check_network(data: NetworkDeviceData, path: Path) -> Iterator[FieldError]:
    if names.size(data.interface_name) > INTERFACE_LENGTH:
        yield too_long(path / "interfaceName", INTERFACE_LENGTH)
    if names.size(data.hardware_address) > HARDWARE_ADDRESS_LENGTH:
        yield too_long(path / "hardwareAddress", HARDWARE_ADDRESS_LENGTH)
    yield from each_once(data.ips, path / "ips", check_interface_address, str, limit=ADDRESSES)


def check_interface_address(address: str, path: Path) -> Iterator[FieldError]:
    """An address with the length of its network, in canonical form."""
    canonical = _canonical_address(address)
    if canonical is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, address, detail)
    elif canonical != address:
        yield invalid(path, address, f'must be in canonical form ("{canonical}")')


def _canonical_address(text: str) -> str | None:
    """Leading zeros are read as decimal; an IPv4 address mapped into IPv6 is an IPv4 address."""
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdecimal()) or len(length) > 4 or "%" in address:
        return None
    if "." in address and ":" not in address:
        parts = address.split(".")
        if not all(part.isascii() and part.isdecimal() for part in parts):
            return None
        address = ".".join(str(int(part)) for part in parts)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    bits = int(length)
    if bits > parsed.max_prefixlen:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return f"{parsed.ipv4_mapped}/{bits - 96 if bits > 32 else bits}"
    return f"{parsed}/{bits}"


def _key(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceKey:
    return device.driver, device.pool, device.device, device.share_id or ""


def _shown(key: DeviceKey) -> Mapping[str, str]:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), key, strict=True))
