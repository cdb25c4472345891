"""What if: a cluster with changes, and what the scheduler would make of it. Pure.

In:  a cluster and a `WhatIf`.
Out: which pods fit where, in which order; what stays pending and why; how much is used before and after; and how few
     nodes of a kind are enough for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from drakit.api import (
    DeviceTaintRule,
    Node,
    ObjectMeta,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    set_defaults,
)
from drakit.api.codec.documents import decode_plain
from drakit.api.objects.taintrules import DeviceTaintRuleSpec, DeviceTaintSelector
from drakit.base.errors import UsageError
from drakit.base.taints import DeviceTaint, tolerates
from drakit.explain.cluster import ClusterObjects
from drakit.explain.completion import completed
from drakit.explain.nodekinds import NodeKind, kind_of_documents, kind_of_node, new_nodes
from drakit.explain.questions import Document, PodPlacement, WhatIf, WhatIfAnswer
from drakit.explain.queue import PendingPods, Progress
from drakit.explain.utilisation import utilisation
from drakit.scheduler.rehearsal import Rehearsal, given_back

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""A fixed time for creationTimestamp and the like. No answer depends on it."""
_MOST_NODES = 1000
_EXECUTE = "NoExecute"


def what_if(cluster: ClusterObjects, question: WhatIf, *, progress: Progress | None = None) -> WhatIfAnswer:
    """Raise UsageError for a node, pod or device that is not there."""
    return _Plan(completed(cluster), question).answer(progress)


class _Plan:
    def __init__(self, cluster: ClusterObjects, question: WhatIf) -> None:
        self._before = cluster
        self._question = question
        self._moved: dict[tuple[str, str], str] = {}
        self._added: list[str] = []
        self._cluster = self._changed(cluster)

    def answer(self, progress: Progress | None) -> WhatIfAnswer:
        needed: int | None = None
        hopeless: tuple[str, ...] = ()
        cluster = self._cluster
        if self._question.smallest:
            kind = self._kind(self._question.smallest)
            needed, hopeless = self._smallest(kind)
            cluster = self._with_nodes(cluster, kind, needed)
        rehearsal = cluster.rehearsal()
        found = PendingPods(rehearsal, self._moved).place_all(progress)
        return WhatIfAnswer(
            placed=tuple(each for each in found if each.node),
            pending=tuple(each for each in found if not each.node),
            before=utilisation(self._before),
            after=utilisation(_objects(rehearsal, cluster)),
            added=tuple(self._added),
            needed=needed,
            hopeless=hopeless,
        )

    # The fewest nodes

    def _smallest(self, kind: NodeKind) -> tuple[int, tuple[str, ...]]:
        """The fewest nodes of the kind with which every pod fits that can fit at all; and the pods that cannot."""
        waiting = len(self._left(0, kind))
        # A node for each pod is the most that can help: with more, some nodes would stay empty.
        most = min(waiting, _MOST_NODES)
        hopeless = self._left(most, kind)
        low, high = 0, most
        # Bisection, which takes for granted that one node more never makes fewer pods fit.
        while low < high:
            middle = (low + high) // 2
            if len(self._left(middle, kind)) <= len(hopeless):
                high = middle
            else:
                low = middle + 1
        return high, tuple(f"{each.namespace}/{each.name}" for each in hopeless)

    def _left(self, number: int, kind: NodeKind) -> list[PodPlacement]:
        """The pods that stay pending with so many nodes more."""
        rehearsal = self._with_nodes(self._cluster, kind, number, named=False).rehearsal()
        return [each for each in PendingPods(rehearsal).place_all() if not each.node]

    # The changes

    def _changed(self, cluster: ClusterObjects) -> ClusterObjects:
        asked = self._question
        for name, number in asked.add_nodes.items():
            cluster = self._with_nodes(cluster, self._kind(name), number)
        # Defaults as a server sets them: the scheduler relies on them.
        put = [set_defaults(decode_plain(each).object, _NOW) for each in asked.put]
        cluster = completed(cluster.with_changes(put))
        cluster = cluster.with_changes(_renewed(cluster, put))
        cluster = _without_pods(cluster, [_pod(cluster, each) for each in asked.evict])
        # Pods leave the node before it goes, so that their claims are free and they are tried elsewhere.
        for name in asked.remove_nodes:
            cluster = self._emptied(cluster, name)
            gone = [each for each in cluster.all(ResourceSlice) if each.spec.node_name == name]
            cluster = cluster.with_changes(remove=[_node(cluster, name), *gone])
        for name in asked.drain:
            cluster = self._emptied(cluster, name)
            node = _node(cluster, name)
            cluster = cluster.with_changes([replace(node, spec=replace(node.spec, unschedulable=True))])
        for number, text in enumerate(asked.taint):
            cluster = self._tainted(cluster, text, number)
        return cluster

    def _with_nodes(
        self, cluster: ClusterObjects, kind: NodeKind, number: int, *, named: bool = True
    ) -> ClusterObjects:
        taken = [node.metadata.name for node in cluster.all(Node)]
        made = new_nodes(kind, number, taken)
        if named:
            self._added += [each.metadata.name for each in made if isinstance(each, Node)]
        return completed(cluster.with_changes(made))

    def _kind(self, name: str) -> NodeKind:
        documents: Sequence[Document] | None = self._question.templates.get(name)
        if documents is None:
            found = kind_of_node(self._before, name)
            if found is not None:
                return found
            documents = self._before.templates.get(name)
        if documents is None:
            raise UsageError(f'"{name}" is neither a node of the cluster nor a template')
        kind = kind_of_documents(name, documents)
        if kind is None:
            raise UsageError(f'template "{name}" has no Node')
        return kind

    def _emptied(self, cluster: ClusterObjects, name: str) -> ClusterObjects:
        """Make the pods of a node pending again. Those of a DaemonSet stay: they belong to the node."""
        _node(cluster, name)
        pods = [pod for pod in cluster.all(Pod) if pod.spec.node_name == name and not pod.is_terminal]
        return self._requeued(cluster, [pod for pod in pods if not _is_of_daemon_set(pod)])

    def _requeued(self, cluster: ClusterObjects, pods: Sequence[Pod]) -> ClusterObjects:
        for pod in pods:
            self._moved[pod.metadata.namespace, pod.metadata.name] = pod.spec.node_name
            claims = [
                claim for claim in cluster.all(ResourceClaim) if claim.metadata.namespace == pod.metadata.namespace
            ]
            changed = [_released(claim, pod) for claim in claims]
            waits = replace(pod, spec=replace(pod.spec, node_name=""), status=replace(pod.status, phase="Pending"))
            cluster = cluster.with_changes([waits, *(each for each in changed if each is not None)])
        return cluster

    def _tainted(self, cluster: ClusterObjects, text: str, number: int) -> ClusterObjects:
        device, _, said = text.partition("=")
        key, _, effect = said.partition(":")
        where = _device(cluster, device)
        taint = DeviceTaint(key=key or "what-if", effect=effect or _EXECUTE)
        selector = DeviceTaintSelector(driver=where[0], pool=where[1], device=where[2])
        rule = DeviceTaintRule(
            metadata=ObjectMeta(name=f"what-if-{number}"),
            spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint),
        )
        cluster = cluster.with_changes([rule])
        return (
            self._requeued(cluster, list(_driven_out(cluster, where, taint))) if taint.effect == _EXECUTE else cluster
        )


