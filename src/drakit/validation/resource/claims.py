"""ResourceClaim and ResourceClaimTemplate: what may be asked for.

In:  claims and templates in their internal form, with defaults.
Out: errors under `spec`; the status has its own rules in `allocations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from drakit.api import (
    ALL,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from drakit.api.codec.specs import SHARED_SIZE, SPECS
from drakit.api.objects.plain import from_json
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required
from drakit.base.gates import FeatureGates
from drakit.base.wellknown import ADMIN_ACCESS_LABEL
from drakit.validation.context import Context
from drakit.validation.fields.metadata import (
    check_form_update,
    check_metadata,
    check_metadata_update,
    check_template_metadata,
    immutable,
)
from drakit.validation.fields.names import check_class, check_fully_qualified, check_label
from drakit.validation.fields.sequences import each, each_once
from drakit.validation.resource.expressions import check_selectors
from drakit.validation.resource.opaque import check_configuration
from drakit.validation.resource.taints import check_toleration

REQUESTS = 32
ALTERNATIVES = 8
CONSTRAINTS = 32
CONFIGURATIONS = 32
ADMIN_DENIED = f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
_SPEC = Path("spec")
_DEVICES = _SPEC / "devices"
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

RequestNames = Mapping[str, frozenset[str]]
"""The names of a claim's requests, each with those of its alternatives."""


def check_claim(claim: ResourceClaim, ctx: Context) -> Iterator[FieldError]:
    if ctx.admin_namespace is False:
        yield from _check_admin(claim.spec.devices.requests)
    yield from check_metadata(claim.metadata, namespaced=True)
    text = SPECS.json_of(claim.spec.devices)
    # The cache knows only whether there are errors. Errors have paths, so they are worked out anew.
    if len(text) > SHARED_SIZE or not _are_good(text, ctx.gates):
        yield from check_devices(claim.spec.devices, _DEVICES, ctx)


@lru_cache(maxsize=4096)
def _are_good(devices: bytes, gates: FeatureGates) -> bool:
    """Whether the requests have no errors. Claims of one template are equal, so the result is cached."""
    return next(check_devices(from_json(DeviceClaim, devices), Path(), Context(gates=gates)), None) is None


