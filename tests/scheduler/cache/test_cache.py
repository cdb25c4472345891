from __future__ import annotations

import random
from typing import Any

import pytest

from drakit.api.objects.pods import Pod
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.framework import NodeInfo
from tests.scheduler.plugins.making import make_node, make_pod, on


def bound(name: str, node: str, **more: Any) -> Pod:
    return make_pod(name, nodeName=node, requests={"cpu": "1"}, **more)


def cpu_on(cache: SchedulerCache, node: str) -> int:
    info = cache.get(node)
    assert info is not None
    return info.requested.get("cpu", 0)


@pytest.fixture
def cache() -> SchedulerCache:
    cache = SchedulerCache()
    cache.put_node(make_node("a"))
    cache.put_node(make_node("b"))
    return cache


def test_an_assumed_pod_counts_at_once_and_stops_when_forgotten(cache: SchedulerCache) -> None:
    cache.assume(bound("p", "a"))
    assert (cpu_on(cache, "a"), cache.is_assumed("uid-p")) == (1000, True)
    cache.forget("uid-p")
    assert (cpu_on(cache, "a"), cache.is_assumed("uid-p"), cache.pod_count) == (0, False, 0)


def test_a_confirmed_pod_is_counted_once_and_cannot_be_forgotten(cache: SchedulerCache) -> None:
    cache.assume(bound("p", "a"))
    cache.put_pod(bound("p", "a"))
    assert (cpu_on(cache, "a"), cache.is_assumed("uid-p")) == (1000, False)
    cache.forget("uid-p")
    assert cpu_on(cache, "a") == 1000


def test_a_pod_that_was_bound_elsewhere_than_assumed_counts_there(cache: SchedulerCache) -> None:
    cache.assume(bound("p", "a"))
    cache.put_pod(bound("p", "b"))
    assert (cpu_on(cache, "a"), cpu_on(cache, "b"), cache.assumed_count) == (0, 1000, 0)


def test_a_pod_that_is_bound_is_not_assumed_again(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a"))
    cache.assume(bound("p", "b"))
    assert (cpu_on(cache, "a"), cpu_on(cache, "b"), cache.is_assumed("uid-p")) == (1000, 0, False)


def test_what_nodes_advertise_themselves_is_known_as_they_come_change_and_go(cache: SchedulerCache) -> None:
    assert not cache.advertised
    cache.put_node(make_node("a", allocatable={"cpu": "1", "example.com/gpu": "2", "example.com/none": "0"}))
    cache.put_node(make_node("c", allocatable={"example.com/gpu": "1"}))
    assert cache.advertised == {"example.com/gpu": 2}
    cache.put_node(make_node("a"))
    assert "example.com/gpu" in cache.advertised
    cache.remove_node("c")
    assert "example.com/gpu" not in cache.advertised


def test_nodes_with_taints_and_cordoned_ones_are_known_as_they_come_change_and_go(cache: SchedulerCache) -> None:
    assert not cache.tainted
    assert not cache.cordoned
    cache.put_node(make_node("a", taints=[{"key": "k", "effect": "NoSchedule"}], unschedulable=True))
    cache.put_node(make_node("b", unschedulable=True))
    assert (cache.tainted, cache.cordoned) == ({"a"}, {"a", "b"})
    cache.put_node(make_node("a"))
    cache.remove_node("b")
    assert (cache.tainted, cache.cordoned) == (set(), set())


def test_a_pod_cannot_be_assumed_nowhere(cache: SchedulerCache) -> None:
    with pytest.raises(ValueError, match="default/p cannot be assumed: it has no node"):
        cache.assume(make_pod("p"))


def test_a_pod_waits_for_its_node(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "later"))
    assert cache.get("later") is None
    cache.put_node(make_node("later"))
    assert cpu_on(cache, "later") == 1000


def test_a_pod_that_is_gone_before_its_node_came_is_not_on_it(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "later"))
    cache.remove_pod("uid-p")
    cache.put_node(make_node("later"))
    assert cpu_on(cache, "later") == 0


