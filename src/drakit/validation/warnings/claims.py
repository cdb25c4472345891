"""Warnings about what claims and templates ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drakit.api import DeviceClaim, DeviceToleration, Quantity, ResourceClaim, ResourceClaimTemplate
from drakit.base.fields import Path
from drakit.base.gates import FeatureGates
from drakit.base.taints import EQUAL
from drakit.validation.warnings.findings import FieldWarning


def warn_of_claim(claim: ResourceClaim, _gates: FeatureGates) -> Iterator[FieldWarning]:
    return _of_devices(claim.spec.devices, Path("spec.devices"))


def warn_of_template(template: ResourceClaimTemplate, _gates: FeatureGates) -> Iterator[FieldWarning]:
    return _of_devices(template.spec.spec.devices, Path("spec.spec.devices"))


def _of_devices(asked: DeviceClaim, path: Path) -> Iterator[FieldWarning]:
    for index, request in enumerate(asked.requests):
        where = (path / "requests")[index]
        if request.exactly is not None:
            exactly = where / "exactly"
            yield from _of_tolerations(request.exactly.tolerations, exactly / "tolerations")
            yield from _of_amounts(request.exactly.capacity.requests if request.exactly.capacity else {}, exactly)
        for number, alternative in enumerate(request.first_available):
            at = (where / "firstAvailable")[number]
            yield from _of_tolerations(alternative.tolerations, at / "tolerations")
            yield from _of_amounts(alternative.capacity.requests if alternative.capacity else {}, at)
    for index, constraint in enumerate(asked.constraints):
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            message = "matchAttribute and distinctAttribute exclude each other: a claim with both is never allocated"
            yield FieldWarning("constraint-both", (path / "constraints")[index], message)
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            # The server's own words, recorded, say that several are set.
            message = "has neither matchAttribute nor distinctAttribute: write one of them"
            yield FieldWarning("constraint-neither", (path / "constraints")[index], message)


def _of_tolerations(tolerations: tuple[DeviceToleration, ...], path: Path) -> Iterator[FieldWarning]:
    """An empty toleration is filled in as `Equal` with an empty value. Few who write it mean that."""
    for index, each in enumerate(tolerations):
        if not each.key and not each.value and each.operator in ("", EQUAL):
            message = "tolerates only taints without a value; to tolerate every taint, write operator: Exists"
            yield FieldWarning("empty-toleration", path[index], message)


def _of_amounts(amounts: Mapping[str, Quantity], path: Path) -> Iterator[FieldWarning]:
    where = path / "capacity" / "requests"
    for name, amount in amounts.items():
        if amount.sign < 0:
            message = f"{amount} is less than nothing: no device is allocated for it"
            yield FieldWarning("negative-capacity", where.key(name), message)
        short = name.rpartition("/")[2]
        if short != name and short in amounts:
            message = f'for the driver of that domain, "{short}" names the same capacity: no device of it is allocated'
            yield FieldWarning("capacity-twice", where.key(name), message)
