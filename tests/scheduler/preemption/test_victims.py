"""The victims are those that an exhaustive search would pick."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drakit.api import from_plain
from drakit.api.objects.pods import Pod
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.scheduler.framework import PluginStatus
from drakit.scheduler.preemption.budgets import beyond_budget
from drakit.scheduler.preemption.candidates import enough_candidates, pick
from drakit.scheduler.preemption.victims import NO_VICTIMS, Candidate, FitCheck, importance, select_victims

NOW = "2030-01-01T00:00:00Z"
FULL = PluginStatus.unschedulable("full")


def made(name: str, priority: int = 0, started: int | None = None, *, leaving: bool = False) -> Pod:
    metadata = {"name": name, "uid": name, **({"deletionTimestamp": NOW} if leaving else {})}
    status = {"startTime": f"2029-01-01T00:00:{started:02}Z"} if started is not None else {}
    return from_plain(Pod, {"metadata": metadata, "spec": {"priority": priority}, "status": status})


PODS = st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 3), st.booleans()), max_size=6).map(
    lambda drawn: [made(f"p{n}", priority, start, leaving=gone) for n, (priority, start, gone) in enumerate(drawn)]
)
"""What fits: any of these sets of pods (by number) being gone, or more."""
ENOUGH = st.lists(st.frozensets(st.integers(0, 5), max_size=4), max_size=4)


def check_of(enough: Sequence[frozenset[int]]) -> FitCheck:
    def check(gone: Sequence[Pod]) -> PluginStatus | None:
        names = {pod.metadata.name for pod in gone}
        return None if any({f"p{each}" for each in some} <= names for some in enough) else FULL

    return check


@given(PODS, ENOUGH, st.integers(-1, 5))
def test_greedy_is_as_good_as_exhaustive(pods: list[Pod], enough: list[frozenset[int]], priority: int) -> None:
    check = check_of(enough)
    found = select_victims("n", pods, priority, check, NOW)
    best = exhaustive(pods, priority, check)
    if best is None:
        assert found == (FULL if any((pod.spec.priority or 0) < priority for pod in pods) else NO_VICTIMS)
        return
    assert isinstance(found, Candidate)
    assert list(found.victims) == best
    assert all((pod.spec.priority or 0) < priority for pod in found.gone)
    assert check(found.gone) is None


def exhaustive(pods: list[Pod], priority: int, check: FitCheck) -> list[Pod] | None:
    """Of all sets that are enough, the one that spares the most important, then the next, and so on."""
    lower = [pod for pod in pods if (pod.spec.priority or 0) < priority]
    leaving = [pod for pod in lower if pod.metadata.deletion_timestamp]
    rest = sorted((pod for pod in lower if pod not in leaving), key=lambda pod: importance(pod, NOW))
    for choice in product((False, True), repeat=len(rest)):
        victims = [pod for pod, goes in zip(rest, choice, strict=True) if goes]
        if check([*leaving, *victims]) is None:
            return victims
    return None


def test_who_has_run_longer_is_more_important_and_who_has_not_started_least() -> None:
    pods = [made("new"), made("old", started=1), made("young", started=9), made("high", 1)]
    assert [pod.metadata.name for pod in sorted(pods, key=lambda pod: importance(pod, NOW))] == [
        "high", "old", "young", "new",
    ]  # fmt: skip


def picked(**victims: list[Pod]) -> str:
    return pick([Candidate(node, tuple(pods)) for node, pods in victims.items()], NOW).node


def budget(allowed: int, *noted: str) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(noted, NOW)}
    spec = {"selector": {"matchLabels": {"app": "x"}}}
    return from_plain(PodDisruptionBudget, {"metadata": {"name": "b"}, "spec": spec, "status": status})


def labelled(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels={"app": "x"}))


def test_a_pod_that_its_budget_does_not_give_is_spared_before_more_important_ones() -> None:
    pods = [made("p0", 3), labelled(made("p1", 1))]
    check = check_of([frozenset({0}), frozenset({1})])
    spared = select_victims("n", pods, 5, check, NOW, [budget(0)])
    given = select_victims("n", pods, 5, check, NOW, [budget(1)])
    assert isinstance(spared, Candidate)
    assert isinstance(given, Candidate)
    assert [pod.metadata.name for pod in spared.victims] == ["p0"]
    assert [pod.metadata.name for pod in given.victims] == ["p1"]
    assert (spared.violations, given.violations) == (0, 0)


def test_a_budget_gives_the_most_important_first_and_not_twice_what_it_gave() -> None:
    pods = [labelled(made(name, priority)) for name, priority in (("a", 3), ("b", 2), ("c", 1))]
    assert beyond_budget(pods, [budget(1)]) == {"b", "c"}
    assert beyond_budget(pods, [budget(1, "a")]) == {"c"}
    assert beyond_budget([made("a")], [budget(0)]) == set()


def test_a_node_where_no_budget_is_broken_comes_before_lower_priorities() -> None:
    broken = Candidate("a", (made("x", 1),), violations=1)
    assert pick([broken, Candidate("b", (made("y", 4),))], NOW).node == "b"


def test_the_lowest_highest_priority_decides_first() -> None:
    assert picked(a=[made("x", 5)], b=[made("y", 4), made("z", 4)]) == "b"


def test_then_the_sum_of_priorities_in_which_more_victims_are_never_better() -> None:
    assert picked(a=[made("x", 4), made("y", 4)], b=[made("z", 4), made("w", 3)]) == "b"
    assert picked(a=[made("x", -4), made("y", -4)], b=[made("z", -4)]) == "b"


def test_then_the_latest_start_of_the_highest_victims() -> None:
    early, late = made("x", 4, 1), made("y", 4, 9)
    assert picked(a=[early, made("v", 3, 20)], b=[late, made("w", 3, 0)]) == "b"
    assert picked(a=[early], b=[late]) == "b"
    assert picked(a=[late], b=[early]) == "a"


def test_then_the_preferred_node_then_the_first() -> None:
    same = [Candidate(node, (made("x", 4, 1),)) for node in "abc"]
    assert pick(same, NOW).node == "a"
    assert pick(same, NOW, preferred="c").node == "c"


def test_where_nobody_has_to_be_evicted_comes_first() -> None:
    assert picked(a=[made("x", -(2**31))], b=[]) == "b"


def test_a_tenth_of_the_nodes_is_enough_but_a_hundred_if_there_are() -> None:
    assert [enough_candidates(each) for each in (5, 100, 500, 3000)] == [5, 100, 100, 300]