def test_pods_outlive_their_node_and_are_there_when_it_comes_back(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a"))
    cache.put_pod(bound("q", "a"))
    cache.remove_node("a")
    assert (cache.get("a"), len(cache), cache.pod_count) == (None, 1, 2)
    cache.remove_pod("uid-q")
    cache.put_node(make_node("a"))
    assert cpu_on(cache, "a") == 1000


def test_a_pod_of_the_same_name_replaces_the_one_before(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a", uid="first"))
    cache.put_pod(bound("p", "b", uid="second"))
    assert (cpu_on(cache, "a"), cpu_on(cache, "b"), cache.pod("first")) == (0, 1000, None)
    cache.remove_pod("first")
    assert cpu_on(cache, "b") == 1000


def test_a_pod_that_has_ended_takes_nothing(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a"))
    cache.put_pod(bound("p", "a", status={"phase": "Succeeded"}))
    assert (cpu_on(cache, "a"), cache.pod_count) == (0, 0)


def test_news_of_a_pod_that_is_not_bound_leave_it_assumed(cache: SchedulerCache) -> None:
    cache.assume(bound("p", "a"))
    cache.put_pod(make_pod("p"))
    assert (cache.is_assumed("uid-p"), cpu_on(cache, "a")) == (True, 1000)


def test_an_update_that_asks_the_same_keeps_the_sums(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a"))
    before = cache.get("a")
    cache.put_pod(bound("p", "a", status={"phase": "Running"}))
    after = cache.get("a")
    assert before is not None
    assert after is not None
    assert after.requested is before.requested
    assert after.pods["uid-p"].status.phase == "Running"


def test_what_is_not_known_can_be_removed(cache: SchedulerCache) -> None:
    cache.remove_node("nobody")
    cache.remove_pod("nobody")
    cache.forget("nobody")
    assert [info.name for info in cache] == ["a", "b"]


def test_a_list_of_nodes_does_not_follow_later_changes(cache: SchedulerCache) -> None:
    before = cache.all()
    cache.assume(bound("p", "a"))
    cache.remove_node("b")
    assert [(info.name, len(info.pods)) for info in before] == [("a", 0), ("b", 0)]
    assert [(info.name, len(info.pods)) for info in cache.all()] == [("a", 1)]


def test_a_node_that_changes_keeps_its_pods_and_its_place(cache: SchedulerCache) -> None:
    cache.put_pod(bound("p", "a"))
    cache.all()
    cache.put_node(make_node("a", unschedulable=True))
    info = cache.all()[0]
    assert (info.name, info.node.spec.unschedulable, list(info.pods)) == ("a", True, ["uid-p"])


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_the_ledger_is_the_sum_of_its_pods(seed: int) -> None:
    chance = random.Random(seed)
    cache = SchedulerCache()
    for _ in range(200):
        node, name = chance.choice("abc"), chance.choice("pqrstu")
        uid = f"{name}{chance.randrange(2)}"
        pod = make_pod(name, uid=uid, nodeName=node, requests={"cpu": f"{chance.randrange(3)}", "memory": "1Gi"})
        match chance.randrange(7):
            case 0:
                cache.put_node(make_node(node, labels={"topology.kubernetes.io/zone": chance.choice("xy")}))
            case 1:
                cache.remove_node(node)
            case 2 | 3:
                cache.put_pod(pod)
            case 4:
                cache.remove_pod(uid)
            case 5:
                cache.assume(pod)
            case 6:
                cache.forget(uid)
        _hold(cache)


def _hold(cache: SchedulerCache) -> None:
    listed = cache.all()
    assert sorted(info.name for info in listed) == sorted({info.name for info in listed})
    assert all(cache.get(info.name) is info for info in listed)
    counted = [uid for info in listed for uid in info.pods]
    assert len(counted) == len(set(counted))
    for info in listed:
        fresh = on(info.node, *info.pods.values())
        assert _amounts(info) == _amounts(fresh)
        assert all(cache.pod(uid) is pod and pod.spec.node_name == info.name for uid, pod in info.pods.items())


def _amounts(info: NodeInfo) -> dict[str, int]:
    return {name: amount for name, amount in info.requested.items() if amount}
