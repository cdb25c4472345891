"""Keep PodGroups as long as pods need them.

In:  PodGroups that are being deleted, and their pods.
Out: the finalizer `scheduling.k8s.io/podgroup-protection` removed, once no pod of the group is left that has not ended.
"""

from __future__ import annotations

from msgspec.structs import replace

from drakit.api import Pod, PodGroup, pod_group_name
from drakit.api.objects.partial import Partial
from drakit.base.wellknown import PODGROUP_FINALIZER
from drakit.client import POD_GROUPS, PODS, Key
from drakit.controllers.claims.consumers import by_group
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, Result

NAME = "podgroup_protection"
ACCOUNT = "podgroup-protection-controller"


class PodGroupProtection:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(ACCOUNT)
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,) if context.gates.enabled("GenericWorkload") else ()
        if not self.loops:
            return
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._groups: Informer[PodGroup] = context.informers.of(POD_GROUPS)
        self._pods.add_index("group", by_group)
        self._groups.enqueue(self.loop.queue.add)
        self._pods.enqueue(self.loop.queue.add, lambda pod: [Key(*each) for each in by_group(pod)])

    async def reconcile(self, key: Key) -> Result:
        group = self._groups.cache.get(key)
        if group is None or group.metadata.deletion_timestamp is None:
            return Result.done()
        if PODGROUP_FINALIZER not in group.metadata.finalizers:
            return Result.done()
        if any(not pod.view.is_terminal for pod in self._pods.by("group", tuple(key))):
            return Result.done()
        # The cache may not have the newest pod yet, and a group that is let go does not come back.
        pods = await self._client.list(PODS, namespace=key.namespace)
        if any(pod_group_name(pod.view) == key.name and not pod.view.is_terminal for pod in pods):
            return Result.done()
        kept = tuple(name for name in group.metadata.finalizers if name != PODGROUP_FINALIZER)
        await self._client.update(replace(group, metadata=replace(group.metadata, finalizers=kept)))
        return Result.done()
