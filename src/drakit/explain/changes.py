"""Changes that could make a pod fit: to its claims, its classes, nodes or the pod itself. Pure.

In:  a cluster, a pod, the claims that have to be allocated for it.
Out: changes, not yet tried: `suggestions` finds out which of them help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from drakit.allocator import Inventory
from drakit.api import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceToleration,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    Pod,
    ResourceClaim,
)
from drakit.api.requests import sub_request_name
from drakit.base.structs import Model
from drakit.base.taints import BLOCKING_EFFECTS, EXISTS, Toleration, untolerated
from drakit.explain.cluster import ClusterObjects
from drakit.explain.proposals import Change, Proposal

Asked = ExactDeviceRequest | DeviceSubRequest
EditAsked = Callable[[Asked], Asked]
_MAX_CLASSES = 20
_MAX_NODES = 50


def claim_changes(cluster: ClusterObjects, inventory: Inventory, claim: ResourceClaim) -> Iterator[Change]:
    """Changes to what a claim asks for, the mildest first."""
    for request in claim.spec.devices.requests:
        for name, asked in _parts(request):
            yield from _tolerations(inventory, claim, request.name, name, asked)
    for request in claim.spec.devices.requests:
        for name, asked in _parts(request):
            yield from _classes(cluster, claim, request.name, name, asked)
            yield from _counts(claim, request.name, name, asked)
            yield from _capacities(claim, request.name, name, asked)
    yield from _constraints(claim)
    for request in claim.spec.devices.requests:
        for name, asked in _parts(request):
            yield from _selectors(claim, request.name, name, asked)


def _parts(request: DeviceRequest) -> list[tuple[str, Asked]]:
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(sub_request_name(request.name, each.name), each) for each in request.first_available]


def _tolerations(inventory: Inventory, claim: ResourceClaim, request: str, name: str, asked: Asked) -> Iterator[Change]:
    taints = (
        untolerated(each, asked.tolerations)
        for node in inventory.nodes
        for view in inventory.views(node)
        for each in view.content.taints
    )
    for taint in dict.fromkeys(each for each in taints if each is not None):
        added = DeviceToleration(key=taint.key, operator=EXISTS, effect=taint.effect)
        value = f"={taint.value}" if taint.value else ""
        text = f"a toleration of {taint.key}{value}:{taint.effect} in request {name} of claim {claim.metadata.name}"
        yield Change("toleration", text, _edit(claim, request, name, _tolerating(added)))


def _classes(cluster: ClusterObjects, claim: ResourceClaim, request: str, name: str, asked: Asked) -> Iterator[Change]:
    others = sorted(each.metadata.name for each in cluster.all(DeviceClass))
    for other in [each for each in others if each != asked.device_class_name][:_MAX_CLASSES]:
        text = f"class {other} instead of {asked.device_class_name} in request {name} of claim {claim.metadata.name}"
        yield Change("alternative", text, _edit(claim, request, name, _with(device_class_name=other)))


def _counts(claim: ResourceClaim, request: str, name: str, asked: Asked) -> Iterator[Change]:
    if asked.allocation_mode == "All":
        text = f"one device instead of all in request {name} of claim {claim.metadata.name}"
        one = _with(allocation_mode="ExactCount", count=1)
        yield Change("count", text, _edit(claim, request, name, one))
        return
    # From the top: the first count that fits takes the least away from the user.
    for number in range((asked.count or 1) - 1, 0, -1):
        text = f"{number} instead of {asked.count} devices in request {name} of claim {claim.metadata.name}"
        yield Change("count", text, _edit(claim, request, name, _with(count=number)))


def _capacities(claim: ResourceClaim, request: str, name: str, asked: Asked) -> Iterator[Change]:
    if asked.capacity is not None and asked.capacity.requests:
        amounts = ", ".join(f"{key}={value}" for key, value in asked.capacity.requests.items())
        text = f"request {name} of claim {claim.metadata.name} without its capacity ({amounts})"
        yield Change("capacity", text, _edit(claim, request, name, _with(capacity=None)))


def _selectors(claim: ResourceClaim, request: str, name: str, asked: Asked) -> Iterator[Change]:
    for position, each in enumerate(asked.selectors):
        shown = each.cel.expression if each.cel else ""
        text = f"selector #{position} of request {name} of claim {claim.metadata.name} dropped: {shown}"
        yield Change("selector", text, _edit(claim, request, name, _unselecting(each)))


def _constraints(claim: ResourceClaim) -> Iterator[Change]:
    for position, each in enumerate(claim.spec.devices.constraints):
        name = each.match_attribute or each.distinct_attribute
        text = f"constraint #{position} of claim {claim.metadata.name} dropped: {name}"

        # Bound as a default: the loop variable has another value by the time the change is applied.
        def apply(proposal: Proposal, one: object = each) -> None:
            found = proposal.find(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
            if found is not None:
                kept = tuple(other for other in found.spec.devices.constraints if other is not one)
                _store(proposal, found, replace(found.spec.devices, constraints=kept))

        yield Change("constraint", text, apply)


def _with(**fields: Any) -> EditAsked:
    return lambda asked: replace(asked, **fields)


def _tolerating(taint: DeviceToleration) -> EditAsked:
    return lambda asked: replace(asked, tolerations=(*asked.tolerations, taint))


def _unselecting(selector: DeviceSelector) -> EditAsked:
    return lambda asked: replace(asked, selectors=tuple(each for each in asked.selectors if each is not selector))


def _edit(claim: ResourceClaim, request: str, name: str, edit: EditAsked) -> Callable[[Proposal], None]:
    """Edit one request, or one alternative of it, of the claim as the proposal has it."""

    def apply(proposal: Proposal) -> None:
        found = proposal.find(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
        if found is not None:
            devices = found.spec.devices
            requests = (_edited(each, name, edit) if each.name == request else each for each in devices.requests)
            _store(proposal, found, replace(devices, requests=tuple(requests)))

    return apply


def _edited(request: DeviceRequest, name: str, edit: EditAsked) -> DeviceRequest:
    if request.exactly is not None:
        return replace(request, exactly=edit(request.exactly))
    subs = (
        edit(each) if sub_request_name(request.name, each.name) == name else each for each in request.first_available
    )
    return replace(request, first_available=tuple(subs))


def _store(proposal: Proposal, claim: ResourceClaim, devices: DeviceClaim) -> None:
    proposal.store(replace(claim, spec=replace(claim.spec, devices=devices)))


def class_changes(cluster: ClusterObjects, names: Iterable[str]) -> Iterator[Change]:
    """Changes to the requested classes: create one that is missing, or drop a selector of one that exists."""
    for name in dict.fromkeys(names):
        known = cluster.find(DeviceClass, name)
        if known is None:
            made = DeviceClass(metadata=ObjectMeta(name=name))
            yield Change("class", f"a DeviceClass {name}", _storing(made))
            continue
        for position, each in enumerate(known.spec.selectors):
            shown = each.cel.expression if each.cel else ""

            # Bound as defaults, for the same reason as in `_constraints`.
            def apply(proposal: Proposal, called: str = name, one: object = each) -> None:
                found = proposal.find(DeviceClass, called)
                if found is not None:
                    kept = tuple(other for other in found.spec.selectors if other is not one)
                    proposal.store(replace(found, spec=replace(found.spec, selectors=kept)))

            yield Change("selector", f"selector #{position} of class {name} dropped: {shown}", apply)


def _storing(obj: Model) -> Callable[[Proposal], None]:
    return lambda proposal: proposal.store(obj)


def _removing(obj: Model) -> Callable[[Proposal], None]:
    return lambda proposal: proposal.remove(obj)


def _pod_tolerating(taint: Toleration) -> Callable[[Proposal], None]:
    return lambda proposal: proposal.change_pod(tolerations=(*proposal.pod.spec.tolerations, taint))


def rule_changes(cluster: ClusterObjects) -> Iterator[Change]:
    for rule in sorted(cluster.all(DeviceTaintRule), key=lambda each: each.metadata.name):
        taint = rule.spec.taint
        if taint.effect in BLOCKING_EFFECTS:
            text = f"DeviceTaintRule {rule.metadata.name} ({taint.key}:{taint.effect}) removed"
            yield Change("taint-rule", text, _removing(rule))


def pod_changes(cluster: ClusterObjects, pod: Pod) -> Iterator[Change]:
    """Changes to the pod itself."""
    name = pod.metadata.name
    if pod.spec.scheduling_gates:
        gates = ", ".join(each.name for each in pod.spec.scheduling_gates)
        text = f"the scheduling gates of pod {name} removed: {gates}"
        yield Change("gate", text, lambda proposal: proposal.change_pod(scheduling_gates=()))
    nodes = [node for node in cluster.all(Node) if node.spec.taints]
    for taint in dict.fromkeys(t for node in nodes for t in node.spec.taints if t.effect in BLOCKING_EFFECTS):
        if untolerated((taint,), pod.spec.tolerations) is not None:
            added = Toleration(key=taint.key, operator=EXISTS, effect=taint.effect)
            text = f"a toleration of the node taint {taint.key}:{taint.effect} in pod {name}"
            yield Change("toleration", text, _pod_tolerating(added))
    if pod.spec.node_selector:
        text = f"pod {name} without its nodeSelector"
        yield Change("node-selector", text, lambda proposal: proposal.change_pod(node_selector={}))
    if pod.spec.affinity is not None:
        yield Change(
            "affinity", f"pod {name} without its affinity", lambda proposal: proposal.change_pod(affinity=None)
        )


def node_changes(cluster: ClusterObjects) -> Iterator[Change]:
    """Changes to nodes, after which they take pods again."""
    cordoned = [node for node in cluster.all(Node) if node.spec.unschedulable]
    for node in sorted(cordoned, key=lambda each: each.metadata.name)[:_MAX_NODES]:

        def apply(proposal: Proposal, name: str = node.metadata.name) -> None:
            found = proposal.find(Node, name)
            if found is not None:
                taints = tuple(t for t in found.spec.taints if t.key != "node.kubernetes.io/unschedulable")
                proposal.store(replace(found, spec=replace(found.spec, unschedulable=False, taints=taints)))

        yield Change("uncordon", f"node {node.metadata.name} uncordoned", apply)
