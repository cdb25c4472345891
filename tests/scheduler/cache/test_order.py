from __future__ import annotations

from drakit.api.objects.cluster import Node
from drakit.scheduler.cache import SchedulerCache
from tests.scheduler.plugins.making import make_node, make_pod


def zoned(name: str, zone: str, region: str = "") -> Node:
    labels = {"topology.kubernetes.io/zone": zone}
    if region:
        labels["topology.kubernetes.io/region"] = region
    return make_node(name, labels=labels)


def names(cache: SchedulerCache) -> list[str]:
    return [info.name for info in cache.all()]


def filled(*nodes: Node) -> SchedulerCache:
    cache = SchedulerCache()
    for node in nodes:
        cache.put_node(node)
    return cache


def test_zones_take_turns() -> None:
    cache = filled(zoned("a1", "a"), zoned("a2", "a"), zoned("a3", "a"), zoned("b1", "b"), zoned("c1", "c"))
    cache.put_node(zoned("b2", "b"))
    assert names(cache) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_the_same_zone_in_another_region_is_another_zone() -> None:
    cache = filled(zoned("east1", "1", "east"), zoned("east2", "1", "east"), zoned("west1", "1", "west"))
    assert names(cache) == ["east1", "west1", "east2"]


def test_a_node_that_changes_its_zone_moves_and_an_empty_zone_is_gone() -> None:
    cache = filled(zoned("a1", "a"), zoned("b1", "b"), zoned("b2", "b"))
    cache.put_node(zoned("a1", "b"))
    assert names(cache) == ["b1", "b2", "a1"]


def test_pods_do_not_change_the_order() -> None:
    cache = filled(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"))
    before = names(cache)
    cache.assume(make_pod("p", nodeName="a2"))
    assert names(cache) == before == ["a1", "b1", "a2"]


def test_labels_of_old_clusters_count() -> None:
    old = [make_node(name, labels={"failure-domain.beta.kubernetes.io/zone": name[0]}) for name in ("a1", "a2", "b1")]
    assert names(filled(*old)) == ["a1", "b1", "a2"]
