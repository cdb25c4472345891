"""Warnings about objects that contradict each other: slices of one pool, classes with one extended resource name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from drakit.allocator import PoolKey
from drakit.api import DeviceClass, ResourceSlice
from drakit.lint.cluster import Cluster
from drakit.lint.findings import Draft
from drakit.lint.subjects import Subject


def check_pools(cluster: Cluster) -> Iterator[Draft]:
    """Pools of which no device can be used, on some node or on any; each reason once, at the pool's first slice."""
    owners: dict[PoolKey, Subject] = {}
    for subject in cluster.of(ResourceSlice):
        owners.setdefault((subject.view.spec.driver, subject.view.spec.pool.name), subject)
    for key, pool in cluster.inventory.pools.items():
        views = [pool.view(cluster.inventory.node(node)) for node in cluster.nodes] + [pool.foreign]
        reasons = dict.fromkeys(view.reason for view in views if view is not None and view.problem is not None)
        for reason in reasons:
            message = f"pool {key[1]} of driver {key[0]} cannot be used: {reason}"
            yield owners[key].warn("pool-disagrees", "spec.pool", message)
        generations = {each.spec.pool.generation for each in pool.slices}
        if len(generations) > 1:
            stale = [each.metadata.name for each in pool.slices if each.spec.pool.generation < max(generations)]
            message = f"pool {key[1]} has slices of generation {max(generations)}, and older ones: {', '.join(stale)}"
            yield owners[key].warn("pool-disagrees", "spec.pool.generation", message)


def check_extended_resources(cluster: Cluster) -> Iterator[Draft]:
    """Of several classes with one name, the scheduler takes the one that was made last."""
    users: dict[str, list[Subject]] = defaultdict(list)
    for subject in cluster.of(DeviceClass):
        if subject.view.spec.extended_resource_name:
            users[subject.view.spec.extended_resource_name].append(subject)
    for name, subjects in users.items():
        for subject in subjects if len(subjects) > 1 else ():
            others = ", ".join(each.metadata.name for each in subjects if each is not subject)
            message = f'"{name}" is also the extended resource name of {others}'
            yield subject.warn("extended-resource-twice", "spec.extendedResourceName", message)


def check_repeated(subjects: Iterable[Subject]) -> Iterator[Draft]:
    """One object with two contents: when both are applied, the later one wins."""
    seen: dict[object, Subject] = {}
    for subject in subjects:
        first = seen.setdefault(subject.identity, subject)
        if first.object != subject.object:
            message = f"is there already, with another content, in {first.text.name}"
            yield subject.warn("repeated-object", "metadata.name", message)
