"""Why a pod waits, what would make it fit, and where it runs."""

from __future__ import annotations

import pytest

from drakit.base.errors import NotFound
from drakit.drivers import PROFILE_TEMPLATES
from drakit.explain import ObjectExplanation, Standing, explain_claim, explain_pod, explain_podgroup
from tests.builders.documents import Plain, claim_document, class_document, document, request_of
from tests.builders.explained import GPU, gpus, objects_of, two_nodes, waiting
from tests.builders.manifests import by_template, device_class, pod_group, template
from tests.builders.podmanifests import node


def asking(count: int = 1, expression: str = "") -> Plain:
    return claim_document(
        "wanted", request_of(count=count, expression=expression), namespace="default", uid="uid-wanted"
    )


def explained(*documents: Plain, name: str = "p") -> ObjectExplanation:
    return explain_pod(objects_of(documents), name)


def kinds(found: ObjectExplanation) -> dict[str, str]:
    return {each.kind: each.text for each in found.suggestions}


def test_a_pod_that_wants_too_much_is_told_what_lacks_who_has_it_and_what_would_help() -> None:
    found = explained(*two_nodes(asking(2), waiting("p", "wanted")))
    assert found.standing is Standing.PENDING
    assert found.verdict == (
        "Pod default/p fits on none of 2 nodes: claim default/wanted, request r wants 2 devices of class "
        "gpu.example.com, and node-a has the most, 1; 1 of 3 are in use."
    )
    assert found.message == "0/2 nodes are available: 2 cannot allocate all claims."
    [request] = found.requests
    assert {stage.stage: stage.left for stage in request.stages} == {
        "devices": 3, "class": 3, "selectors": 3, "free": 2, "taints": 2, "constraints": 2, "counters": 2,
        "capacity": 2, "node resources": 2,
    }  # fmt: skip
    assert [(each.device, each.claim, each.pods) for each in found.missing] == [
        ("gpu.example.com/node-a/gpu-0", "trainer", ("trainer",))
    ]
    assert kinds(found) == {
        "pods": "pod default/trainer gone from node node-a",
        "node": "one more node like node-a (2 devices)",
        "count": "1 instead of 2 devices in request r of claim wanted",
    }


def test_the_funnel_tells_class_from_selector_from_taint_from_node() -> None:
    tainted = gpus("node-c", "h100", taints=[{"key": "worn", "effect": "NoSchedule"}])
    full = node("node-d", room={"cpu": "1"})
    foreign = gpus("node-b", "h100") | {"metadata": {"name": "other"}}
    foreign["spec"] = {**foreign["spec"], "driver": "nic.example.com", "pool": {**foreign["spec"]["pool"], "name": "n"}}
    found = explained(
        *two_nodes(asking(2, expression=GPU.format("h100")), waiting("p", "wanted", cpu="4")),
        node("node-c"), tainted, full, gpus("node-d", "h100", "h100"), foreign,
    )  # fmt: skip
    [request] = found.requests
    assert {stage.stage: stage.left for stage in request.stages} == {
        "devices": 7, "class": 6, "selectors": 5, "free": 5, "taints": 4, "constraints": 4, "counters": 4,
        "capacity": 4, "node resources": 2,
    }  # fmt: skip
    assert {(each.stage, each.count) for each in request.refused} == {
        ("class", 1), ("selectors", 1), ("taints", 1), ("node resources", 2),
    }  # fmt: skip
    reasons = {each.reason: each.nodes for each in found.nodes}
    assert reasons["Insufficient cpu"] == ("node-d",)


def test_equal_nodes_are_folded() -> None:
    nodes = [each for number in range(5) for each in (node(f"n{number}"), gpus(f"n{number}", "h100"))]
    found = explained(device_class(), *nodes, asking(2), waiting("p", "wanted"))
    [folded] = found.nodes
    assert (len(folded.nodes), folded.plugin) == (5, "DynamicResources")
    assert folded.detail == ("default/wanted, request r: 2 wanted, 1 of 1 usable",)


def test_a_pod_that_nothing_stands_against_says_so() -> None:
    found = explained(*two_nodes(asking(), waiting("p", "wanted")))
    assert (found.standing, found.fitting) == (Standing.FITS, ("node-a", "node-b"))


