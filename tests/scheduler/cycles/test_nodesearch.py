"""Which nodes are looked at, and what is said when none fits."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from drakit.api.objects.pods import Pod
from drakit.base.clock import FakeClock
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.cycles.nodesearch import Found, NodeSearch, enough
from drakit.scheduler.framework import SKIP, CycleState, PluginStatus, Profile
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Laps
from tests.scheduler.cycles.profile import POD, nodes, nominated, profile, refuses, says, scores

SCORED = [("Score", scores(), 1)]


def searching(count: int) -> NodeSearch:
    return NodeSearch(nodes(count), Nominations(SchedulerCache()))


def laps() -> Laps:
    return Laps(FakeClock(), SchedulerMetrics(CollectorRegistry()), "s")


def found(search: NodeSearch, made: Profile, pod: Pod = POD) -> list[str]:
    result = search.find(made, CycleState(pod), pod, laps())
    assert isinstance(result, Found)
    return [each.name for each in result.nodes]


def refusal(made: Profile, count: int = 3) -> SchedulingRefusal:
    result = searching(count).find(made, CycleState(POD), POD, laps())
    assert isinstance(result, SchedulingRefusal)
    return result


@pytest.mark.parametrize(
    ("count", "percentage", "wanted"),
    [(5, 0, 5), (99, 10, 99), (100, 0, 100), (200, 0, 100), (500, 0, 230), (5000, 0, 500), (10000, 0, 500),
     (1000, 30, 300), (1000, 5, 100), (1000, 100, 1000)],
)  # fmt: skip
def test_of_many_nodes_a_part_is_enough(count: int, percentage: int, wanted: int) -> None:
    assert enough(count, percentage) == wanted


def test_a_search_starts_where_the_last_one_ended() -> None:
    search = searching(250)
    first = found(search, profile(scores=SCORED))
    second = found(search, profile(scores=SCORED))
    assert first == [f"n{number}" for number in range(120)]
    assert second == [f"n{number}" for number in range(120, 240)]
    assert found(search, profile(scores=SCORED))[:12] == [f"n{number % 250}" for number in range(240, 252)]


def test_nodes_that_do_not_fit_are_made_up_for_by_others() -> None:
    taken = [f"n{number}" for number in range(100)]
    made = profile(filters=[("F", refuses(PluginStatus.unschedulable("taken"), *taken))], scores=SCORED)
    search = searching(250)
    assert found(search, made) == [f"n{number}" for number in range(100, 220)]
    assert found(search, profile(scores=SCORED))[0] == "n220"


def test_without_scores_one_node_is_enough() -> None:
    search = searching(3)
    assert [found(search, profile()) for _ in range(4)] == [["n0"], ["n1"], ["n2"], ["n0"]]


def test_a_nominated_node_is_tried_first_and_alone() -> None:
    search = searching(3)
    assert found(search, profile(scores=SCORED), nominated("n2")) == ["n2"]
    full = profile(filters=[("F", refuses(PluginStatus.unschedulable("full"), "n2"))], scores=SCORED)
    assert found(search, full, nominated("n2")) == ["n0", "n1"]
    assert found(search, profile(scores=SCORED), nominated("gone")) == ["n0", "n1", "n2"]


def test_plugins_restrict_the_nodes_together() -> None:
    made = profile(
        pre_filters=[("A", says(only=frozenset({"n0", "n1"}))), ("B", says(only=frozenset({"n1", "n2"})))],
        scores=SCORED,
    )
    assert found(searching(3), made) == ["n1"]


def test_restrictions_that_leave_no_node_are_told_with_their_plugins() -> None:
    alone = refusal(profile(pre_filters=[("A", says(only=frozenset()))]))
    assert alone.message == "0/3 nodes are available: node(s) didn't satisfy plugin A."
    both = refusal(profile(pre_filters=[("B", says(only=frozenset({"n0"}))), ("A", says(only=frozenset({"n1"})))]))
    assert both.message == "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    assert both.plugins == {"A", "B"}


def test_nodes_that_were_left_out_are_counted_with_the_plugins_that_did_so() -> None:
    made = profile(
        pre_filters=[("A", says(only=frozenset({"n0"})))], filters=[("F", refuses(PluginStatus.unschedulable("full")))]
    )
    told = refusal(made)
    assert told.message == "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [A]."
    assert told.plugins == {"A", "F"}


def test_a_plugin_that_refuses_the_pod_refuses_all_nodes() -> None:
    told = refusal(profile(pre_filters=[("A", says(PluginStatus.unresolvable("never", "ever"))), ("B", says())]))
    assert told.message == "0/3 nodes are available: never, ever."
    assert (sorted(told.plugins), sorted(told.pending)) == (["A"], [])
    assert set(told.rejections) == {"n0", "n1", "n2"}


def test_what_waits_is_told_apart_from_what_refuses() -> None:
    told = refusal(profile(pre_filters=[("A", says(PluginStatus.pending("soon")))]))
    assert (sorted(told.plugins), sorted(told.pending), told.is_error) == ([], ["A"], False)


def test_reasons_are_counted_and_sorted_and_the_first_plugin_that_refuses_a_node_names_it() -> None:
    made = profile(
        filters=[
            ("A", refuses(PluginStatus.unschedulable("full"), "n0", "n3")),
            ("B", refuses(PluginStatus.unresolvable("wrong zone", "too old"))),
        ]
    )
    told = refusal(made, 4)
    assert told.message == "0/4 nodes are available: 2 full, 2 too old, 2 wrong zone."
    assert told.plugins == {"A", "B"}
    assert told.rejections["n0"].plugin == "A"


def test_a_filter_that_has_nothing_to_do_is_left_out() -> None:
    made = profile(
        pre_filters=[("F", says(SKIP))], filters=[("F", refuses(PluginStatus.unschedulable("x")))], scores=SCORED
    )
    assert found(searching(2), made) == ["n0", "n1"]


def test_a_filter_that_fails_ends_the_attempt() -> None:
    told = refusal(profile(filters=[("F", refuses(PluginStatus.failed("broken")))]))
    assert told.is_error
    assert told.message == 'running "F" filter plugin: broken'
    told = refusal(profile(pre_filters=[("P", says(PluginStatus.failed("broken")))]))
    assert told.message == 'running PreFilter plugin "P": broken'


def test_without_nodes_nobody_is_asked() -> None:
    told = refusal(profile(pre_filters=[("P", says(PluginStatus.failed("broken")))]), 0)
    assert (told.message, told.is_error) == ("no nodes available to schedule pods", False)
