"""PodGroups and their members, as informers know them.

In:  pods and PodGroups.
Out: the group of a pod, its members, and how many pods it needs at once.

A pod counts as a member while it can be placed or is: one that has ended does not, nor one that goes without a node.
"""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.api.podclaims import pod_group_name
from drakit.client import POD_GROUPS, PODS, Key
from drakit.informers import Informers
from drakit.scheduler.framework import Handle

_SHARED = "PodGroups"


class Groups:
    """Follows the informers from when it is made: it knows of a change before the queue does."""

    def __init__(self, informers: Informers) -> None:
        self._groups = informers.of(POD_GROUPS).cache
        self._members: dict[Key, set[str]] = {}
        informers.of(PODS).subscribe(self._seen)

    @staticmethod
    def shared(handle: Handle) -> Groups:
        """The one of the scheduler."""
        return handle.shared(_SHARED, lambda: Groups(handle.informers))

    def get(self, key: Key) -> PodGroup | None:
        return self._groups.get(key)

    def members(self, key: Key) -> Iterable[str]:
        """The uids of the pods of a group, placed or not."""
        return self._members.get(key, ())

    def is_complete(self, key: Key) -> bool:
        """Whether the group is there, with as many members as it needs at once."""
        group = self._groups.get(key)
        return group is not None and len(self._members.get(key, ())) >= least(group)

    def _seen(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        if old is not None and (key := group_key(old.view)) is not None:
            self._leave(key, old.view.metadata.uid)
        if new is not None and (key := group_key(new.view)) is not None and _counts(new.view):
            self._members.setdefault(key, set()).add(new.view.metadata.uid)

    def _leave(self, key: Key, uid: str) -> None:
        members = self._members.get(key)
        if members is not None:
            members.discard(uid)
            if not members:
                del self._members[key]


def group_key(pod: Pod) -> Key | None:
    """The group that a pod says it is of."""
    name = pod_group_name(pod)
    return Key(pod.metadata.namespace, name) if name else None


def least(group: PodGroup) -> int:
    """How many pods of a group run, or none; one where pods are scheduled one by one."""
    gang = group.spec.scheduling_policy.gang
    return max(gang.min_count, 1) if gang is not None else 1


def _counts(pod: Pod) -> bool:
    return not pod.is_terminal and (bool(pod.spec.node_name) or pod.metadata.deletion_timestamp is None)
