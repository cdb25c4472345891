"""GangScheduling: members of a gang wait outside of the queue until the group is there, and enough of them are.

In:  pods that name a PodGroup.
Out: whether they may be tried; and what can help those that wait: a member more, or the group itself.

That enough of them are placed is seen to by `attempts`, for profiles that have this plugin.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.client import Key
from drakit.scheduler.config.names import GANG_SCHEDULING
from drakit.scheduler.framework import (
    SUCCESS,
    Action,
    ClusterEvent,
    EventResource,
    EventScope,
    Handle,
    Hint,
    Interest,
    PluginStatus,
)
from drakit.scheduler.podgroups.groups import Groups, group_key

GATE = "GangScheduling"
TOO_FEW = PluginStatus.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")


def without_group(name: str) -> PluginStatus:
    return PluginStatus.unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')


class GangScheduling:
    """Without its gate it lets everybody pass: there may be no PodGroups to look at."""

    name = GANG_SCHEDULING

    def __init__(self, handle: Handle) -> None:
        self._groups = Groups.shared(handle) if handle.gates.enabled(GATE) else None

    def pre_enqueue(self, pod: Pod) -> PluginStatus:
        key = group_key(pod)
        if key is None or self._groups is None:
            return SUCCESS
        if self._groups.get(key) is None:
            return without_group(key.name)
        return SUCCESS if self._groups.is_complete(key) else TOO_FEW

    def interests(self) -> Sequence[Interest]:
        """A new member wakes its gang only when it makes the gang complete."""
        if self._groups is None:
            return ()
        of_members, of_groups = EventScope(_own_group, self._joined), EventScope(_own_group, _came)
        added = Action.ADD
        return (
            Interest(ClusterEvent(EventResource.UNSCHEDULED_POD, added), self.after_member, of_members),
            Interest(ClusterEvent(EventResource.POD, added), self.after_member, of_members),
            Interest(ClusterEvent(EventResource.POD_GROUP, added | Action.UPDATE), _after_group, of_groups),
        )

    def after_member(self, pod: Pod, old: object, new: Pod) -> Hint:
        return Hint.QUEUE if group_key(pod) in self._joined(old, new) else Hint.SKIP

    def _joined(self, _: object, new: Pod) -> list[Key]:
        key = group_key(new)
        return [key] if key is not None and self._groups is not None and self._groups.is_complete(key) else []


def _after_group(pod: Pod, old: PodGroup | None, new: PodGroup) -> Hint:
    return Hint.QUEUE if group_key(pod) in _came(old, new) else Hint.SKIP


def _came(old: PodGroup | None, new: PodGroup) -> list[Key]:
    """The group if it is new, or another one of the same name. What a group asks for never changes."""
    if old is not None and old.metadata.uid == new.metadata.uid:
        return []
    return [Key(new.metadata.namespace, new.metadata.name)]


def _own_group(pod: Pod) -> list[Key]:
    key = group_key(pod)
    return [key] if key is not None else []
