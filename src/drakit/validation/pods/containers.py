"""Containers of a pod: names, resources, and the claims that they use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from drakit.api import Container, ContainerClaim, Quantity, ResourceRequirements
from drakit.base import names
from drakit.base.fields import ErrorKind, FieldError, Path, duplicate, invalid, required
from drakit.validation.fields.names import check_label
from drakit.validation.pods.resourcenames import (
    HUGE_PAGES,
    is_container_standard,
    is_native,
    is_standard,
    is_whole_number,
)

_UNDECLARED = "must be one of the names in pod.spec.resourceClaims"


def check_containers(
    containers: Sequence[Container], path: Path, claims: frozenset[str], taken: set[str]
) -> Iterator[FieldError]:
    """`taken` are the names of containers before these; it grows."""
    for index, container in enumerate(containers):
        where = path[index]
        if not container.name:
            yield required(where / "name")
        elif container.name in taken:
            yield duplicate(where / "name", container.name)
        else:
            yield from check_label(container.name, where / "name")
        taken.add(container.name)
        yield from _check_image(container.image, where / "image")
        yield from check_resources(container.resources, where / "resources", claims)


def _check_image(image: str, path: Path) -> Iterator[FieldError]:
    if not image:
        yield required(path)
    elif image != image.strip():
        yield invalid(path, image, "must not have leading or trailing whitespace")


def check_resources(resources: ResourceRequirements, path: Path, claims: frozenset[str]) -> Iterator[FieldError]:
    for name, amount in resources.limits.items():
        yield from _check_resource(name, amount, (path / "limits").key(name))
    for name, amount in resources.requests.items():
        yield from _check_resource(name, amount, (path / "requests").key(name))
        yield from check_request(name, amount, resources.limits, path)
    yield from check_used_claims(resources.claims, path / "claims", claims)


def _check_resource(name: str, amount: Quantity, path: Path) -> Iterator[FieldError]:
    for message in names.check_qualified_name(name):
        yield invalid(path, name, message)
    if "/" not in name:
        if not is_standard(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        if not is_container_standard(name):
            yield invalid(path, name, "must be a standard resource for containers")
    yield from check_amount(name, amount, path)


def check_amount(name: str, amount: Quantity, path: Path) -> Iterator[FieldError]:
    if amount.sign < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    if is_whole_number(name) and not amount.is_whole:
        yield invalid(path, str(amount), "must be an integer")


def check_request(name: str, amount: Quantity, limits: Mapping[str, Quantity], path: Path) -> Iterator[FieldError]:
    """Resources that nodes do not overcommit are asked for and limited by the same amount."""
    limit = limits.get(name)
    overcommitted = is_native(name) and not name.startswith(HUGE_PAGES)
    if limit is None:
        if not overcommitted:
            yield required(path / "limits", "Limit must be set for non overcommitable resources")
    elif amount != limit and not overcommitted:
        yield invalid(path / "requests", str(amount), f"must be equal to {name} limit of {limit}")
    elif amount > limit:
        yield invalid(path / "requests", str(amount), f"must be less than or equal to {name} limit of {limit}")


def check_used_claims(used: Sequence[ContainerClaim], path: Path, declared: frozenset[str]) -> Iterator[FieldError]:
    """All of a claim once, or each of its requests once; all of it after one of its requests says it twice."""
    seen: set[str] = set()
    in_parts: set[str] = set()
    for index, claim in enumerate(used):
        where = path[index]
        if not claim.name:
            yield required(where)
            continue
        key = f"{claim.name}/{claim.request}" if claim.request else claim.name
        # The whole claim was listed before: any further mention of it is a repetition, whatever its request.
        if claim.name in seen:
            yield duplicate(where, claim.name)
        else:
            if claim.request:
                yield from check_label(claim.request, where / "request")
            if key in seen:
                yield duplicate(where, key)
            elif not claim.request and claim.name in in_parts:
                yield duplicate(where, claim.name)
            seen.add(key)
            in_parts |= {claim.name} if claim.request else set()
        if claim.name not in declared:
            there = f": {', '.join(sorted(declared))}" if declared else " which is empty"
            yield FieldError(ErrorKind.NOT_FOUND, where, claim.name, _UNDECLARED + there)
