"""Which nodes a pod may be on at all: by name, cordon, taints, affinity and ports."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.plain import from_plain
from drakit.scheduler.config import NodeAffinityArgs
from drakit.scheduler.framework import Action, Code, CycleState
from drakit.scheduler.plugins.nodeaffinity import NodeAffinityPlugin
from drakit.scheduler.plugins.nodename import NodeName
from drakit.scheduler.plugins.nodeports import NodePorts
from drakit.scheduler.plugins.nodeunschedulable import NodeUnschedulable
from drakit.scheduler.plugins.tainttoleration import TaintToleration
from tests.scheduler.plugins.making import codes, hint, make_node, make_pod, on, reasons

UNMATCHED = ("node(s) didn't match Pod's node affinity/selector",)
TAKEN = ("node(s) didn't have free ports for the requested pod ports",)
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def affinity(*terms: Any, preferred: Any = ()) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}} if terms else {}
    liked = {"preferredDuringSchedulingIgnoredDuringExecution": list(preferred)} if preferred else {}
    return {"nodeAffinity": {**required, **liked}}


def named(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]}


def ports(*host: Any) -> list[dict[str, Any]]:
    listed = [{"containerPort": 80, **(each if isinstance(each, dict) else {"hostPort": each})} for each in host]
    return [{"name": "main", "ports": listed}]


# Name


def test_a_pod_that_names_its_node_gets_no_other() -> None:
    pod, nodes = make_pod(nodeName="b"), [on(make_node("a")), on(make_node("b"))]
    assert reasons(NodeName(), pod, *nodes) == {"a": ("node(s) didn't match the requested node name",)}
    assert codes(NodeName(), pod, *nodes) == {"a": "UNRESOLVABLE"}


def test_a_pod_that_names_no_node_is_not_asked_about() -> None:
    assert NodeName().pre_filter(CycleState(make_pod()), make_pod())[0].code is Code.SKIP


# Cordon


def test_a_cordoned_node_refuses_pods_that_do_not_tolerate_it() -> None:
    plugin, node = NodeUnschedulable(), on(make_node("a", unschedulable=True))
    assert reasons(plugin, make_pod(), node, on(make_node("b"))) == {"a": ("node(s) were unschedulable",)}
    assert codes(plugin, make_pod(), node) == {"a": "UNRESOLVABLE"}
    assert reasons(plugin, make_pod(tolerations=[CORDON]), node) == {}


def test_taking_the_cordon_away_wakes_pods_and_putting_it_on_does_not() -> None:
    plugin, pod = NodeUnschedulable(), make_pod()
    free, cordoned = make_node(), make_node(unschedulable=True)
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, cordoned, free) == "QUEUE"
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, free, cordoned) == "SKIP"
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, free, free) == "SKIP"
    assert hint(plugin, "Node", Action.ADD, pod, None, free) == "QUEUE"
    assert hint(plugin, "Node", Action.ADD, pod, None, cordoned) == "SKIP"


def test_a_toleration_wakes_the_pod_only_if_it_is_of_the_cordon() -> None:
    plugin, pod = NodeUnschedulable(), make_pod()
    tolerant = make_pod(tolerations=[CORDON])
    other = make_pod(tolerations=[{"key": "other", "operator": "Exists"}])
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_TOLERATIONS, pod, pod, tolerant) == "QUEUE"
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_TOLERATIONS, pod, pod, other) == "SKIP"


# Taints


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_an_untolerated_taint_keeps_a_pod_away(effect: str) -> None:
    node = on(make_node("a", taints=[{"key": "gpu", "value": "yes", "effect": effect}]))
    assert reasons(TaintToleration(), make_pod(), node) == {"a": ("node(s) had untolerated taint(s)",)}
    assert codes(TaintToleration(), make_pod(), node) == {"a": "UNRESOLVABLE"}
    tolerant = make_pod(tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes"}])
    assert reasons(TaintToleration(), tolerant, node) == {}


def test_a_taint_that_only_advises_keeps_nobody_away() -> None:
    node = on(make_node("a", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]))
    assert reasons(TaintToleration(), make_pod(), node) == {}


def test_only_the_loss_of_the_taint_in_the_way_wakes_a_pod() -> None:
    plugin, pod = TaintToleration(), make_pod(tolerations=[{"key": "mine", "operator": "Exists"}])
    tainted = make_node(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    tolerated = make_node(taints=[{"key": "mine", "effect": "NoSchedule"}])
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, tainted, tolerated) == "QUEUE"
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, tolerated, make_node()) == "SKIP"
    assert hint(plugin, "Node", Action.ADD, pod, None, tolerated) == "QUEUE"
    assert hint(plugin, "Node", Action.ADD, pod, None, tainted) == "SKIP"
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_TOLERATIONS, pod, pod, pod) == "QUEUE"


# Selector and affinity


def test_a_node_must_have_the_labels_of_the_selector_and_match_one_term() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    pod = make_pod(nodeSelector={"zone": "z"}, affinity=affinity({"matchExpressions": [expression]}))
    both = on(make_node("both", labels={"zone": "z", "disk": "ssd"}))
    one, other = on(make_node("one", labels={"zone": "z"})), on(make_node("other", labels={"disk": "ssd"}))
    assert reasons(NodeAffinityPlugin(), pod, both, one, other) == {"one": UNMATCHED, "other": UNMATCHED}
    assert codes(NodeAffinityPlugin(), pod, one) == {"one": "UNRESOLVABLE"}


def test_a_selector_without_terms_matches_no_node() -> None:
    pod = make_pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}})
    assert reasons(NodeAffinityPlugin(), pod, on(make_node("a"))) == {"a": UNMATCHED}


def test_terms_that_name_nodes_narrow_the_search() -> None:
    pod = make_pod(affinity=affinity(named("a"), named("b")))
    assert NodeAffinityPlugin().pre_filter(CycleState(pod), pod)[1] == frozenset({"a", "b"})
    other = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    pod = make_pod(affinity=affinity(named("a"), other))
    assert NodeAffinityPlugin().pre_filter(CycleState(pod), pod)[1] is None


def test_terms_that_name_two_nodes_at_once_conflict() -> None:
    pod = make_pod(affinity=affinity(named("a", "b")))
    status, _ = NodeAffinityPlugin().pre_filter(CycleState(pod), pod)
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, ("pod affinity terms conflict",))


def test_a_pod_that_asks_for_nothing_skips_filter_and_score() -> None:
    state = CycleState(make_pod())
    assert NodeAffinityPlugin().pre_filter(state, state.pod)[0].code is Code.SKIP
    assert state.skip_score == {"NodeAffinity"}


def test_affinity_that_a_profile_adds_holds_for_every_pod() -> None:
    added = affinity({"matchExpressions": [{"key": "pool", "operator": "Exists"}]})["nodeAffinity"]
    plugin = NodeAffinityPlugin(from_plain(NodeAffinityArgs, {"addedAffinity": added}))
    assert plugin.pre_filter(CycleState(make_pod()), make_pod())[0].ok
    enforced = ("node(s) didn't match scheduler-enforced node affinity",)
    assert reasons(plugin, make_pod(), on(make_node("a")), on(make_node("b", labels={"pool": "x"}))) == {"a": enforced}


def test_only_a_node_that_comes_to_match_wakes_a_pod() -> None:
    plugin, pod = NodeAffinityPlugin(), make_pod(nodeSelector={"disk": "ssd"})
    match, other = make_node(labels={"disk": "ssd"}), make_node(labels={"disk": "hdd"})
    assert hint(plugin, "Node", Action.UPDATE_NODE_LABELS, pod, other, match) == "QUEUE"
    assert hint(plugin, "Node", Action.UPDATE_NODE_LABELS, pod, match, match) == "SKIP"
    assert hint(plugin, "Node", Action.UPDATE_NODE_LABELS, pod, match, other) == "SKIP"
    assert hint(plugin, "Node", Action.ADD, pod, None, match) == "QUEUE"
    assert hint(plugin, "Node", Action.UPDATE_NODE_TAINTS, pod, other, match) == "none"


# Ports


@pytest.mark.parametrize(
    ("wanted", "taken", "free"),
    [
        (8080, 8080, False),
        (8080, 8081, True),
        ({"hostPort": 8080, "protocol": "UDP"}, 8080, True),
        ({"hostPort": 8080, "hostIP": "10.0.0.1"}, {"hostPort": 8080, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 8080, "hostIP": "10.0.0.1"}, {"hostPort": 8080, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 8080, "hostIP": "10.0.0.1"}, 8080, False),
        (8080, {"hostPort": 8080, "hostIP": "10.0.0.1"}, False),
    ],
)
def test_a_port_is_free_if_no_address_shares_it(wanted: Any, taken: Any, free: bool) -> None:
    node = on(make_node("a"), make_pod("old", containers=ports(taken)))
    found = reasons(NodePorts(), make_pod("new", containers=ports(wanted)), node)
    assert found == ({} if free else {"a": TAKEN})


def test_ports_can_be_freed_by_preemption() -> None:
    node = on(make_node("a"), make_pod("old", containers=ports(80)))
    assert codes(NodePorts(), make_pod("new", containers=ports(80)), node) == {"a": "UNSCHEDULABLE"}


def test_sidecars_have_ports_and_plain_init_containers_have_none() -> None:
    inits = [{"name": "init", "ports": [{"containerPort": 1, "hostPort": 80}]}]
    plain, sidecar = make_pod(initContainers=inits), make_pod(initContainers=[{**inits[0], "restartPolicy": "Always"}])
    assert NodePorts().pre_filter(CycleState(plain), plain)[0].code is Code.SKIP
    assert NodePorts().pre_filter(CycleState(sidecar), sidecar)[0].ok


def test_a_port_stays_taken_until_its_last_pod_is_gone() -> None:
    first, second = make_pod("first", containers=ports(80, 81)), make_pod("second", containers=ports(80))
    node, pod = on(make_node("a"), first, second), make_pod("new", containers=ports(80))
    assert reasons(NodePorts(), pod, node.without_pod("uid-first")) == {"a": TAKEN}
    assert reasons(NodePorts(), pod, node.without_pod("uid-first").without_pod("uid-second")) == {}


def test_only_the_end_of_a_pod_with_the_port_wakes_a_pod() -> None:
    plugin, pod = NodePorts(), make_pod(containers=ports(80))
    same, other = make_pod(containers=ports(80), nodeName="a"), make_pod(containers=ports(81), nodeName="a")
    assert hint(plugin, "Pod", Action.DELETE, pod, same, None) == "QUEUE"
    assert hint(plugin, "Pod", Action.DELETE, pod, other, None) == "SKIP"
    assert hint(plugin, "Pod", Action.DELETE, pod, make_pod(containers=ports(80)), None) == "SKIP"
    assert hint(plugin, "Node", Action.ADD, pod, None, make_node()) == "QUEUE"
