"""Extended resources of pods, as one thing that the plugin holds: who backs them, what a pod needs, what is written.

One per scheduler: all its profiles see the same classes and the same special claims.
"""

from __future__ import annotations

from typing import Any

from drakit.allocator import Inventory
from drakit.allocator.inventory.counts import count_devices
from drakit.api import DeviceClass, Pod, ResourceClaim
from drakit.client import CLASSES, PODS, metadata_of
from drakit.scheduler.dynamicresources.extended.backing import Backing
from drakit.scheduler.dynamicresources.extended.hints import GATE, asked_of
from drakit.scheduler.dynamicresources.extended.needs import Need
from drakit.scheduler.dynamicresources.extended.special import find_special
from drakit.scheduler.dynamicresources.extended.writes import Writing
from drakit.scheduler.dynamicresources.state.claims import Claims
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.framework import Handle, NodeInfo


class Extended:
    def __init__(self, handle: Handle, inventory: Inventory, claims: Claims) -> None:
        self.backing = Backing()
        self.writing = Writing(handle.client, handle.registry)
        self._inventory = inventory
        self._claims = claims
        self._nodes = handle.nodes
        self._new_uid = handle.new_uid
        # Claims that we deleted and the cache may still show, by pod.
        self._deleted: dict[str, set[str]] = {}
        handle.informers.of(CLASSES).subscribe(self._class_changed)
        handle.informers.of(PODS).subscribe(self._pod_changed)
        # Other plugins read it when a pod is looked at, so the order in which plugins are made does not matter.
        handle.extended_resources = self

    @staticmethod
    def shared(handle: Handle, context: PluginContext) -> Extended | None:
        """One for all profiles of a scheduler; None when its gate is off."""
        if not handle.gates.enabled(GATE):
            return None
        return handle.shared(GATE, lambda: Extended(handle, context.inventory, context.claims))

    # What others ask

    def is_backed_by_class(self, resource: str, node: NodeInfo) -> bool:
        return not node.allocatable.get(resource) and self.backing.class_of(resource) is not None

    def is_advertised(self, resource: str) -> bool:
        return resource in self._nodes.advertised

    def totals(self, resource: str, node: NodeInfo) -> tuple[int, int]:
        device_class = self.backing.class_of(resource)
        return count_devices(self._inventory, device_class, node.name) if device_class is not None else (0, 0)

    # One attempt

    def need_of(self, pod: Pod) -> Need | None:
        """What the pod needs of devices by plain resource names; None when no node can ask any of it of devices."""
        resources = asked_of(pod)
        if not resources:
            return None
        backed = ((each, self.backing.class_of(each)) for each in resources)
        classes = {each: found.metadata.name for each, found in backed if found is not None}
        stored = self.stored(pod)
        if not classes and stored is None and pod.status.extended_resource_claim_status is None:
            return None
        return Need(pod, resources, classes, self._new_uid(), stored, advertised=self._nodes.advertised)

    def stored(self, pod: Pod) -> ResourceClaim | None:
        """The pod's special claim of an earlier attempt, as far as is known."""
        deleted = self._deleted.get(pod.metadata.uid, ())
        known = self._claims.controlled_by(pod.metadata.uid)
        return find_special((each for each in known if each.metadata.uid not in deleted), pod)

    def forget(self, pod: Pod, claim: ResourceClaim) -> None:
        """The claim is deleted, whatever the cache says."""
        self._deleted.setdefault(pod.metadata.uid, set()).add(claim.metadata.uid)
        self._claims.forget(claim)

    # What informers saw

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            self.backing.put(new)
        elif old is not None:
            self.backing.remove(old.metadata.name)

    def _pod_changed(self, old: Any, new: Any) -> None:
        if new is None:
            uid = metadata_of(old).uid
            self._deleted.pop(uid, None)
            self.writing.forget(uid)
