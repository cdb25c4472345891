"""Warnings about objects that contradict each other: slices of one pool, classes with one extended resource name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from drakit.allocator import PoolKey
from drakit.api import DeviceClass, ResourceSlice
from drakit.lint.cluster import Cluster
from drakit.lint.findings import Draft, warn
from drakit.manifests import Manifest


def check_pools(cluster: Cluster) -> Iterator[Draft]:
    """Pools of which no device can be used, on some node or on any; each reason once, at the pool's first slice."""
    owners: dict[PoolKey, Manifest] = {}
    for manifest in cluster.of(ResourceSlice):
        owners.setdefault((manifest.view.spec.driver, manifest.view.spec.pool.name), manifest)
    for key, pool in cluster.inventory.pools.items():
        views = [pool.view(cluster.inventory.labels_of(node)) for node in cluster.nodes] + [pool.foreign]
        reasons = dict.fromkeys(view.reason for view in views if view is not None and view.problem is not None)
        for reason in reasons:
            message = f"pool {key[1]} of driver {key[0]} cannot be used: {reason}"
            yield warn(owners[key], "pool-disagrees", "spec.pool", message)
        generations = {each.spec.pool.generation for each in pool.slices}
        if len(generations) > 1:
            stale = [each.metadata.name for each in pool.slices if each.spec.pool.generation < max(generations)]
            message = f"pool {key[1]} has slices of generation {max(generations)}, and older ones: {', '.join(stale)}"
            yield warn(owners[key], "pool-disagrees", "spec.pool.generation", message)


def check_extended_resources(cluster: Cluster) -> Iterator[Draft]:
    """Of several classes with one name, the scheduler takes the one that was made last."""
    users: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in cluster.of(DeviceClass):
        if manifest.view.spec.extended_resource_name:
            users[manifest.view.spec.extended_resource_name].append(manifest)
    for name, manifests in users.items():
        for manifest in manifests if len(manifests) > 1 else ():
            others = ", ".join(each.metadata.name for each in manifests if each is not manifest)
            message = f'"{name}" is also the extended resource name of {others}'
            yield warn(manifest, "extended-resource-twice", "spec.extendedResourceName", message)


def check_repeated(manifests: Iterable[Manifest]) -> Iterator[Draft]:
    """One object with two contents: when both are applied, the later one wins."""
    seen: dict[object, Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault(manifest.identity, manifest)
        if first.object != manifest.object:
            message = f"is there already, with another content, in {first.source}"
            yield warn(manifest, "repeated-object", "metadata.name", message)
