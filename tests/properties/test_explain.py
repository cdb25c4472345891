"""Explain agrees with the scheduler: what it says would make a pod fit, done, makes it fit.

A cluster is drawn, the real server, controllers and scheduler run on it until the pod is refused. Then one
suggestion is carried out through the API, as a person would, and the real scheduler places the pod.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from drakit.client import CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES, TEMPLATES
from drakit.explain import ClusterObjects, ObjectExplanation, Standing, Suggestion, explain_pod
from tests.builders.documents import DRIVER, Plain, class_document, document, request_of, slice_document
from tests.builders.manifests import by_name, device_class
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import SchedulingCluster, scheduling

KINDS = (NODES, SLICES, CLASSES, TAINT_RULES, CLAIMS, TEMPLATES, PODS)
MODEL = f'device.attributes["{DRIVER}"].model == "{{}}"'
COUNTERS = [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}]


@st.composite
def drawn_devices(draw: st.DrawFn) -> list[Plain]:
    found: list[Plain] = []
    for number in range(draw(st.integers(1, 3))):
        device: Plain = {
            "name": f"d{number}",
            "attributes": {
                "model": {"string": draw(st.sampled_from(["a", "b"]))}, "numa": {"int": draw(st.integers(0, 1))},
            },
        }  # fmt: skip
        if draw(st.integers(0, 3)) == 0:
            device["taints"] = [{"key": "worn", "effect": "NoSchedule"}]
        if draw(st.integers(0, 3)) == 0:
            device |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
        found.append(device)
    return found


@st.composite
def drawn_claims(draw: st.DrawFn, name: str) -> Plain:
    devices: Plain = {}
    requests: list[Plain] = []
    for number in range(draw(st.integers(1, 2))):
        exactly: Plain = {}
        if draw(st.integers(0, 4)) == 0:
            exactly["allocationMode"] = "All"
        else:
            exactly["count"] = draw(st.integers(1, 3))
        if draw(st.integers(0, 4)) == 0:
            exactly["capacity"] = {"requests": {"memory": "6Gi"}}
        text = draw(st.sampled_from(["", "", MODEL.format("a"), MODEL.format("c"), "device.attributes.x.y"]))
        requests.append(request_of(f"r{number}", draw(st.sampled_from([DRIVER, "other"])), expression=text, **exactly))
    devices["requests"] = requests
    if draw(st.integers(0, 3)) == 0:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/numa"}]
    return document("ResourceClaim", name, {"devices": devices}, namespace="default")


@st.composite
def drawn_clusters(draw: st.DrawFn) -> tuple[list[Plain], list[Plain], list[Plain]]:
    """What there is, pods that come first, and the pod that is asked about with its claim."""
    there: list[Plain] = [device_class(), class_document("other", MODEL.format("b"))]
    for number in range(draw(st.integers(1, 3))):
        name = f"node-{number}"
        spec: Any = draw(st.sampled_from([None, None, None, {"unschedulable": True}]))
        there.append(node(name, room={"cpu": "2", "pods": "4"}, spec=spec))
        there.append(slice_document(f"slice-{number}", *draw(drawn_devices()), node=name, pool=name))
    if draw(st.integers(0, 3)) == 0:
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "repair", "effect": "NoSchedule"}}
        there.append(document("DeviceTaintRule", "repair", rule, api="resource.k8s.io/v1beta2"))
    first: list[Plain] = []
    for number in range(draw(st.integers(0, 3))):
        first.append(draw(drawn_claims(f"first-{number}")))
        first.append(pod(f"first-{number}", cpu=draw(st.sampled_from(["", "1"])), claims=[by_name(f"first-{number}")]))
    asked = draw(drawn_claims("asked"))
    spec = draw(st.sampled_from([{}, {}, {"nodeSelector": {"zone": "z"}}, {"schedulingGates": [{"name": "x"}]}]))
    wanted = pod("asked", cpu=draw(st.sampled_from(["", "1", "2"])), claims=[by_name("asked")], spec=spec)
    return there, first, [asked, wanted]


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn_clusters(), st.integers(0, 50))
def test_what_explain_suggests_makes_a_refused_pod_fit(
    drawn: tuple[list[Plain], list[Plain], list[Plain]], number: int
) -> None:
    asyncio.run(_suggestion_helps(*drawn, number))


async def _suggestion_helps(there: list[Plain], first: list[Plain], asked: list[Plain], number: int) -> None:
    async with scheduling() as it:
        await it.create(*there)
        await it.create(*first)
        for each in await it.all(PODS):
            if not each.spec.node_name:
                await it.delete(PODS, each.metadata.name)
        await it.create(*asked)
        found = await _explained(it)
        is_placed = bool(await it.node_of("asked"))
        assert (found.standing is Standing.RUNNING) is is_placed
        if is_placed:
            return
        condition = await it.condition("asked")
        assert condition is not None
        if found.standing is Standing.PENDING:
            assert condition.message.startswith(found.message)
        note(found.verdict)
        assert found.suggestions, "nothing is suggested"
        chosen = found.suggestions[number % len(found.suggestions)]
        note(chosen.text)
        await _carry_out(it, chosen, asked)
        await it.run_for(700)
        assert await it.node_of("asked"), (chosen.text, await it.condition("asked"))


async def _explained(it: SchedulingCluster) -> ObjectExplanation:
    objects: list[Any] = []
    for kind in KINDS:
        objects += await it.client.list(kind)
    return explain_pod(ClusterObjects(objects, gates=it.gates), "asked")


async def _carry_out(it: SchedulingCluster, chosen: Suggestion, asked: list[Plain]) -> None:
    """Through the API: claims and pods never change, so new ones take the place of the old."""
    await it.delete(PODS, "asked")
    await it.delete(CLAIMS, "asked")
    renewed = {"ResourceClaim": asked[0], "Pod": asked[1]}
    for gone in chosen.remove:
        kinds = {"Pod": PODS, "ResourceClaim": CLAIMS, "DeviceTaintRule": TAINT_RULES}
        if gone.kind != "ResourceClaim":  # those go with their pods
            await it.delete(kinds[gone.kind], gone.name)
    for each in chosen.put:
        if each["metadata"]["name"] == "asked":
            renewed[each["kind"]] = {**renewed[each["kind"]], "spec": _spec(each, renewed[each["kind"]])}
        elif each["kind"] == "ResourceClaim":
            assert not each.get("status", {}).get("allocation")  # it is given back by the controller
        else:
            await _store(it, dict(each))
    await it.create(renewed["ResourceClaim"], renewed["Pod"])


def _spec(changed: Any, before: Plain) -> Plain:
    """Of pods, which are modelled in part, only what was modelled."""
    if changed["kind"] != "Pod":
        return dict(changed["spec"])
    kept = {key: value for key, value in before["spec"].items() if key not in ("nodeSelector", "schedulingGates")}
    told = ("nodeSelector", "schedulingGates", "tolerations")
    return kept | {key: changed["spec"][key] for key in told if key in changed["spec"]}


async def _store(it: SchedulingCluster, changed: Plain) -> None:
    changed["metadata"] = {
        key: value for key, value in changed["metadata"].items() if key in ("name", "labels", "namespace")
    }
    kind = {"Node": NODES, "ResourceSlice": SLICES, "DeviceClass": CLASSES}[changed["kind"]]
    known = await it.client.find(kind, changed["metadata"]["name"])
    if known is not None and kind is NODES:
        await it.client.patch(known, {"spec": {"unschedulable": False}})
        await it.settle()
        return
    if known is not None:
        await it.delete(kind, changed["metadata"]["name"])
    await it.create(changed)
