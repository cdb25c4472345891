"""Changes to a cluster that are only supposed, and the objects as they would be afterwards. Pure.

In:  changes, one after the other; each sees what those before it did.
Out: the objects to put and to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from drakit.api import Pod, ResourceClaim
from drakit.api.objects.pods import PodSpec
from drakit.base.structs import Model
from drakit.explain.answers import ObjectName
from drakit.explain.cluster import ClusterObjects
from drakit.scheduler.rehearsal import given_back

M = TypeVar("M", bound=Model)
ObjectKey = tuple[type[Any], str, str]
EditPod = Callable[[PodSpec], PodSpec]


class Proposal:
    """Supposed changes to a cluster. `pods` are the pods in question, with their changes."""

    def __init__(self, cluster: ClusterObjects, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._before = {_key(pod): pod for pod in pods}
        self._put: dict[ObjectKey, Any] = dict(self._before)
        self._gone: dict[ObjectKey, Any] = {}

    @property
    def pods(self) -> list[Pod]:
        return [self._put[key] for key in self._before]

    @property
    def put(self) -> list[Any]:
        """Objects that are new or changed; of the pods in question only those that were changed."""
        return [each for key, each in self._put.items() if each is not self._before.get(key)]

    @property
    def gone(self) -> list[Any]:
        return list(self._gone.values())

    @property
    def names_gone(self) -> tuple[ObjectName, ...]:
        return tuple(ObjectName(each.kind, each.metadata.name, each.metadata.namespace) for each in self.gone)

    def find(self, kind: type[M], name: str, namespace: str = "") -> M | None:
        key = (kind, namespace, name)
        if key in self._gone:
            return None
        found: M | None = self._put.get(key)
        return found if found is not None else self._cluster.find(kind, name, namespace)

    def all(self, kind: type[M]) -> list[M]:
        known = {_key(each): each for each in self._cluster.all(kind)}
        known |= {key: each for key, each in self._put.items() if key[0] is kind}
        return [each for key, each in known.items() if key not in self._gone]

    def store(self, obj: Any) -> None:
        # The latest change wins: an object that was removed before is there again.
        self._gone.pop(_key(obj), None)
        self._put[_key(obj)] = obj

    def remove(self, obj: Any) -> None:
        self._put.pop(_key(obj), None)
        self._gone[_key(obj)] = obj

    def change_pods(self, edit: EditPod) -> None:
        for pod in self.pods:
            spec = edit(pod.spec)
            if spec != pod.spec:
                self.store(replace(pod, spec=spec))

    def evict(self, pods: Iterable[Pod]) -> None:
        """Remove pods, and free what their claims held."""
        for pod in pods:
            self.remove(pod)
            for claim in self.all(ResourceClaim):
                if claim.metadata.namespace == pod.metadata.namespace:
                    freed = given_back(claim, pod.metadata.uid)
                    if freed is None:
                        self.remove(claim)
                    elif freed is not claim:
                        self.store(freed)

    def free(self, claim: ResourceClaim) -> None:
        """Take its devices away from a claim."""
        found = self.find(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
        if found is not None:
            self.store(replace(found, status=replace(found.status, reserved_for=(), allocation=None, devices=())))


class Change(msgspec.Struct, frozen=True):
    """One thing that somebody could do. `text` completes "it would fit with …"."""

    kind: str
    text: str
    apply: Callable[[Proposal], None]


def proposed(cluster: ClusterObjects, pods: Sequence[Pod], changes: Sequence[Change]) -> Proposal:
    proposal = Proposal(cluster, pods)
    for each in changes:
        each.apply(proposal)
    return proposal


def _key(each: Any) -> ObjectKey:
    return type(each), each.metadata.namespace, each.metadata.name
