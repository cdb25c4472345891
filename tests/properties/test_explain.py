"""Explain agrees with the scheduler: what it says would make a pod or a gang fit, done, makes it fit.

A cluster is drawn, the real server, controllers and scheduler run on it until the pod is refused. Then one
suggestion is carried out through the API, as a person would, and the real scheduler places the pod. Where explain says
that nothing helps, everything is changed at once that can be changed, and the scheduler still refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from drakit.client import CLAIMS, CLASSES, NODES, POD_GROUPS, PODS, SLICES, TAINT_RULES, TEMPLATES
from drakit.drivers import PROFILE_TEMPLATES
from drakit.explain import (
    ClusterObjects,
    ObjectExplanation,
    Standing,
    Suggestion,
    explain_pod,
    explain_podgroup,
)
from tests.builders.cluster import run_stepped
from tests.builders.documents import Plain
from tests.builders.drawnclusters import DrawnCluster, drawn_clusters
from tests.builders.schedulercluster import SchedulingCluster, scheduling

KINDS = (NODES, SLICES, CLASSES, TAINT_RULES, CLAIMS, TEMPLATES, PODS, POD_GROUPS)
OWN = {"Pod": PODS, "ResourceClaim": CLAIMS, "PodGroup": POD_GROUPS}
TEMPLATES_WITHOUT_DRIVER = {
    name: documents for name, documents in PROFILE_TEMPLATES.items() if "bindingConditions" not in str(documents)
}
"""Devices with binding conditions wait for their driver before a pod is bound, and no driver runs here."""
LONG = 700
"""Seconds in which the scheduler tries again what it refused, whatever happens."""


@pytest.mark.timeout(1800)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn_clusters(), st.integers(0, 50))
def test_what_explain_suggests_makes_a_refused_pod_or_gang_fit(drawn: DrawnCluster, number: int) -> None:
    run_stepped(_suggestion_helps(drawn, number))


async def _suggestion_helps(drawn: DrawnCluster, number: int) -> None:
    async with scheduling() as it:
        await it.create(*drawn.there)
        await it.create(*drawn.first)
        for each in await it.all(PODS):
            if not each.spec.node_name:
                await it.delete(PODS, each.metadata.name)
        await it.create(*drawn.asked)
        found = await _explained(it, drawn)
        note(found.verdict)
        assert (found.standing is Standing.RUNNING) is await _runs(it, drawn)
        if found.standing is Standing.RUNNING:
            return
        if found.standing is Standing.FITS:
            # Members of a gang that differ may be placed in an unlucky order. The next time comes.
            assert drawn.group
            await it.run_for(LONG)
        elif found.suggestions:
            chosen = found.suggestions[number % len(found.suggestions)]
            note(chosen.text)
            await _carry_out(it, chosen, drawn)
            await it.run_for(LONG)
        else:
            note(found.hopeless)
            assert found.hopeless, "neither a suggestion nor a word that there is none"
            assert not await _anything_helps(it, drawn)
            return
        assert await _runs(it, drawn), [await it.condition(name) for name in drawn.pods]


async def _explained(it: SchedulingCluster, drawn: DrawnCluster) -> ObjectExplanation:
    objects: list[Any] = []
    for kind in KINDS:
        objects += await it.client.list(kind)
    cluster = ClusterObjects(objects, gates=it.gates, templates=TEMPLATES_WITHOUT_DRIVER)
    if drawn.group:
        return explain_podgroup(cluster, drawn.group)
    found = explain_pod(cluster, "asked")
    condition = await it.condition("asked")
    if found.standing is Standing.PENDING:
        assert condition is not None
        assert condition.message.startswith(found.message)
    return found


async def _runs(it: SchedulingCluster, drawn: DrawnCluster) -> bool:
    """Whether enough pods have a node: of a gang as many as it needs at once."""
    placed = [name for name in drawn.pods if await it.node_of(name)]
    if not drawn.group:
        return bool(placed)
    group = await it.find(POD_GROUPS, drawn.group)
    assert group is not None
    needed: int = group.spec.scheduling_policy.gang.min_count
    return len(placed) >= needed


async def _carry_out(it: SchedulingCluster, chosen: Suggestion, drawn: DrawnCluster) -> None:
    """Through the API: claims, pods and groups never change, so new ones take the place of the old."""
    await _take_away(it, drawn.asked)
    renewed = {(each["kind"], each["metadata"]["name"]): each for each in drawn.asked}
    for gone in chosen.remove:
        if gone.kind != "ResourceClaim":  # those go with their pods
            await it.delete({**OWN, "DeviceTaintRule": TAINT_RULES}[gone.kind], gone.name)
    for each in chosen.put:
        key = each["kind"], each["metadata"]["name"]
        if key in renewed:
            renewed[key] = {**renewed[key], "spec": _spec(each, renewed[key])}
        elif each["kind"] == "ResourceClaim":
            assert not each.get("status", {}).get("allocation")  # it is given back by the controller
        else:
            await _store(it, dict(each))
    await it.create(*renewed.values())


async def _take_away(it: SchedulingCluster, asked: Iterable[Plain]) -> None:
    for each in reversed(list(asked)):
        await it.delete(OWN[each["kind"]], each["metadata"]["name"])


def _spec(changed: Mapping[str, Any], before: Plain) -> Plain:
    """Of pods, which are modelled in part, only what was modelled."""
    if changed["kind"] != "Pod":
        return dict(changed["spec"])
    told = ("nodeSelector", "schedulingGates", "tolerations", "affinity", "topologySpreadConstraints")
    kept = {key: value for key, value in before["spec"].items() if key not in told}
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


# The twin of "nothing helps": everything at once


async def _anything_helps(it: SchedulingCluster, drawn: DrawnCluster) -> bool:
    """Every other pod, taint and rule gone, a node of every template added, the asked pods as modest as can be."""
    await _take_away(it, drawn.asked)
    for kind in (TAINT_RULES, PODS, SLICES, NODES):
        for each in await it.all(kind):
            await it.delete(kind, each.metadata.name)
    for name, documents in TEMPLATES_WITHOUT_DRIVER.items():
        known = [name, *(each.metadata.name for each in await it.all(CLASSES))]
        await it.create(*(dict(each) for each in documents if each["metadata"]["name"] not in known[1:]))
    await it.create(*map(_modest, drawn.asked))
    await it.run_for(LONG)
    return await _runs(it, drawn)


def _modest(asked: Plain) -> Plain:
    if asked["kind"] == "PodGroup":
        return {**asked, "spec": {**asked["spec"], "schedulingPolicy": {"gang": {"minCount": 1}}}}
    if asked["kind"] == "ResourceClaim":
        request = {"name": "r", "exactly": {"deviceClassName": "extended"}}
        return {**asked, "spec": {"devices": {"requests": [request]}}}
    dropped = ("nodeSelector", "schedulingGates")
    spec = {key: value for key, value in asked["spec"].items() if key not in dropped}
    return {**asked, "spec": {**spec, "containers": [{"name": "ctr", "image": "img"}]}}
