"""What files leave out and a server would add, so that the scheduler can be asked about them. Pure.

In:  objects as somebody saved or wrote them.
Out: the same cluster with uids, with a node for each that only slices name, with the claims that the claim controller
     would have made of templates. What a server has seen (it has a uid) stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from drakit.api import Node, ObjectMeta, Partial, Pod, PodGroup, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drakit.api.objects.cluster import NodeStatus
from drakit.api.objects.pods import PodResourceClaimStatus
from drakit.api.objects.workloads import PodGroupResourceClaimStatus
from drakit.api.podclaims import matching_group_claim, pod_group_name
from drakit.api.templateclaims import claim_of
from drakit.base.quantity import Quantity
from drakit.base.wellknown import POD_CLAIM_ANNOTATION
from drakit.explain.cluster import ClusterObjects

DEFAULT_SCHEDULER = "default-scheduler"
PLENTY = {
    "cpu": Quantity.parse("1k"),
    "memory": Quantity.parse("1Pi"),
    "ephemeral-storage": Quantity.parse("1Pi"),
    "pods": Quantity.parse("110"),
}
"""What a node has whose file does not say: nobody asks about its cpu then."""


def completed(cluster: ClusterObjects) -> ClusterObjects:
    """Fill in uids, nodes and generated claims. Idempotent."""
    # Uids first: generated claims name the uid of their owner.
    with_uids = cluster.with_changes([*_nodes(cluster), *_identified(cluster)])
    return with_uids.with_changes(_generated(with_uids))


def _nodes(cluster: ClusterObjects) -> Iterator[Any]:
    known = {node.metadata.name: node for node in cluster.all(Node)}
    for each in cluster.all(ResourceSlice):
        if each.spec.node_name and each.spec.node_name not in known:
            known[each.spec.node_name] = Node(metadata=ObjectMeta(name=each.spec.node_name))
    for node in known.values():
        if not node.metadata.uid and not node.status.allocatable:
            yield replace(node, status=NodeStatus(allocatable=PLENTY, capacity=PLENTY))


def _identified(cluster: ClusterObjects) -> Iterator[Any]:
    """Pods, groups and claims, each with a uid. If a claim is reserved for a pod, the pod gets the uid named there."""
    reserved = {
        (claim.metadata.namespace, each.resource, each.name): each.uid
        for claim in cluster.all(ResourceClaim)
        for each in claim.status.reserved_for
    }
    kinds: tuple[tuple[type[Any], str], ...] = ((Pod, "pods"), (PodGroup, "podgroups"), (ResourceClaim, "claims"))
    for kind, plural in kinds:
        for each in cluster.whole(kind):
            view = each.view if isinstance(each, Partial) else each
            metadata = view.metadata
            if not metadata.uid:
                uid = reserved.get((metadata.namespace, plural, metadata.name))
                made = uid or f"uid-{plural}-{metadata.namespace}-{metadata.name}"
                changed = replace(view, metadata=replace(metadata, uid=made))
                if kind is Pod and not changed.spec.scheduler_name:
                    changed = replace(changed, spec=replace(changed.spec, scheduler_name=DEFAULT_SCHEDULER))
                yield Partial(each.document, changed) if isinstance(each, Partial) else changed


def _generated(cluster: ClusterObjects) -> Iterator[Any]:
    """Claims from templates for pods and groups of files: no claim controller has ever seen them."""
    groups: dict[tuple[str, str], PodGroup] = {}
    for group in cluster.all(PodGroup):
        made = list(_claims(cluster, group, group.spec.resource_claims))
        names = {each.metadata.annotations[POD_CLAIM_ANNOTATION]: each.metadata.name for each in made}
        groups[group.metadata.namespace, group.metadata.name] = _recorded(group, names)
        yield from made
        if made:
            yield groups[group.metadata.namespace, group.metadata.name]
    for whole in cluster.whole(Pod):
        pod = whole.view if isinstance(whole, Partial) else whole
        own_group = groups.get((pod.metadata.namespace, pod_group_name(pod) or ""))
        shared = _shared(pod, own_group)
        entries = [each for each in pod.spec.resource_claims if each.name not in shared]
        made = list(_claims(cluster, pod, entries))
        yield from made
        names = shared | {each.metadata.annotations[POD_CLAIM_ANNOTATION]: each.metadata.name for each in made}
        if names:
            changed = _recorded(pod, names)
            yield Partial(whole.document, changed) if isinstance(whole, Partial) else changed


def _claims(cluster: ClusterObjects, owner: Any, entries: Any) -> Iterator[ResourceClaim]:
    known = {each.name for each in owner.status.resource_claim_statuses}
    # The uid is from a server (only ours begin with uid-): there the claim controller decides which claims exist.
    if not owner.metadata.uid.startswith("uid-"):
        return
    for entry in entries:
        name, namespace = entry.resource_claim_template_name, owner.metadata.namespace
        template = cluster.find(ResourceClaimTemplate, name, namespace) if name else None
        if template is None or entry.name in known:
            continue
        claim = claim_of(template, owner, entry.name)
        called = f"{owner.metadata.name}-{entry.name}"
        uid = f"uid-claims-{namespace}-{called}"
        yield replace(claim, metadata=replace(claim.metadata, name=called, uid=uid, generate_name=""))


def _shared(pod: Pod, group: PodGroup | None) -> dict[str, str]:
    """The pod's claim entries that its group provides, with the names of the group's claims."""
    if group is None:
        return {}
    names = {each.name: each.resource_claim_name for each in group.status.resource_claim_statuses}
    known = {each.name for each in pod.status.resource_claim_statuses}
    found = ((entry.name, matching_group_claim(group, entry)) for entry in pod.spec.resource_claims)
    there = ((name, shared.name) for name, shared in found if shared is not None and name not in known)
    return {name: names[entry] or "" for name, entry in there if entry in names}


def _recorded(owner: Any, names: dict[str, str]) -> Any:
    status = PodResourceClaimStatus if isinstance(owner, Pod) else PodGroupResourceClaimStatus
    added = tuple(status(name=entry, resource_claim_name=name) for entry, name in names.items())
    statuses = (*owner.status.resource_claim_statuses, *added)
    return replace(owner, status=replace(owner.status, resource_claim_statuses=statuses))
