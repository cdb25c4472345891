"""What a pod needs of devices by plain resource names, node by node.

In:  a pod, the classes behind its extended resources, a special claim of an earlier attempt if there is one.
Out: nodes in groups. A node that advertises a resource provides it itself; what it does not advertise is asked of
     devices. Nodes of one group share the special claim, so one allocator serves them all.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from drakit.allocator import MAX_RESULTS
from drakit.api import Pod, ResourceClaim
from drakit.api.objects.pods import ContainerExtendedResourceRequest
from drakit.scheduler.dynamicresources.extended.requests import ResourceRequests, variant_of
from drakit.scheduler.dynamicresources.extended.special import is_made_for, special_claim
from drakit.scheduler.framework import NodeInfo, PluginStatus

STALE = PluginStatus.unresolvable("cannot schedule extended resource claim")
_CANNOT_FIT = PluginStatus.unresolvable("cannot fit resource")


class NodeGroup(msgspec.Struct, frozen=True):
    """Nodes on which the pod asks for the same devices; `claim` is None where it asks for none."""

    nodes: Sequence[NodeInfo]
    claim: ResourceClaim | None
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class Need:
    """One pod in one attempt. `stored` is the special claim that is there already; no node may need another one."""

    def __init__(
        self,
        pod: Pod,
        resources: Sequence[str],
        classes: Mapping[str, str],
        uid: str,
        stored: ResourceClaim | None,
        *,
        advertised: Container[str] | None = None,
    ) -> None:
        """`resources` are all extended ones that the pod asks for, `classes` the class by resource that has one.

        `advertised` are the resources that some node advertises; None: each node has to be asked.
        """
        self.pod = pod
        self.stored = stored
        self._classes = classes
        self._advertised = [each for each in classes if advertised is None or each in advertised]
        self._others = [each for each in resources if each not in classes]
        self._uid = uid
        self._variants: dict[tuple[str, ...], ResourceRequests] = {}
        self._claims: dict[tuple[str, ...], ResourceClaim] = {}

    def split(self, nodes: Sequence[NodeInfo]) -> tuple[dict[str, PluginStatus], list[NodeGroup]]:
        """The nodes that cannot work, and the others by what they ask of devices."""
        refused: dict[str, PluginStatus] = {}
        for resource in self._others:
            lacking = [node for node in nodes if resource not in node.allocatable]
            if lacking:
                refused.update((node.name, _CANNOT_FIT) for node in lacking)
                nodes = [node for node in nodes if resource in node.allocatable]
        groups: list[NodeGroup] = []
        for resources, alike in self._parts(nodes):
            found = self._group(resources, alike)
            if isinstance(found, PluginStatus):
                refused.update((node.name, found) for node in alike)
            else:
                groups.append(found)
        return refused, groups

    def _parts(self, nodes: Sequence[NodeInfo]) -> list[tuple[tuple[str, ...], Sequence[NodeInfo]]]:
        if not self._advertised:
            return [(tuple(self._classes), nodes)] if nodes else []
        parts: list[tuple[tuple[str, ...], Sequence[NodeInfo]]] = [((), nodes)] if nodes else []
        for resource in self._classes:
            divided: list[tuple[tuple[str, ...], Sequence[NodeInfo]]] = []
            for resources, alike in parts:
                own = [node for node in alike if node.allocatable.get(resource)]
                rest = [node for node in alike if not node.allocatable.get(resource)] if own else alike
                divided += [each for each in ((resources, own), ((*resources, resource), rest)) if each[1]]
            parts = divided
        return parts

    def _group(self, resources: tuple[str, ...], nodes: Sequence[NodeInfo]) -> NodeGroup | PluginStatus:
        variant = self._variant(resources)
        if self.stored is not None:
            if not (variant.requests and is_made_for(self.stored, variant)):
                return STALE
            return NodeGroup(nodes, self.stored, variant.mappings)
        if not variant.requests:
            return NodeGroup(nodes, None)
        claim = self._claims.get(resources)
        if claim is None:
            claim = self._claims[resources] = special_claim(self.pod, variant, self._uid)
        if variant.devices > MAX_RESULTS:
            return _too_many(claim, variant.devices)
        return NodeGroup(nodes, claim, variant.mappings)

    def _variant(self, resources: tuple[str, ...]) -> ResourceRequests:
        found = self._variants.get(resources)
        if found is None:
            classes = {each: self._classes[each] for each in resources}
            found = self._variants[resources] = variant_of(self.pod, classes)
        return found


def _too_many(claim: ResourceClaim, devices: int) -> PluginStatus:
    where = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return PluginStatus.unresolvable(
        f"claim {where}: number of requested devices {devices} exceeds the claim limit of {MAX_RESULTS}"
    )