def check_claim_update(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> Iterator[FieldError]:
    """The spec is immutable. If it changed, that is the only error about it."""
    yield from check_form_update(new.metadata, old.metadata)
    yield from check_metadata_update(new.metadata, old.metadata)
    if new.spec is not old.spec:
        yield from immutable(new.spec, old.spec, _SPEC, ctx.empty_lists)


def check_template(template: ResourceClaimTemplate, ctx: Context) -> Iterator[FieldError]:
    if ctx.admin_namespace is False:
        yield from _check_admin(template.spec.spec.devices.requests)
    yield from check_metadata(template.metadata, namespaced=True)
    yield from check_template_metadata(template.spec.metadata, Path("spec.metadata"), ctx.empty_lists)
    yield from check_devices(template.spec.spec.devices, Path("spec.spec.devices"), ctx)


def check_template_update(new: ResourceClaimTemplate, old: ResourceClaimTemplate, ctx: Context) -> Iterator[FieldError]:
    """The spec is immutable, and what is wrong with the new one is told all the same."""
    yield from check_form_update(new.metadata, old.metadata)
    if new.spec != old.spec:
        if ctx.admin_namespace is False:
            yield from _check_admin(new.spec.spec.devices.requests)
        yield from check_template_metadata(new.spec.metadata, Path("spec.metadata"), ctx.empty_lists)
        yield from check_devices(new.spec.spec.devices, Path("spec.spec.devices"), ctx)
    yield from check_metadata_update(new.metadata, old.metadata)
    yield from immutable(new.spec, old.spec, Path("spec"), ctx.empty_lists)


def request_names(claim: DeviceClaim) -> RequestNames:
    return {
        request.name: frozenset(alternative.name for alternative in request.first_available)
        for request in claim.requests
    }


def check_devices(claim: DeviceClaim, path: Path, ctx: Context) -> Iterator[FieldError]:
    known = request_names(claim)

    def check_request(request: DeviceRequest, where: Path) -> Iterator[FieldError]:
        return _check_request(request, where, ctx)

    def check_constraint(constraint: DeviceConstraint, where: Path) -> Iterator[FieldError]:
        return _check_constraint(constraint, where, known, ctx)

    def check_config(config: DeviceClaimConfiguration, where: Path) -> Iterator[FieldError]:
        yield from check_references(config.requests, where / "requests", known)
        yield from check_configuration(config.opaque, where)

    yield from each_once(claim.requests, path / "requests", check_request, lambda request: request.name, limit=REQUESTS)
    yield from each(claim.constraints, path / "constraints", check_constraint, limit=CONSTRAINTS)
    yield from each(claim.config, path / "config", check_config, limit=CONFIGURATIONS)


def check_references(references: Sequence[str], path: Path, known: RequestNames) -> Iterator[FieldError]:
    """Names of requests, or of requests and alternatives, each once."""

    def check(reference: str, where: Path) -> Iterator[FieldError]:
        return check_reference(reference, where, known)

    yield from each_once(references, path, check, str, limit=REQUESTS)


def check_reference(reference: str, path: Path, known: RequestNames) -> Iterator[FieldError]:
    parts = reference.split("/")
    if len(parts) > 2:
        yield invalid(path, reference, _NO_REQUEST)
        return
    for part in parts:
        yield from check_label(part, path)
    # `request` alone is allowed also for a prioritized list: it stands for whichever alternative is chosen.
    alternatives = known.get(parts[0])
    if alternatives is None or (len(parts) == 2 and parts[1] not in alternatives):
        yield invalid(path, reference, _NO_REQUEST)


def _check_admin(requests: Sequence[DeviceRequest]) -> Iterator[FieldError]:
    """Refuse admin access. Only the first request is named, by the path that it has in a claim, also in templates."""
    for index, request in enumerate(requests):
        if request.exactly is not None and request.exactly.admin_access:
            yield forbidden(Path("spec.devices.requests")[index] / "adminAccess", ADMIN_DENIED)
            return


def _check_request(request: DeviceRequest, path: Path, ctx: Context) -> Iterator[FieldError]:
    yield from check_label(request.name, path / "name")
    if request.exactly is not None and request.first_available:
        yield invalid(path, None, f"{_ONE_OF}, but multiple fields are set")
    elif request.exactly is not None:
        yield from _check_asked(request.exactly, path / "exactly", ctx)
    elif request.first_available:

        def check(alternative: DeviceSubRequest, where: Path) -> Iterator[FieldError]:
            yield from check_label(alternative.name, where / "name")
            yield from _check_asked(alternative, where, ctx)

        yield from each_once(
            request.first_available,
            path / "firstAvailable",
            check,
            lambda alternative: alternative.name,
            limit=ALTERNATIVES,
        )
    else:
        yield required(path, _ONE_OF)


def _check_asked(asked: ExactDeviceRequest | DeviceSubRequest, path: Path, ctx: Context) -> Iterator[FieldError]:
    """What exact requests and alternatives have in common."""
    yield from check_class(asked.device_class_name, path / "deviceClassName")
    yield from check_selectors(asked.selectors, path / "selectors", ctx)
    yield from _check_mode(asked, path)
    yield from each(asked.tolerations, path / "tolerations", check_toleration)


def _check_mode(asked: ExactDeviceRequest | DeviceSubRequest, path: Path) -> Iterator[FieldError]:
    if asked.allocation_mode == ALL:
        if asked.count != 0:
            yield invalid(path / "count", asked.count, f"must not be specified when allocationMode is '{ALL}'")
    elif asked.allocation_mode == EXACT_COUNT:
        if asked.count <= 0:
            yield invalid(path / "count", asked.count, "must be greater than zero")
    else:
        yield not_supported(path / "allocationMode", asked.allocation_mode, (ALL, EXACT_COUNT))


def _check_constraint(
    constraint: DeviceConstraint, path: Path, known: RequestNames, ctx: Context
) -> Iterator[FieldError]:
    yield from check_references(constraint.requests, path / "requests", known)
    if constraint.match_attribute is not None:
        yield from check_fully_qualified(constraint.match_attribute, path / "matchAttribute")
    elif constraint.distinct_attribute is not None:
        yield from check_fully_qualified(constraint.distinct_attribute, path / "distinctAttribute")
    elif ctx.gates.enabled("DRAConsumableCapacity"):
        choice = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        # The words are upstream's, though here no field is set.
        yield required(path, f"{choice}, but multiple fields are set")
    else:
        yield required(path / "matchAttribute")