def test_a_running_pod_tells_where_its_devices_are_and_how_it_got_them() -> None:
    found = explained(*two_nodes(), name="trainer")
    assert (found.standing, found.node) == (Standing.RUNNING, "node-a")
    [device] = found.devices
    assert (device.device, device.why) == ("gpu.example.com/node-a/gpu-0", "matches class gpu.example.com")


def test_a_pod_whose_template_is_missing_waits_for_it() -> None:
    pod = waiting("p", "x") | {}
    pod["spec"] = {**pod["spec"], "resourceClaims": [by_template(name="gone")]}
    found = explained(*two_nodes(pod))
    assert found.standing is Standing.WAITING
    assert found.verdict.endswith("ResourceClaimTemplate gone does not exist.")


def test_claims_of_templates_are_made_for_pods_that_no_server_has_seen() -> None:
    pod = waiting("p", "x")
    del pod["metadata"]["uid"]
    pod["spec"] = {**pod["spec"], "resourceClaims": [by_template()]}
    found = explained(*two_nodes(pod, template(count=3)))
    assert found.standing is Standing.PENDING
    assert found.requests[0].claim == "default/p-g"


def test_suggestions_carry_the_objects_that_would_change() -> None:
    found = explained(*two_nodes(asking(2), waiting("p", "wanted")))
    by_kind = {each.kind: each for each in found.suggestions}
    assert [each.name for each in by_kind["pods"].remove] == ["trainer"]
    assert by_kind["count"].put[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert [each["kind"] for each in by_kind["node"].put] == ["Node", "ResourceSlice"]


def test_a_missing_class_a_gate_and_a_cordon_are_each_suggested_to_be_mended() -> None:
    missing = claim_document("wanted", request_of(device_class="none"), namespace="default", uid="u")
    assert "class" in kinds(explained(*two_nodes(missing, waiting("p", "wanted"))))
    gated = waiting("p", "wanted", schedulingGates=[{"name": "quota"}])
    found = explained(*two_nodes(asking(), gated))
    assert found.standing is Standing.WAITING
    assert kinds(found) == {"gate": "the scheduling gates of pod p removed: quota"}
    cordoned = [node("node-a", spec={"unschedulable": True}), device_class(), gpus("node-a", "h100")]
    assert "uncordon" in kinds(explained(*cordoned, asking(), waiting("p", "wanted")))


def test_what_only_helps_together_is_suggested_together() -> None:
    """A selector that matches nothing, and too many devices: neither change alone is enough."""
    found = explained(
        node("node-a"), device_class(), gpus("node-a", "h100"),
        asking(2, expression=GPU.format("b200")), waiting("p", "wanted"),
    )  # fmt: skip
    [together] = found.suggestions
    assert together.kind == "several"
    assert "; and " in together.text


def test_a_cluster_without_nodes_says_that() -> None:
    assert explained(asking(), waiting("p", "wanted")).verdict == "Pod default/p fits nowhere: the cluster has no node."


def test_a_cluster_without_nodes_is_offered_one_of_a_template() -> None:
    wanted = claim_document("wanted", request_of(device_class="nvidia", count=4), namespace="default", uid="u")
    nvidia = class_document("nvidia", 'device.driver == "gpu.nvidia.com"')
    documents = [nvidia, wanted, waiting("p", "wanted")]
    found = explain_pod(objects_of(documents, templates=PROFILE_TEMPLATES), "p")
    assert [each.kind for each in found.suggestions] == ["node"] * 3
    assert "one more node of template h100-8 (8 devices)" in [each.text for each in found.suggestions]
    assert {each["kind"] for each in found.suggestions[0].put} == {"Node", "ResourceSlice"}


def test_a_class_that_only_a_template_knows_comes_with_its_node() -> None:
    wanted = claim_document("wanted", request_of(device_class="gpu.amd.com"), namespace="default", uid="u")
    found = explain_pod(objects_of([wanted, waiting("p", "wanted")], templates=PROFILE_TEMPLATES), "p")
    assert [each.text for each in found.suggestions][:2] == [
        f"one more node of template {name} (8 devices); and a DeviceClass gpu.amd.com, that of template mi300x"
        for name in ("mi300x", "mi300x-cpx")
    ]


def test_a_pod_larger_than_any_node_is_offered_a_larger_one() -> None:
    found = explained(*two_nodes(asking(), waiting("p", "wanted", cpu="64")))
    assert found.suggestions[0].text == "one more node like node-a, but with 1 of each of its devices and cpu 64"


def test_what_nothing_can_help_is_told_with_the_reason() -> None:
    found = explained(*two_nodes(waiting("p", "nowhere")))
    assert (found.suggestions, found.hopeless) == ((), 'could not find ResourceClaim "default/nowhere"')
    assert explained(asking(), waiting("p", "wanted")).hopeless.endswith("no nodes available to schedule pods")


def test_a_pod_whose_claim_is_on_a_node_that_it_cannot_reach_is_told_to_free_the_claim() -> None:
    pod = waiting("p", "trainer", nodeSelector={"zone": "b"})
    nodes = [node("node-a"), node("node-b", zone="b")]
    found = explained(*two_nodes(pod)[2:], *nodes)
    assert kinds(found)["claim"] == "claim trainer without the devices that it has: pod trainer gone"


def test_a_member_of_a_gang_waits_with_the_others_even_if_it_would_fit_alone() -> None:
    gang = pod_group("g", []) | {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    gang["metadata"]["uid"] = "uid-g"
    claims = [claim_document(f"c{n}", namespace="default", uid=f"uid-c{n}") for n in range(3)]
    pods = [waiting(f"p{n}", f"c{n}", schedulingGroup={"podGroupName": "g"}) for n in range(3)]
    found = explained(*two_nodes(gang, *claims, *pods), name="p0")
    assert found.standing is Standing.PENDING
    assert found.verdict.startswith("Pod default/p0 waits with its gang: PodGroup default/g does not run")
    assert kinds(found) == {
        "pods": "pod default/trainer gone from node node-a",
        "node": "one more node like node-b (1 devices)",
        "min-count": "minCount 2 instead of 3 in PodGroup g",
    }


def test_a_claim_is_explained_by_the_pod_that_waits_for_it_or_by_itself() -> None:
    waited = explain_claim(objects_of(two_nodes(asking(2), waiting("p", "wanted"))), "wanted")
    assert waited.verdict.startswith("ResourceClaim default/wanted has no devices, and pod default/p waits for it")
    alone = explain_claim(objects_of(two_nodes(asking(2))), "wanted")
    assert alone.standing is Standing.PENDING
    assert "no pod uses it" in alone.verdict
    held = explain_claim(objects_of(two_nodes()), "trainer")
    assert held.verdict == "ResourceClaim default/trainer has 1 device and is reserved for pod trainer."


def test_a_group_tells_how_many_of_its_pods_fit_at_once() -> None:
    gang = pod_group("g", []) | {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    gang["metadata"]["uid"] = "uid-g"
    claims = [claim_document(f"c{n}", namespace="default", uid=f"uid-c{n}") for n in range(3)]
    pods = [waiting(f"p{n}", f"c{n}", schedulingGroup={"podGroupName": "g"}) for n in range(3)]
    found = explain_podgroup(objects_of(two_nodes(gang, *claims, *pods)), "g")
    assert found.standing is Standing.PENDING
    assert found.verdict.startswith("PodGroup default/g does not run: it needs 3 pods at once and 2 fit.")
    assert [each.standing.value for each in found.members] == ["fits", "fits", "pending"]
    few = explain_podgroup(objects_of(two_nodes(gang, *claims[:1], *pods[:1])), "g")
    assert few.verdict == "PodGroup default/g waits: it needs 3 pods at once and has 1."


def test_extended_resources_are_explained_by_the_class_behind_them() -> None:
    backed = device_class()
    backed["spec"]["extendedResourceName"] = "example.com/gpu"
    pod = document("Pod", "p", {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "3"}}}],
    }, api="v1", namespace="default", uid="uid-p")  # fmt: skip
    found = explained(node("node-a"), backed, gpus("node-a", "h100"), pod)
    assert found.standing is Standing.PENDING
    assert found.requests[0].stages[-1].left == 1


@pytest.mark.parametrize("function", [explain_pod, explain_claim, explain_podgroup])
def test_what_is_not_there_cannot_be_explained(function: object) -> None:
    with pytest.raises(NotFound, match="nobody"):
        function(objects_of(two_nodes()), "nobody")  # type: ignore[operator]
