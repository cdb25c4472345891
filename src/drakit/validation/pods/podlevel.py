"""Resources of the pod itself: which it takes, and that they cover those of its containers."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import Pod, PodSpec, Quantity, ResourceRequirements
from drakit.api.footprint import container_limits, container_requests
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, not_supported
from drakit.validation.pods.containers import check_amount, check_request
from drakit.validation.pods.resourcenames import HUGE_PAGES

_TAKEN = ("cpu", HUGE_PAGES, "memory")


def check_pod_level(spec: PodSpec, resources: ResourceRequirements, path: Path) -> Iterator[FieldError]:
    for name, amount in resources.limits.items():
        yield from _check_resource(name, amount, (path / "limits").key(name))
    for name, amount in resources.requests.items():
        yield from _check_resource(name, amount, (path / "requests").key(name))
        if _is_taken(name):
            yield from check_request(name, amount, resources.limits, path)
    yield from _check_consistency(spec, resources, path)


def _is_taken(name: str) -> bool:
    return name in _TAKEN or name.startswith(HUGE_PAGES)


def _check_resource(name: str, amount: Quantity, path: Path) -> Iterator[FieldError]:
    wrong = names.check_qualified_name(name)
    for message in wrong:
        yield invalid(path, name, message)
    if not wrong and not _is_taken(name):
        yield not_supported(path, name, _TAKEN)
    yield from check_amount(name, amount, path)


def _check_consistency(spec: PodSpec, resources: ResourceRequirements, path: Path) -> Iterator[FieldError]:
    pod = Pod(spec=spec)
    for name, together in container_requests(pod).items():
        asked = resources.requests.get(name)
        if asked is not None and together > asked:
            detail = f"must be greater than or equal to aggregate container requests of {together}"
            yield invalid((path / "requests").key(name), str(asked), detail)
    for name, together in container_limits(pod).items():
        limit = resources.limits.get(name)
        if limit is not None and name.startswith(HUGE_PAGES) and together > limit:
            detail = f"must be greater than or equal to aggregate container limits of {together}"
            yield invalid((path / "limits").key(name), str(limit), detail)
    for index, container in enumerate(spec.containers):
        for name, own in container.resources.limits.items():
            limit = resources.limits.get(name)
            if limit is not None and own > limit:
                where = (path / "containers")[index].key(name) / "limits"
                yield invalid(where, str(own), f"must be less than or equal to pod limits of {limit}")
