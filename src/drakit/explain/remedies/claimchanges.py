"""Changes to what claims ask for. Pure.

In:  a cluster, claims that ask for the same and have no devices yet: one, or those of a gang's pods.
Out: changes to all of them at once, not yet tried: `trials` finds out which of them help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from drakit.allocator import Inventory
from drakit.api import (
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from drakit.api.requests import sub_request_name
from drakit.base.taints import EXISTS, untolerated
from drakit.explain.cluster import ClusterObjects
from drakit.explain.remedies.proposals import Change, Proposal

Asked = ExactDeviceRequest | DeviceSubRequest
EditAsked = Callable[[Asked], Asked]
_MAX_CLASSES = 20
_MAX_NAMES = 3


def equal_claims(claims: Iterable[ResourceClaim]) -> list[list[ResourceClaim]]:
    """Claims grouped by what they ask for."""
    groups: list[list[ResourceClaim]] = []
    for claim in claims:
        mine = next((each for each in groups if each[0].spec == claim.spec), None)
        if mine is None:
            groups.append(mine := [])
        mine.append(claim)
    return groups


def claim_changes(cluster: ClusterObjects, inventory: Inventory, claims: Sequence[ResourceClaim]) -> Iterator[Change]:
    """Changes to equal claims, the mildest first."""
    alike = _Claims(claims)
    parts = alike.parts
    for part in parts:
        yield from _tolerations(inventory, part)
    for part in parts:
        yield from _classes(cluster, part)
        yield from _counts(part)
        yield from _capacities(part)
    yield from _constraints(alike)
    for part in parts:
        yield from _selectors(part)


class _Claims:
    """Claims that ask for the same."""

    def __init__(self, claims: Sequence[ResourceClaim]) -> None:
        self._claims = claims
        self.devices = claims[0].spec.devices

    @property
    def parts(self) -> list[_Part]:
        """Each request, and each alternative of one."""
        return [
            _Part(self, request.name, name, asked)
            for request in self.devices.requests
            for name, asked in _parts(request)
        ]

    @property
    def name(self) -> str:
        names = [each.metadata.name for each in self._claims]
        more = f", … {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        return f"claim{'s' * (len(names) > 1)} {', '.join(names[:_MAX_NAMES])}{more}"

    def edit(self, proposal: Proposal, edit: Callable[[DeviceClaim], DeviceClaim]) -> None:
        """Edit the claims as the proposal has them."""
        for each in self._claims:
            found = proposal.find(ResourceClaim, each.metadata.name, each.metadata.namespace)
            if found is not None:
                proposal.store(replace(found, spec=replace(found.spec, devices=edit(found.spec.devices))))


class _Part:
    """A request of claims, or an alternative of it: what is changed as one."""

    def __init__(self, claims: _Claims, request: str, name: str, asked: Asked) -> None:
        self._claims = claims
        self._request = request
        self._name = name
        self.asked = asked

    @property
    def where(self) -> str:
        return f"request {self._name} of {self._claims.name}"

    def change(self, kind: str, text: str, edit: EditAsked) -> Change:
        def edited(devices: DeviceClaim) -> DeviceClaim:
            requests = (
                _edited(each, self._name, edit) if each.name == self._request else each for each in devices.requests
            )
            return replace(devices, requests=tuple(requests))

        return Change(kind, text, lambda proposal: self._claims.edit(proposal, edited))


def _parts(request: DeviceRequest) -> list[tuple[str, Asked]]:
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(sub_request_name(request.name, each.name), each) for each in request.first_available]


def _edited(request: DeviceRequest, name: str, edit: EditAsked) -> DeviceRequest:
    if request.exactly is not None:
        return replace(request, exactly=edit(request.exactly))
    subs = (
        edit(each) if sub_request_name(request.name, each.name) == name else each for each in request.first_available
    )
    return replace(request, first_available=tuple(subs))


def _tolerations(inventory: Inventory, part: _Part) -> Iterator[Change]:
    taints = (
        untolerated(each, part.asked.tolerations)
        for node in inventory.nodes
        for view in inventory.views(node)
        for each in view.content.taints
    )
    for taint in dict.fromkeys(each for each in taints if each is not None):
        added = DeviceToleration(key=taint.key, operator=EXISTS, effect=taint.effect)
        value = f"={taint.value}" if taint.value else ""
        text = f"a toleration of {taint.key}{value}:{taint.effect} in {part.where}"
        yield part.change("toleration", text, _tolerating(added))


def _classes(cluster: ClusterObjects, part: _Part) -> Iterator[Change]:
    mine = part.asked.device_class_name
    others = sorted(each.metadata.name for each in cluster.all(DeviceClass))
    for other in [each for each in others if each != mine][:_MAX_CLASSES]:
        text = f"class {other} instead of {mine} in {part.where}"
        yield part.change("alternative", text, _with(device_class_name=other))


def _counts(part: _Part) -> Iterator[Change]:
    if part.asked.allocation_mode == "All":
        text = f"one device instead of all in {part.where}"
        yield part.change("count", text, _with(allocation_mode="ExactCount", count=1))
        return
    # From the top: the first count that fits takes the least away from the user.
    for number in range((part.asked.count or 1) - 1, 0, -1):
        text = f"{number} instead of {part.asked.count} devices in {part.where}"
        yield part.change("count", text, _with(count=number))


def _capacities(part: _Part) -> Iterator[Change]:
    capacity = part.asked.capacity
    if capacity is not None and capacity.requests:
        amounts = ", ".join(f"{key}={value}" for key, value in capacity.requests.items())
        yield part.change("capacity", f"{part.where} without its capacity ({amounts})", _with(capacity=None))


def _selectors(part: _Part) -> Iterator[Change]:
    for position, each in enumerate(part.asked.selectors):
        shown = each.cel.expression if each.cel else ""
        text = f"selector #{position} of {part.where} dropped: {shown}"
        yield part.change("selector", text, _unselecting(each))


def _constraints(claims: _Claims) -> Iterator[Change]:
    for position, each in enumerate(claims.devices.constraints):
        name = each.match_attribute or each.distinct_attribute
        text = f"constraint #{position} of {claims.name} dropped: {name}"

        yield Change("constraint", text, _unconstraining(claims, each))


def _unconstraining(claims: _Claims, one: DeviceConstraint) -> Callable[[Proposal], None]:
    def dropped(devices: DeviceClaim) -> DeviceClaim:
        return replace(devices, constraints=tuple(each for each in devices.constraints if each != one))

    return lambda proposal: claims.edit(proposal, dropped)


def _with(**fields: Any) -> EditAsked:
    return lambda asked: replace(asked, **fields)


def _tolerating(taint: DeviceToleration) -> EditAsked:
    return lambda asked: replace(asked, tolerations=(*asked.tolerations, taint))


def _unselecting(selector: DeviceSelector) -> EditAsked:
    # By value: the selectors of equal claims are different objects.
    return lambda asked: replace(asked, selectors=tuple(each for each in asked.selectors if each != selector))
