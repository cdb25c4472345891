"""Inter-pod affinity, anti-affinity and topology spread, by example and against a naive twin."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api import Pod
from drakit.api.objects.plain import from_plain
from drakit.scheduler.framework import Action, CycleState
from tests.scheduler.plugins.making import hint
from tests.scheduler.plugins.topology import HOST, ZONE, Plain, Twin, World, far, labelled, near, placed, spread

NODES = [labelled("a1", zone="a"), labelled("a2", zone="a"), labelled("b1", zone="b")]
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_FAR = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"
UNEVEN = "node(s) didn't match pod topology spread constraints"


def test_a_pod_goes_where_a_pod_is_that_it_wants_to_be_near() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    assert world.refused(world.affinity, placed("p", spec=near())) == {"b1": NOT_NEAR}
    assert world.refused(world.affinity, placed("p", spec=near(HOST))) == {"a2": NOT_NEAR, "b1": NOT_NEAR}


def test_the_first_of_a_kind_that_wants_to_be_near_its_kind_goes_anywhere_with_the_label() -> None:
    world = World([*NODES, labelled("bare")], [])
    assert world.refused(world.affinity, placed("p", app="web", spec=near())) == {"bare": NOT_NEAR}
    assert set(world.refused(world.affinity, placed("p", spec=near()))) == {"a1", "a2", "b1", "bare"}


def test_a_pod_stays_away_from_pods_that_it_wants_to_be_far_from() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    assert world.refused(world.affinity, placed("p", spec=far())) == {"a1": NOT_FAR, "a2": NOT_FAR}


def test_a_pod_stays_away_from_pods_that_want_to_be_far_from_it() -> None:
    world = World(NODES, [placed("shy", where="b1", spec=far())])
    assert world.refused(world.affinity, placed("p", app="web")) == {"b1": KEPT_AWAY}
    assert world.refused(world.affinity, placed("p", app="db")) == {}


def test_terms_hold_in_the_namespace_of_their_pod_unless_they_name_others() -> None:
    namespaces = {"default": {}, "team": {"team": "ml"}}
    world = World(NODES, [placed("web", where="a1", namespace="team", app="web")], namespaces)
    assert world.refused(world.affinity, placed("p", spec=far())) == {}
    named: list[Plain] = [{"namespaces": ["team"]}, {"namespaceSelector": {"matchLabels": {"team": "ml"}}}]
    for term in named:
        assert set(world.refused(world.affinity, placed("p", spec=far(**term)))) == {"a1", "a2"}, term
    assert set(world.refused(world.affinity, placed("p", spec=far(namespaceSelector={})))) == {"a1", "a2"}


def test_match_label_keys_stand_for_the_pods_own_values() -> None:
    world = World(NODES, [placed("old", where="a1", app="web", version="1")])
    both: Plain = {"matchLabelKeys": ["version"]}
    assert world.refused(world.affinity, placed("p", version="2", spec=far(**both))) == {}
    assert set(world.refused(world.affinity, placed("p", version="1", spec=far(**both)))) == {"a1", "a2"}
    other: Plain = {"mismatchLabelKeys": ["version"]}
    assert set(world.refused(world.affinity, placed("p", version="2", spec=far(**other)))) == {"a1", "a2"}


def test_preferences_make_nodes_liked_and_disliked() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    assert world.scores(world.affinity, placed("p", spec=near(weight=10))) == {"a1": 100, "a2": 100, "b1": 0}
    assert world.scores(world.affinity, placed("p", spec=far(weight=10))) == {"a1": 0, "a2": 0, "b1": 100}


def test_pods_without_terms_cost_nothing_while_no_pod_has_terms() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    asked = from_plain(Pod, placed("p"))
    world.cache.all = None  # type: ignore[assignment, method-assign]
    for plugin in (world.affinity, world.spread):
        status, _ = plugin.pre_filter(CycleState(asked), asked)
        assert status.code.name == "SKIP"


def test_the_count_of_pods_with_terms_goes_down_with_the_last_one() -> None:
    world = World(NODES, [placed("shy", where="b1", spec=far()), placed("shy-too", where="b1", spec=far())])
    assert world.cache.affine == {"b1": 2}
    world.remove("default/shy")
    world.remove("default/shy-too")
    assert world.cache.affine == {}


def test_pods_are_spread_over_zones() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    assert world.refused(world.spread, placed("p", app="web", spec=spread())) == {"a1": UNEVEN, "a2": UNEVEN}
    assert world.refused(world.spread, placed("p", app="web", spec=spread(skew=2))) == {}
    # It is not one of those that it counts, and makes nothing worse.
    assert world.refused(world.spread, placed("p", app="db", spec=spread())) == {}


def test_a_node_without_the_label_is_refused() -> None:
    world = World([*NODES, labelled("bare")], [])
    told = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert world.refused(world.spread, placed("p", app="web", spec=spread())) == {"bare": told}


def test_fewer_domains_than_wanted_count_as_one_more_that_is_empty() -> None:
    world = World(NODES, [placed("x", where="a1", app="web"), placed("y", where="b1", app="web")])
    assert world.refused(world.spread, placed("p", app="web", spec=spread(minDomains=2))) == {}
    assert set(world.refused(world.spread, placed("p", app="web", spec=spread(minDomains=3)))) == {"a1", "a2", "b1"}


def test_nodes_that_the_pod_cannot_use_count_by_the_policies() -> None:
    tainted = {**labelled("c1", zone="c"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    world = World([*NODES, tainted], [placed("x", where="a1", app="web"), placed("y", where="b1", app="web")])
    assert set(world.refused(world.spread, placed("p", app="web", spec=spread()))) == {"a1", "a2", "b1"}
    assert world.refused(world.spread, placed("p", app="web", spec=spread(nodeTaintsPolicy="Honor"))) == {}
    only = {"nodeSelector": {ZONE: "a"}}
    assert world.refused(world.spread, placed("p", app="web", spec={**spread(), **only})) == {}
    ignored = {**spread(nodeAffinityPolicy="Ignore"), **only}
    assert set(world.refused(world.spread, placed("p", app="web", spec=ignored))) == {"a1", "a2", "b1"}


def test_pods_that_are_being_deleted_are_not_counted() -> None:
    going = placed("web", where="a1", app="web")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = World(NODES, [going])
    assert world.refused(world.spread, placed("p", app="web", spec=spread())) == {}


def test_a_soft_constraint_likes_domains_with_few_pods() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    found = world.scores(world.spread, placed("p", app="web", spec=spread(when="ScheduleAnyway")))
    assert found["b1"] > found["a1"] == found["a2"]


def test_replicas_of_a_set_are_spread_without_being_asked_to() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    selector = {"matchLabels": {"app": "web"}}
    replica_set = {"metadata": {"name": "r", "namespace": "default"}, "spec": {"selector": selector}}
    found = world.scores(world.spread, world.own(placed("p", app="web"), replica_set))
    assert found["b1"] == found["a2"] > found["a1"]
    assert world.scores(world.spread, placed("p", app="web")) == {}


WEB = {"name": "r", "namespace": "default"}


def test_pods_of_a_stateful_set_or_replication_controller_are_spread_without_being_asked_to() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    stateful = {"metadata": WEB, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    found = world.scores(world.spread, world.own(placed("p", app="web"), stateful, kind="StatefulSet"))
    assert found["b1"] == found["a2"] > found["a1"]
    plain = {"metadata": WEB, "spec": {"selector": {"app": "web"}}}
    owned = world.own(placed("p", app="web"), plain, api="v1", kind="ReplicationController")
    assert world.scores(world.spread, owned) == found


def test_pods_of_a_service_are_spread_without_being_asked_to() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    world.serve("s", app="web")
    found = world.scores(world.spread, placed("p", app="web"))
    assert found["b1"] == found["a2"] > found["a1"]
    assert world.scores(world.spread, placed("p", app="db")) == {}
    world.serve("s", namespace="other", app="db")
    assert world.scores(world.spread, placed("p", app="db")) == {}


def test_a_service_without_a_selector_selects_nothing() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    world.serve("s")
    assert world.scores(world.spread, placed("p", app="web")) == {}


def test_what_service_and_set_ask_for_holds_together() -> None:
    pods = [placed("old", where="a1", app="web", track="old"), placed("new", where="a2", app="web", track="new")]
    world = World(NODES, pods)
    world.serve("s", app="web")
    replica_set = {"metadata": WEB, "spec": {"selector": {"matchLabels": {"track": "new"}}}}
    found = world.scores(world.spread, world.own(placed("p", app="web", track="new"), replica_set))
    assert found["b1"] == found["a1"] > found["a2"]


def test_owners_of_other_kinds_say_nothing_of_spread() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    other = {"metadata": WEB, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    for api, kind in (("example.com/v1", "ReplicaSet"), ("apps/v1", "DaemonSet")):
        assert world.scores(world.spread, world.own(placed("p", app="web"), other, api=api, kind=kind)) == {}


def test_a_victim_that_preemption_would_evict_does_not_count() -> None:
    world = World(NODES, [placed("web", where="a1", app="web")])
    (a1,) = [each for each in world.cache.all() if each.name == "a1"]
    without = a1.without_pod("default/web")
    assert world.refused(world.affinity, placed("p", spec=far()), [without]) == {}
    assert world.refused(world.spread, placed("p", app="web", spec=spread()), [without]) == {}
    assert set(world.refused(world.affinity, placed("p", spec=far()))) == {"a1", "a2"}


def viewed(document: Plain) -> Pod:
    return from_plain(Pod, document)


def test_a_pod_that_waits_for_company_is_woken_when_it_comes() -> None:
    plugin = World(NODES, []).affinity
    waiting = viewed(placed("p", spec=near()))
    assert hint(plugin, "Pod", Action.ADD, waiting, None, viewed(placed("w", where="a1", app="web"))) == "QUEUE"
    assert hint(plugin, "Pod", Action.ADD, waiting, None, viewed(placed("w", where="a1", app="db"))) == "SKIP"


def test_a_pod_that_was_kept_away_is_woken_when_the_other_goes() -> None:
    plugin = World(NODES, []).affinity
    waiting, shy = viewed(placed("p", app="web")), viewed(placed("shy", where="a1", spec=far()))
    assert hint(plugin, "Pod", Action.DELETE, waiting, shy, None) == "QUEUE"
    assert hint(plugin, "Pod", Action.DELETE, viewed(placed("q", app="db")), shy, None) == "SKIP"
    mine = viewed(placed("p", spec=far()))
    assert hint(plugin, "Pod", Action.DELETE, mine, viewed(placed("w", where="a1", app="web")), None) == "QUEUE"


def test_a_pod_that_waits_for_evenness_is_woken_by_pods_that_it_counts() -> None:
    plugin = World(NODES, []).spread
    waiting = viewed(placed("p", app="web", spec=spread()))
    assert hint(plugin, "Pod", Action.ADD, waiting, None, viewed(placed("w", where="b1", app="web"))) == "QUEUE"
    assert hint(plugin, "Pod", Action.DELETE, waiting, viewed(placed("w", where="b1", app="db")), None) == "SKIP"


# Against the twin


KEYS = st.sampled_from([ZONE, HOST, "rack"])
LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"]), "v": st.sampled_from(["1", "2"])})
SELECTORS = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {"matchExpressions": [{"key": "v", "operator": "Exists"}]},
    ]
)
SPACES = {"default": {}, "team": {"team": "ml"}}


@st.composite
def affinity_terms(draw: st.DrawFn) -> Plain:
    term: Plain = {"topologyKey": draw(KEYS)}
    if (selector := draw(SELECTORS)) is not None:
        term["labelSelector"] = selector
    match draw(st.integers(0, 5)):
        case 0:
            term["namespaces"] = ["team"]
        case 1:
            term["namespaceSelector"] = draw(st.sampled_from([{}, {"matchLabels": {"team": "ml"}}]))
    if selector is not None and draw(st.booleans()):
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = ["v"]
    return term


@st.composite
def specs(draw: st.DrawFn, *, rich: bool = True) -> Plain:
    spec: Plain = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        said: Plain = {}
        if draw(st.integers(0, 2)) == 0:
            listed = draw(st.lists(affinity_terms(), min_size=1, max_size=2))
            said["requiredDuringSchedulingIgnoredDuringExecution"] = listed
        if draw(st.integers(0, 2)) == 0:
            listed = draw(st.lists(affinity_terms(), min_size=1, max_size=2))
            weighted = [{"weight": draw(st.integers(1, 5)), "podAffinityTerm": each} for each in listed]
            said["preferredDuringSchedulingIgnoredDuringExecution"] = weighted
        if said:
            spec.setdefault("affinity", {})[kind] = said
    if rich:
        spec["topologySpreadConstraints"] = draw(st.lists(constraints(), max_size=2))
        if draw(st.integers(0, 3)) == 0:
            spec["nodeSelector"] = {ZONE: "a"}
    return spec


@st.composite
def constraints(draw: st.DrawFn) -> Plain:
    said: Plain = {"maxSkew": draw(st.integers(1, 2)), "topologyKey": draw(KEYS)}
    said["whenUnsatisfiable"] = draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]))
    if (selector := draw(SELECTORS)) is not None:
        said["labelSelector"] = selector
        if draw(st.integers(0, 2)) == 0:
            said["matchLabelKeys"] = ["v"]
    if said["whenUnsatisfiable"] == "DoNotSchedule" and draw(st.booleans()):
        said["minDomains"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        said["nodeAffinityPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
        said["nodeTaintsPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
    return said


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Plain:
    labels = {}
    if draw(st.integers(0, 5)):
        labels[ZONE] = draw(st.sampled_from(["a", "b"]))
    if draw(st.booleans()):
        labels["rack"] = draw(st.sampled_from(["1", "2"]))
    made = labelled(f"n{number}", **labels)
    if draw(st.integers(0, 4)) == 0:
        made["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    return made


@st.composite
def placed_pods(draw: st.DrawFn, number: int) -> Plain:
    spec = draw(specs(rich=False)) if draw(st.booleans()) else {}
    space = draw(st.sampled_from(["default", "default", "team"]))
    return placed(f"p{number}", where=f"n{draw(st.integers(0, 4))}", namespace=space, spec=spec, **draw(LABELS))


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Plain], list[Plain], Plain, list[Plain]]:
    made = [draw(nodes(each)) for each in range(draw(st.integers(1, 4)))]
    there = [draw(placed_pods(each)) for each in range(draw(st.integers(0, 5)))]
    later = [draw(placed_pods(each)) for each in range(10, 10 + draw(st.integers(0, 3)))]
    return made, there, placed("incoming", spec=draw(specs()), **draw(LABELS)), later


@settings(max_examples=250, deadline=None)
@given(stories())
def test_the_plugins_agree_with_the_naive_twin_also_after_changes(
    story: tuple[list[Plain], list[Plain], Plain, list[Plain]],
) -> None:
    made, there, incoming, later = story
    world = World(made, there, SPACES)
    agree(world, incoming)
    # What was remembered of nodes that changed must not be told again.
    for each in later:
        world.put(each)
        agree(world, incoming)
    for each in there[:2]:
        world.remove(each["metadata"]["uid"])
        agree(world, incoming)


def agree(world: World, incoming: Plain) -> None:
    twin = Twin(world, incoming)
    assert world.refused(world.affinity, incoming) == twin.affinity()
    assert world.refused(world.spread, incoming) == twin.uneven()
    liked = world.scores(world.affinity, incoming)
    assert liked == twin.liking() or (not liked and not any(twin.liking().values()))
    if any(each["whenUnsatisfiable"] == "ScheduleAnyway" for each in incoming["spec"]["topologySpreadConstraints"]):
        assert world.scores(world.spread, incoming) == twin.evenness()
