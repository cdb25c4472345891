"""Devices that their drivers report as unhealthy, read off the status of the pods that use them.

A pod names a resource by the CDI id that its container got, or as `driver/pool/device`. A CDI id does not name the
device: it is resolved only if the claim and request of the entry have exactly one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Pod, ResourceClaim
from drakit.explain.cluster import ClusterObjects

DeviceName = tuple[str, str, str]
"""Driver, pool, device."""
_PREFIX = "claim:"


def unhealthy_devices(cluster: ClusterObjects) -> frozenset[DeviceName]:
    return frozenset(name for pod in cluster.documents(Pod) for name in _reported(cluster, pod))


def _reported(cluster: ClusterObjects, pod: Mapping[str, Any]) -> Iterator[DeviceName]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for entry in container.get("allocatedResourcesStatus") or ():
            for resource in entry.get("resources") or ():
                if resource.get("health") == "Unhealthy":
                    yield from _devices(cluster, pod, entry["name"], resource["resourceID"])


def _devices(cluster: ClusterObjects, pod: Mapping[str, Any], entry: str, resource: str) -> Iterator[DeviceName]:
    name, _, request = entry.removeprefix(_PREFIX).partition("/")
    claim = cluster.find(ResourceClaim, _claim_name(pod, name), pod["metadata"].get("namespace", ""))
    allocation = claim.status.allocation if claim is not None else None
    results = allocation.devices.results if allocation else ()
    mine = [each for each in results if not request or each.request.split("/")[0] == request]
    for each in mine:
        # With one device there is nothing to tell apart, whatever the CDI id looks like.
        if len(mine) == 1 or resource == f"{each.driver}/{each.pool}/{each.device}":
            yield each.driver, each.pool, each.device


def _claim_name(pod: Mapping[str, Any], entry: str) -> str:
    for each in (pod.get("spec") or {}).get("resourceClaims") or ():
        # A claim that the pod names itself; those of templates are in the status.
        if each.get("name") == entry and each.get("resourceClaimName"):
            return str(each["resourceClaimName"])
    for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if each.get("name") == entry:
            return str(each.get("resourceClaimName") or "")
    return ""
