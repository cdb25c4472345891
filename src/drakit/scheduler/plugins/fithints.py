"""Which changes can make room for a pod that did not fit.

In:  a pod that NodeResourcesFit refused, and what changed: another pod, a node, a class of devices.
Out: whether it is worth another look.
"""

from __future__ import annotations

from collections.abc import Callable

from drakit.api.objects.classes import DeviceClass
from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX
from drakit.scheduler.framework import Hint, NodeInfo
from drakit.scheduler.framework.footprints import PODS, footprint_of
from drakit.scheduler.plugins.interests import queue_if


class FitHints:
    """`fits_empty`: whether a pod would fit on a node without other pods."""

    def __init__(
        self, fits_empty: Callable[[Pod, Node], bool], is_backed_by_class: Callable[[str, NodeInfo], bool]
    ) -> None:
        self._fits_empty = fits_empty
        self._is_backed = is_backed_by_class

    def after_pod(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        """Another pod is gone or asks for less, or the pod itself asks for less."""
        if new is None:
            return queue_if(bool(old.spec.node_name or old.status.nominated_node_name))
        if new.metadata.uid == pod.metadata.uid:
            return Hint.QUEUE
        before, after = footprint_of(old).requested, footprint_of(new).requested
        freed = (name for name, amount in footprint_of(pod).asked.items() if amount)
        return queue_if(bool(new.spec.node_name) and any(before.get(name, 0) > after.get(name, 0) for name in freed))

    def after_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if not self._fits_empty(pod, new):
            return Hint.SKIP
        return queue_if(old is None or self._has_grown(pod, NodeInfo(old), NodeInfo(new)))

    def _has_grown(self, pod: Pod, old: NodeInfo, new: NodeInfo) -> bool:
        asked = [name for name, amount in footprint_of(pod).asked.items() if amount]
        if any(new.allocatable.get(name, 0) > old.allocatable.get(name, 0) for name in (PODS, *asked)):
            return True
        return any("/" in name and not new.allocatable.get(name) and self._is_backed(name, new) for name in asked)

    def after_class(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        """A class was added, or its extended resource name changed."""
        resource = new.spec.extended_resource_name or ""
        asked = footprint_of(pod).asked
        if old is not None and (old.spec.extended_resource_name or "") == resource:
            return Hint.SKIP
        if old is None and IMPLICIT_RESOURCE_PREFIX + new.metadata.name in asked:
            return Hint.QUEUE
        return queue_if(resource in asked)
