"""What if: which pods fit where on a cluster with changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from drakit.base.errors import UsageError
from drakit.explain import WhatIf, WhatIfAnswer, what_if
from tests.builders.documents import Plain, claim_document, document, request_of
from tests.builders.explained import gpus, objects_of, two_nodes, waiting
from tests.builders.manifests import by_template, device_class, pod_group, template
from tests.builders.podmanifests import node


def asked(documents: list[Plain], **question: Any) -> WhatIfAnswer:
    return what_if(objects_of(documents), WhatIf(**question))


def wanting(name: str, count: int = 1, **spec: Any) -> list[Plain]:
    claim = claim_document(name, request_of(count=count), namespace="default", uid=f"uid-{name}-claim")
    return [claim, waiting(name, name, **spec)]


def where(answer: WhatIfAnswer) -> dict[str, str]:
    return {each.name: each.node for each in (*answer.placed, *answer.pending)}


def test_pods_are_placed_in_the_order_of_the_queue_and_see_those_before() -> None:
    answer = asked(two_nodes(*wanting("low", 2), *wanting("first", priority=10), *wanting("second")))
    assert [each.name for each in answer.placed] == ["first", "second"]
    assert {each.devices for each in answer.placed} == {
        ("gpu.example.com/node-a/gpu-1",), ("gpu.example.com/node-b/gpu-0",),
    }  # fmt: skip
    assert [(each.name, each.reason) for each in answer.pending] == [
        ("low", "0/2 nodes are available: 2 cannot allocate all claims.")
    ]
    assert (answer.before.used, answer.after.used, answer.after.free) == (1, 3, 0)


def test_new_nodes_take_what_waits() -> None:
    answer = asked(two_nodes(*wanting("p", 2)), add_nodes={"node-a": 2})
    assert answer.added == ("node-a-new-1", "node-a-new-2")
    assert where(answer)["p"].startswith("node-a-new-")
    assert (answer.before.nodes, answer.after.nodes, answer.after.devices) == (2, 4, 7)


def test_a_node_that_goes_sends_its_pods_elsewhere() -> None:
    answer = asked(two_nodes(), remove_nodes=("node-a",))
    [moved] = answer.placed
    assert (moved.name, moved.moved, moved.node, moved.devices) == (
        "trainer", "node-a", "node-b", ("gpu.example.com/node-b/gpu-0",),
    )  # fmt: skip
    assert answer.after.nodes == 1


def test_a_drained_node_keeps_its_devices_and_takes_no_pod() -> None:
    answer = asked(two_nodes(*wanting("p")), drain=("node-a",))
    assert sorted(where(answer).values()) == ["", "node-b"]
    assert answer.after.devices == 3


@pytest.mark.parametrize(("effect", "moves"), [("", True), ("=worn:NoExecute", True), ("=worn:NoSchedule", False)])
def test_a_taint_drives_out_who_does_not_tolerate_it(effect: str, moves: bool) -> None:
    answer = asked(two_nodes(), taint=(f"gpu.example.com/node-a/gpu-0{effect}",))
    assert [each.name for each in answer.placed] == (["trainer"] if moves else [])


def test_an_evicted_pod_is_gone_and_its_devices_are_free() -> None:
    answer = asked(two_nodes(*wanting("p", 2)), evict=("default/trainer",))
    assert where(answer) == {"p": "node-a"}


def test_more_pods_and_another_template_are_asked_about_as_documents() -> None:
    pod = waiting("more", "x")
    del pod["metadata"]["uid"]
    pod["spec"] = {**pod["spec"], "resourceClaims": [by_template()]}
    assert where(asked(two_nodes(), put=(pod, template(count=2)))) == {"more": ""}
    saved = two_nodes(pod, template(count=2))
    assert where(asked(saved)) == {"more": ""}
    assert where(asked(saved, put=(template(count=1),)))["more"] != ""


def test_another_class_is_asked_about_as_a_document() -> None:
    narrow = document("DeviceClass", "gpu.example.com", {"selectors": [{"cel": {"expression": "false"}}]})
    saved = two_nodes(*wanting("p"))
    assert where(asked(saved, put=(narrow,))) == {"p": ""}


def test_the_fewest_nodes_that_fit_everything_are_found() -> None:
    pods = [each for number in range(7) for each in wanting(f"p{number}", 2)]
    answer = asked(two_nodes(*pods), smallest="node-a")
    assert (answer.needed, len(answer.placed), answer.pending) == (7, 7, ())
    fewer = asked(two_nodes(*pods), add_nodes={"node-a": 6})
    assert len(fewer.pending) == 1


def test_pods_that_no_such_node_can_take_are_told_apart() -> None:
    answer = asked(two_nodes(*wanting("huge", 9), *wanting("p", 2)), smallest="node-a")
    assert (answer.needed, answer.hopeless) == (1, ("default/huge",))


def test_a_template_may_be_given_as_documents() -> None:
    kind = (node("big"), gpus("big", *["h100"] * 8))
    answer = asked(two_nodes(*wanting("p", 8)), templates={"big": kind}, smallest="big")
    assert (answer.needed, where(answer)["p"]) == (1, "big-new-1")


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    gang = pod_group("g", []) | {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    gang["metadata"]["uid"] = "uid-g"
    members = [each for n in range(3) for each in wanting(f"m{n}", schedulingGroup={"podGroupName": "g"})]
    documents = two_nodes(gang, *members, *wanting("z-other"))
    refused = asked(documents)
    assert {name for name, place in where(refused).items() if not place} == {"m0", "m1", "m2"}
    assert {each.reason for each in refused.pending} >= {"its gang needs more pods than fit"}
    enough = asked(documents, add_nodes={"node-b": 1})
    assert all(where(enough)[f"m{n}"] for n in range(3))


def test_extended_resources_count() -> None:
    backed = device_class()
    backed["spec"]["extendedResourceName"] = "example.com/gpu"
    limits = {"limits": {"example.com/gpu": "1"}}
    pods = [
        document("Pod", f"p{n}", {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": limits}],
        }, api="v1", namespace="default", uid=f"uid-p{n}")
        for n in range(3)
    ]  # fmt: skip
    answer = asked([node("node-a"), backed, gpus("node-a", "a", "b"), *pods], smallest="node-a")
    assert (answer.needed, answer.after.used, len(answer.placed)) == (1, 3, 3)
    assert all(each.devices for each in answer.placed)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"remove_nodes": ("x",)}, 'nodes "x" not found'),
        ({"drain": ("x",)}, 'nodes "x" not found'),
        ({"evict": ("default/x",)}, 'pods "x" not found in namespace default'),
        ({"add_nodes": {"x": 1}}, "neither a node of the cluster nor a template"),
        ({"taint": ("x",)}, 'device "x": there is none'),
        ({"taint": ("gpu-0",)}, "which of 2"),
    ],
)
def test_what_is_not_there_cannot_be_changed(question: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        asked(two_nodes(), **question)


def test_questions_and_answers_are_plain_data() -> None:
    plain = msgspec.json.encode(asked(two_nodes(*wanting("p"))))
    assert msgspec.json.decode(plain, type=WhatIfAnswer).placed[0].name == "p"
    assert msgspec.convert({"addNodes": {"a": 1}}, WhatIf).add_nodes == {"a": 1}
