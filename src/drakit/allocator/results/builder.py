"""The AllocationResult of each claim.

In:  an answer in positions, the views of the node, the claims and their classes.
Out: results in order, configuration of classes and claim with source and requests, and the nodes where it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from drakit.allocator.inventory.capacity import consumption
from drakit.allocator.inventory.pools import PoolView
from drakit.allocator.inventory.shapes import DeviceResources
from drakit.allocator.search.answer import SearchAnswer
from drakit.allocator.search.layouts import Layout
from drakit.allocator.search.plans import Alternative, Plan
from drakit.api import (
    AllocationResult,
    Device,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Quantity,
    ResourceClaim,
    ResourceSlice,
)

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"
_NAME_FIELD = "metadata.name"
_MAX_KINDS = 1_000


class Site(NamedTuple):
    """A device with its pool and slice."""

    view: PoolView
    slice: ResourceSlice
    device: Device
    resources: DeviceResources


class UnsupportedNodeSelectorError(Exception):
    """A slice selects nodes in a way that no allocation can express."""


def site(layout: Layout, views: Sequence[PoolView], device: int) -> Site:
    pool = layout.pool_of[device]
    view, position = views[pool], device - layout.offsets[pool]
    return Site(view, view.slices[position], view.devices[position], view.content.shapes[position].resources)


def build_results(
    layout: Layout,
    answer: SearchAnswer,
    views: Sequence[PoolView],
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    node: str,
    new_uid: Callable[[], str] | None,
) -> tuple[AllocationResult, ...]:
    """One AllocationResult per claim, in order. Without `new_uid`, shares are named after claim and device."""
    plan = layout.plan
    sites: list[list[Site]] = [[] for _ in claims]
    results: list[list[DeviceRequestAllocationResult]] = [[] for _ in claims]
    for pick in answer.picks:
        wanted, found = plan.alternatives[pick.alternative], site(layout, views, pick.device)
        sites[wanted.claim].append(found)
        share = None
        if pick.consumed is not None:
            share = new_uid() if new_uid else _share_id(claims[wanted.claim], len(results[wanted.claim]), found)
        results[wanted.claim].append(_result(plan, wanted, found, share))
    chosen = [plan.alternatives[index] for index in answer.chosen]
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(results[number]),
                config=tuple(_config([each for each in chosen if each.claim == number], claim, classes)),
            ),
            node_selector=_node_selector(sites[number], node),
        )
        for number, claim in enumerate(claims)
    )


def _share_id(claim: ResourceClaim, number: int, found: Site) -> str:
    """An id in the form of a uid that depends on nothing but what it names: the same allocation, the same ids."""
    meta = claim.metadata
    named = (meta.uid or f"{meta.namespace}/{meta.name}", str(number), *found.view.key, found.device.name)
    digest = sha256("\0".join(named).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _result(plan: Plan, wanted: Alternative, found: Site, share: str | None) -> DeviceRequestAllocationResult:
    device = found.device
    binding = plan.features.binding
    return DeviceRequestAllocationResult(
        request=wanted.full_name,
        driver=found.view.key[0],
        pool=found.view.key[1],
        device=device.name,
        admin_access=True if wanted.admin else None,
        tolerations=wanted.tolerations,
        binding_conditions=device.binding_conditions if binding else (),
        binding_failure_conditions=device.binding_failure_conditions if binding else (),
        share_id=share,
        consumed_capacity=_consumed(plan, wanted, found) if share is not None else {},
    )


def _consumed(plan: Plan, wanted: Alternative, found: Site) -> Mapping[str, Quantity]:
    """The same for all devices of a kind: asked once."""
    key = (wanted.index, found.resources)
    consumed = plan.consumed.get(key)
    if consumed is None:
        # Kinds of devices that are gone would stay.
        if len(plan.consumed) >= _MAX_KINDS:
            plan.consumed.clear()
        consumed = consumption(wanted.capacity, found.device.capacity, driver=found.view.key[0]) or {}
        plan.consumed[key] = consumed
    return consumed


def _config(
    chosen: Sequence[Alternative], claim: ResourceClaim, classes: Mapping[str, DeviceClass]
) -> list[DeviceAllocationConfiguration]:
    """Classes first, each once with all requests that use it; then the claim's own, once per request that it names."""
    users: dict[str, list[str]] = {}
    for each in chosen:
        users.setdefault(each.class_of(claim), []).append(each.full_name)
    config = [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=tuple(names), opaque=each.opaque)
        for name, names in users.items()
        for each in classes[name].spec.config
    ]
    for own in claim.spec.devices.config:
        listed = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=own.requests, opaque=own.opaque)
        named = [each for each in chosen if each.name in own.requests or each.full_name in own.requests]
        # Once per request that it names, as upstream lists it.
        config += [listed] * (len(named) if own.requests else 1)
    return config


def _node_selector(sites: Sequence[Site], node: str) -> NodeSelector | None:
    """Where the devices can be used: one node, the nodes that all their selectors accept, or (None) everywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    known: NodeSelector | None = None
    for _, each, device, _ in sites:
        per_device = bool(each.spec.per_device_node_selection)
        name = device.node_name if per_device else each.spec.node_name
        selector = device.node_selector if per_device else each.spec.node_selector
        # One device that is bound to a node binds the whole allocation to it.
        if name is not None or device.binds_to_node:
            return _only(node)
        if selector is known:  # of the same slice
            continue
        known = selector
        for term in _single_term(selector):
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions)),)
    )


def _only(node: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=_NAME_FIELD, operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def _single_term(selector: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    terms = selector.node_selector_terms if selector else ()
    # Terms are alternatives. Several devices would need all combinations, which a selector cannot express.
    if len(terms) > 1:
        raise UnsupportedNodeSelectorError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
    return terms


def _add_new(known: list[NodeSelectorRequirement], more: Sequence[NodeSelectorRequirement]) -> None:
    """Requirements that say the same, whatever the order of their values, are listed once."""
    for each in more:
        plain = msgspec.structs.replace(each, values=tuple(sorted(set(each.values))))
        if all(msgspec.structs.replace(other, values=tuple(sorted(set(other.values)))) != plain for other in known):
            known.append(each)
