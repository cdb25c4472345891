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
from drakit.base.structs import Model
from drakit.explain.answers import ObjectName
from drakit.explain.cluster import ClusterObjects
from drakit.scheduler.rehearsal import given_back

M = TypeVar("M", bound=Model)
ObjectKey = tuple[type[Any], str, str]


class Proposal:
    """Supposed changes to a cluster. `pod` is the pod in question, with its changes."""

    def __init__(self, cluster: ClusterObjects, pod: Pod) -> None:
        self._cluster = cluster
        self._key = _key(pod)
        self._put: dict[ObjectKey, Any] = {_key(pod): pod}
        self._gone: dict[ObjectKey, Any] = {}
        self._before = pod

    @property
    def pod(self) -> Pod:
        found: Pod = self._put[self._key]
        return found

    @property
    def put(self) -> list[Any]:
        """Objects that are new or changed; the pod only if it was changed."""
        return [each for each in self._put.values() if each is not self._before]

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

    def change_pod(self, **spec: Any) -> None:
        self.store(replace(self.pod, spec=replace(self.pod.spec, **spec)))

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


class Change(msgspec.Struct, frozen=True):
    """One thing that somebody could do. `text` completes "it would fit with …"."""

    kind: str
    text: str
    apply: Callable[[Proposal], None]


def proposed(cluster: ClusterObjects, pod: Pod, changes: Sequence[Change]) -> Proposal:
    proposal = Proposal(cluster, pod)
    for each in changes:
        each.apply(proposal)
    return proposal


def _key(each: Any) -> ObjectKey:
    return type(each), each.metadata.namespace, each.metadata.name
