"""Who waits for which node, as preemption decides and informers tell."""

from __future__ import annotations

from typing import Any

from drakit.api import from_plain
from drakit.api.objects.cluster import Node
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.framework import NodeInfo, on_node


def made(name: str, priority: int = 0, node: str = "", nominated: str = "", **metadata: Any) -> Partial[Pod]:
    document = {
        "metadata": {"name": name, "uid": name, **metadata},
        "spec": {"priority": priority, "nodeName": node},
        "status": {"nominatedNodeName": nominated},
    }
    return Partial(document, from_plain(Pod, document))


class Told(Nominations):
    """Remembers which nominations ended, and whether their place is free."""

    def __init__(self, *placed: str) -> None:
        cache = SchedulerCache()
        for name in placed:
            cache.put_pod(made(name, node="n").view)
        super().__init__(cache)
        self.ended: list[tuple[str, bool]] = []
        self.on_end(lambda pod, freed: self.ended.append((pod.metadata.name, freed)))


def seen(nominations: Nominations, priority: int) -> list[str]:
    [info] = nominations.seen_by(made("x", priority).view, [NodeInfo(from_plain(Node, {"metadata": {"name": "n"}}))])
    return list(info.pods)


def test_only_pods_of_lower_priority_see_who_waits() -> None:
    nominations = Told()
    nominations.put(on_node(made("a", 5).view, "n"))
    assert [seen(nominations, priority) for priority in (4, 5, 6)] == [["a"], [], []]


def test_a_pod_that_counts_on_a_node_already_is_not_seen_twice() -> None:
    nominations = Told("a")
    nominations.put(on_node(made("a", 5).view, "n"))
    assert seen(nominations, 4) == []


def test_after_a_restart_pods_tell_what_they_wait_for() -> None:
    nominations = Told()
    nominations.follow(None, made("a", 5, nominated="n"))
    assert nominations.node_of("a") == "n"
    assert seen(nominations, 0) == ["a"]


def test_a_pod_that_is_being_bound_waits_for_nobody_to_leave() -> None:
    nominations = Told("a")
    nominations.follow(made("a", 5), made("a", 5, nominated="n"))
    assert len(nominations) == 0


def test_news_of_a_pod_that_do_not_know_of_its_nomination_yet_change_nothing() -> None:
    nominations = Told()
    nominations.put(on_node(made("a").view, "n"))
    nominations.follow(made("a"), made("a", labels={"b": "c"}))
    assert nominations.node_of("a") == "n"


def test_a_nomination_ends_when_its_pod_is_bound_or_gone_or_nobody_wants_it() -> None:
    ends = [
        (made("a"), made("a", node="n"), False),
        (made("a"), made("a", node="other"), True),
        (made("a"), None, True),
        (made("a"), made("a", deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (made("a", nominated="n"), made("a"), True),
    ]
    for old, new, freed in ends:
        nominations = Told()
        nominations.put(on_node(made("a").view, "n"))
        nominations.follow(old, new)
        assert (len(nominations), nominations.ended) == (0, [("a", freed)])


def test_pods_below_a_priority_on_a_node() -> None:
    nominations = Told()
    for name, priority, node in (("a", 1, "n"), ("b", 2, "n"), ("c", 1, "m")):
        nominations.put(on_node(made(name, priority).view, node))
    assert [pod.metadata.name for pod in nominations.below(2, "n")] == ["a"]
