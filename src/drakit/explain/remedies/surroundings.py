"""Changes to what is around claims: the pods themselves, their group, classes, nodes, taint rules. Pure.

In:  a cluster, the pods that wait.
Out: changes, not yet tried: `trials` finds out which of them help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from drakit.api import DeviceClass, DeviceTaintRule, Node, ObjectMeta, Pod, PodGroup, ResourceClaim
from drakit.api.objects.workloads import BasicSchedulingPolicy, PodGroupSchedulingPolicy, PodGroupSpec
from drakit.api.podclaims import claim_names, pod_group_name
from drakit.base.structs import Model
from drakit.base.taints import BLOCKING_EFFECTS, EXISTS, Toleration, untolerated
from drakit.explain.cluster import ClusterObjects
from drakit.explain.nodekinds import template_class
from drakit.explain.remedies.proposals import Change, EditPod, Proposal
from drakit.scheduler.podgroups.groups import least

_MAX_NODES = 50
_MAX_NAMES = 3


def pod_changes(cluster: ClusterObjects, pods: Sequence[Pod]) -> Iterator[Change]:
    """Changes to the pods themselves."""
    gates = _distinct(each.name for pod in pods for each in pod.spec.scheduling_gates)
    if gates:
        named = called(pod for pod in pods if pod.spec.scheduling_gates)
        text = f"the scheduling gates of {named} removed: {', '.join(gates)}"
        yield Change("gate", text, _editing(scheduling_gates=()))
    nodes = [node for node in cluster.all(Node) if node.spec.taints]
    for taint in _distinct(each for node in nodes for each in node.spec.taints if each.effect in BLOCKING_EFFECTS):
        strict = [pod for pod in pods if untolerated((taint,), pod.spec.tolerations) is not None]
        if strict:
            added = Toleration(key=taint.key, operator=EXISTS, effect=taint.effect)
            text = f"a toleration of the node taint {taint.key}:{taint.effect} in {called(strict)}"
            yield Change("toleration", text, _pods_tolerating(added))
    yield from _loosened(pods, "node-selector", "nodeSelector", node_selector={})
    yield from _loosened(pods, "affinity", "affinity", affinity=None)
    yield from _loosened(pods, "spread", "topologySpreadConstraints", topology_spread_constraints=())


def _loosened(pods: Sequence[Pod], kind: str, field: str, **fields: Any) -> Iterator[Change]:
    [name] = fields
    bound = [pod for pod in pods if getattr(pod.spec, name)]
    if bound:
        its = "its" if len(bound) == 1 else "their"
        yield Change(kind, f"{called(bound)} without {its} {field}", _editing(**fields))


def group_changes(cluster: ClusterObjects, pods: Sequence[Pod]) -> Iterator[Change]:
    """A group that is missing, or one that needs fewer pods at once."""
    for namespace, name in _distinct((pod.metadata.namespace, pod_group_name(pod)) for pod in pods):
        group = cluster.find(PodGroup, name, namespace) if name is not None else None
        if name is not None and group is None:
            policy = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
            made = PodGroup(
                metadata=ObjectMeta(name=name, namespace=namespace), spec=PodGroupSpec(scheduling_policy=policy)
            )
            yield Change("group", f"a PodGroup {name}", _storing(made))
        if group is not None and group.spec.scheduling_policy.gang is not None:
            yield from _min_counts(group)


def _min_counts(group: PodGroup) -> Iterator[Change]:
    gang, name = group.spec.scheduling_policy.gang, group.metadata.name
    for number in range(least(group) - 1, 0, -1):
        policy = PodGroupSchedulingPolicy(gang=replace(gang, min_count=number))  # type: ignore[type-var]
        changed = replace(group, spec=replace(group.spec, scheduling_policy=policy))
        yield Change("min-count", f"minCount {number} instead of {least(group)} in PodGroup {name}", _storing(changed))


def class_changes(cluster: ClusterObjects, names: Iterable[str]) -> Iterator[Change]:
    """Changes to the requested classes: create one that is missing, or drop a selector of one that exists."""
    for name in _distinct(names):
        known = cluster.find(DeviceClass, name)
        if known is None:
            template, offered = template_class(cluster, name)
            told = f", that of template {template}" if template else ""
            yield Change("class", f"a DeviceClass {name}{told}", _storing(offered))
            continue
        for position, each in enumerate(known.spec.selectors):
            shown = each.cel.expression if each.cel else ""

            # Bound as defaults: the loop variables have other values by the time the change is applied.
            def apply(proposal: Proposal, called: str = name, one: object = each) -> None:
                found = proposal.find(DeviceClass, called)
                if found is not None:
                    kept = tuple(other for other in found.spec.selectors if other is not one)
                    proposal.store(replace(found, spec=replace(found.spec, selectors=kept)))

            yield Change("selector", f"selector #{position} of class {name} dropped: {shown}", apply)


def rule_changes(cluster: ClusterObjects) -> Iterator[Change]:
    for rule in sorted(cluster.all(DeviceTaintRule), key=lambda each: each.metadata.name):
        taint = rule.spec.taint
        if taint.effect in BLOCKING_EFFECTS:
            text = f"DeviceTaintRule {rule.metadata.name} ({taint.key}:{taint.effect}) removed"
            yield Change("taint-rule", text, _removing(rule))


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


def freed_claims(cluster: ClusterObjects, pods: Sequence[Pod]) -> Iterator[Change]:
    """Claims of the pods that have devices already, somewhere where the pods cannot go: taken from their users."""
    keys = _distinct((pod.metadata.namespace, name) for pod in pods for name in claim_names(pod).values())
    for namespace, name in keys:
        claim = cluster.find(ResourceClaim, name, namespace)
        if claim is None or claim.status.allocation is None:
            continue
        users = [pod for each in claim.status.reserved_for if (pod := cluster.pods_by_uid.get(each.uid)) is not None]
        gone = f": {called(users)} gone" if users else ""
        text = f"claim {name} without the devices that it has{gone}"
        yield Change("claim", text, _freeing(claim, users))


def called(pods: Iterable[Pod]) -> str:
    names = [pod.metadata.name for pod in pods]
    more = f", … {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"pod{'s' * (len(names) > 1)} {', '.join(names[:_MAX_NAMES])}{more}"


def _distinct(found: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(found))


def _freeing(claim: ResourceClaim, users: Sequence[Pod]) -> Callable[[Proposal], None]:
    def apply(proposal: Proposal) -> None:
        proposal.evict(users)
        proposal.free(claim)

    return apply


def _storing(obj: Model) -> Callable[[Proposal], None]:
    return lambda proposal: proposal.store(obj)


def _removing(obj: Model) -> Callable[[Proposal], None]:
    return lambda proposal: proposal.remove(obj)


def _editing(**fields: Any) -> Callable[[Proposal], None]:
    edit: EditPod = lambda spec: replace(spec, **fields)  # noqa: E731 - typed where it is made
    return lambda proposal: proposal.change_pods(edit)


def _pods_tolerating(taint: Toleration) -> Callable[[Proposal], None]:
    edit: EditPod = lambda spec: replace(spec, tolerations=(*spec.tolerations, taint))  # noqa: E731 - as above
    return lambda proposal: proposal.change_pods(edit)