def _node(cluster: ClusterObjects, name: str) -> Node:
    found = cluster.find(Node, name)
    if found is None:
        raise UsageError(f'nodes "{name}" not found')
    return found


def _pod(cluster: ClusterObjects, text: str) -> Pod:
    namespace, _, name = text.rpartition("/")
    found = cluster.find(Pod, name, namespace or "default")
    if found is None:
        raise UsageError(f'pods "{name}" not found in namespace {namespace or "default"}')
    return found


def _device(cluster: ClusterObjects, text: str) -> tuple[str, str, str]:
    """Find the one device whose driver/pool/device ends in `text`. Raise UsageError for none or several."""
    names = [
        (each.spec.driver, each.spec.pool.name, device.name)
        for each in cluster.all(ResourceSlice)
        for device in each.spec.devices
    ]
    # With the slash: `gpu-1` must not find `big-gpu-1`.
    found = sorted({each for each in names if f"/{'/'.join(each)}".endswith(f"/{text}")})
    if len(found) != 1:
        more = ", ".join("/".join(each) for each in found[:3])
        raise UsageError(f'device "{text}": ' + (f"which of {len(found)}? {more}, …" if found else "there is none"))
    return found[0]


def _driven_out(cluster: ClusterObjects, device: tuple[str, str, str], taint: DeviceTaint) -> Iterator[Pod]:
    """Pods that use the device and do not tolerate the taint."""
    for claim in cluster.all(ResourceClaim):
        results = claim.status.allocation.devices.results if claim.status.allocation else ()
        mine = [each for each in results if (each.driver, each.pool, each.device) == device]
        if mine and not all(any(tolerates(one, taint) for one in each.tolerations) for each in mine):
            for ref in claim.status.reserved_for:
                pod = cluster.pods_by_uid.get(ref.uid)
                if pod is not None:
                    yield pod


def _without_pods(cluster: ClusterObjects, pods: Sequence[Pod]) -> ClusterObjects:
    for pod in pods:
        claims = [claim for claim in cluster.all(ResourceClaim) if claim.metadata.namespace == pod.metadata.namespace]
        after = [(claim, given_back(claim, pod.metadata.uid)) for claim in claims]
        put = [freed for claim, freed in after if freed is not None and freed is not claim]
        cluster = cluster.with_changes(put, [pod, *(claim for claim, freed in after if freed is None)])
    return cluster


def _released(claim: ResourceClaim, pod: Pod) -> ResourceClaim | None:
    """The claim after the pod left it, ready to be allocated again; None if the pod did not use it."""
    freed = given_back(claim, pod.metadata.uid)
    if freed is None:
        return replace(claim, status=replace(claim.status, reserved_for=(), allocation=None, devices=()))
    return freed if freed is not claim else None


def _renewed(cluster: ClusterObjects, put: Iterable[Any]) -> Iterator[ResourceClaim]:
    """Unallocated claims of pending pods whose template is among the changes, with the new spec."""
    changed = {
        (each.metadata.namespace, each.metadata.name): each for each in put if isinstance(each, ResourceClaimTemplate)
    }
    for pod in cluster.all(Pod) if changed else ():
        named = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims if not pod.spec.node_name else ():
            template = changed.get((pod.metadata.namespace, entry.resource_claim_template_name or ""))
            claim = cluster.find(ResourceClaim, named.get(entry.name) or "", pod.metadata.namespace)
            if template is not None and claim is not None and claim.status.allocation is None:
                yield replace(claim, spec=template.spec.spec)


def _is_of_daemon_set(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _objects(rehearsal: Rehearsal, cluster: ClusterObjects) -> ClusterObjects:
    return ClusterObjects(rehearsal.objects, gates=cluster.gates)
