"""Nodes and the pods on them, as the scheduler sees them between two attempts.

In:  nodes and bound pods as informers deliver them; pods that the scheduler has decided about (`assume`).
Out: `NodeInfo`s, immutable, in the order of the search. A change costs what changed, however many nodes there are.

An assumed pod counts like a bound one until an informer confirms it (`put_pod`), or the scheduler takes its decision
back (`forget`). Informers may deliver in any order between kinds: a pod may come before its node, and outlive it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.scheduler.cache.order import NodeOrder
from drakit.scheduler.framework.nodes import NodeInfo

NameKey = tuple[str, str]


class SchedulerCache:
    """Implements `Nodes`. `count_claims`: what claims take of a node counts, as the status of a pod tells it.

    Invariant: a pod is on one node, or waits for one node to come; of pods with the same name only the latest is kept.
    """

    def __init__(self, *, count_claims: bool = True) -> None:
        self._count_claims = count_claims
        self._infos: dict[str, NodeInfo] = {}
        self._pods: dict[str, Pod] = {}
        self._uids: dict[NameKey, str] = {}
        self._assumed: set[str] = set()
        self._homeless: dict[str, dict[str, Pod]] = {}
        self.affine: dict[str, int] = {}
        """How many pods of each node have affinity or anti-affinity to other pods; nodes without one are not here."""
        self.tainted: set[str] = set()
        self.cordoned: set[str] = set()
        self.advertised: Counter[str] = Counter()
        """How many nodes themselves have more than none of each extended resource; those that none has are not here."""
        self._order = NodeOrder()
        self._listed: list[NodeInfo] = []
        self._positions: dict[str, int] = {}
        self._is_listed = True

    # Reading

    def get(self, name: str) -> NodeInfo | None:
        return self._infos.get(name)

    def all(self) -> list[NodeInfo]:
        """In the order of the search. The list is the caller's own: it does not follow what happens later."""
        if not self._is_listed:
            self._listed = [self._infos[name] for name in self._order.names()]
            self._positions = {info.name: at for at, info in enumerate(self._listed)}
            self._is_listed = True
        # Copying references is cheap; the order is worked out again only after nodes came, went or changed their zone.
        return self._listed.copy()

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self.all())

    def placed(self) -> Iterable[Pod]:
        return self._pods.values()

    def pod(self, uid: str) -> Pod | None:
        """The pod as it counts: bound or assumed."""
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def pod_count(self) -> int:
        """Pods that count, the assumed ones included."""
        return len(self._pods)

    @property
    def assumed(self) -> list[Pod]:
        """Pods that the scheduler has decided about, and that nobody has seen bound yet."""
        return [self._pods[uid] for uid in sorted(self._assumed)]

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    # Nodes

    def put_node(self, node: Node) -> None:
        """A node that is new or has changed. Pods that waited for it are on it from now on."""
        name = node.metadata.name
        known = self._infos.get(name)
        if known is not None:
            info = known.with_node(node)
        else:
            info = NodeInfo(node)
            for pod in self._homeless.pop(name, {}).values():
                info = info.with_pod(pod)
        if known is None or known.allocatable is not info.allocatable:
            self._count_advertised(known, info)
        _set(self.tainted, name, on=bool(node.spec.taints))
        _set(self.cordoned, name, on=node.spec.unschedulable)
        moved = self._order.put(node)
        self._is_listed = self._is_listed and not moved
        self._set(info)

    def remove_node(self, name: str) -> None:
        """The node is gone. Its pods wait for their own end, or for a node of that name to come back."""
        info = self._infos.pop(name, None)
        if info is None:
            return
        self._count_advertised(info, None)
        self.tainted.discard(name)
        self.cordoned.discard(name)
        self._order.remove(name)
        self._is_listed = False
        if info.pods:
            # Informers of nodes and pods are not in step: the pods' own events may come much later.
            self._homeless[name] = dict(info.pods)

    def _count_advertised(self, old: NodeInfo | None, new: NodeInfo | None) -> None:
        for name in _extended_of(old):
            self.advertised[name] -= 1
            if not self.advertised[name]:
                del self.advertised[name]
        self.advertised.update(_extended_of(new))

    # Pods

    def put_pod(self, pod: Pod) -> None:
        """A bound pod as an informer sees it; confirms an assumed one, also one that ended up elsewhere.

        A pod that has ended takes nothing any more. One that is not bound says nothing about nodes.
        """
        if pod.is_terminal:
            self.remove_pod(pod.metadata.uid)
        elif pod.spec.node_name:
            self._assumed.discard(pod.metadata.uid)
            self._place(pod)

    def remove_pod(self, uid: str) -> None:
        """The pod is gone, bound or assumed; nothing to do for one that is not known."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._assumed.discard(uid)
        name = (pod.metadata.namespace, pod.metadata.name)
        if self._uids.get(name) == uid:
            del self._uids[name]
        self._leave(pod)

    def assume(self, pod: Pod) -> None:
        """Count a pod on `spec.node_name` although nobody has bound it yet."""
        if not pod.spec.node_name:
            raise ValueError(f"pod {pod.metadata.namespace}/{pod.metadata.name} cannot be assumed: it has no node")
        known = self._pods.get(pod.metadata.uid)
        # A pod that an informer has confirmed is bound: an assumption must not move it.
        if known is None or pod.metadata.uid in self._assumed:
            self._assumed.add(pod.metadata.uid)
            self._place(pod)

    def forget(self, uid: str) -> None:
        """Take an assumption back. A pod that was confirmed meanwhile is bound, and stays."""
        if uid in self._assumed:
            self.remove_pod(uid)

    def _place(self, pod: Pod) -> None:
        if not self._count_claims:
            pod = _without_claims(pod)
        uid, name = pod.metadata.uid, (pod.metadata.namespace, pod.metadata.name)
        # A pod of the same name and another uid: the informer has not told of the deletion yet.
        namesake = self._uids.get(name)
        if namesake is not None and namesake != uid:
            self.remove_pod(namesake)
        before = self._pods.get(uid)
        if before is not None and before.spec.node_name != pod.spec.node_name:
            self._leave(before)
            before = None
        if before is None:
            self._count_affine(pod, 1)
        self._pods[uid] = pod
        self._uids[name] = uid
        info = self._infos.get(pod.spec.node_name)
        if info is None:
            self._homeless.setdefault(pod.spec.node_name, {})[uid] = pod
        else:
            self._set(info.with_pod(pod))

    def _count_affine(self, pod: Pod, sign: int) -> None:
        affinity, name = pod.spec.affinity, pod.spec.node_name
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return
        count = self.affine.get(name, 0) + sign
        if count:
            self.affine[name] = count
        else:
            del self.affine[name]

    def _leave(self, pod: Pod) -> None:
        name, uid = pod.spec.node_name, pod.metadata.uid
        self._count_affine(pod, -1)
        info = self._infos.get(name)
        if info is not None:
            self._set(info.without_pod(uid))
        elif waiting := self._homeless.get(name):
            waiting.pop(uid, None)
            if not waiting:
                del self._homeless[name]

    def _set(self, info: NodeInfo) -> None:
        self._infos[info.name] = info
        if self._is_listed:
            self._listed[self._positions[info.name]] = info


def _set(names: set[str], name: str, *, on: bool) -> None:
    if on:
        names.add(name)
    else:
        names.discard(name)


def _extended_of(node: NodeInfo | None) -> list[str]:
    """The extended resources that a node advertises."""
    return [name for name, amount in node.allocatable.items() if amount and "/" in name] if node is not None else []


def _without_claims(pod: Pod) -> Pod:
    """The pod as it counts where nothing is known of claims that take something of a node."""
    if not pod.status.node_allocatable_resource_claim_statuses:
        return pod
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=())
    return msgspec.structs.replace(pod, status=status)
