"""A node that is short of memory or disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.api import Pod
from drakit.base.errors import UsageError
from drakit.client import NODES, PODS
from drakit.nodeagent.node.pressure import eviction_message, rank
from drakit.nodeagent.node.thresholds import (
    DEFAULT_EVICTION_HARD,
    SIGNALS,
    Observation,
    Threshold,
    binary,
    parse_thresholds,
)
from drakit.nodeagent.node.usage import PodUsage, ThisMachine
from drakit.nodeagent.runtimes.contract import ContainerUsage
from tests.builders.objects import pod_of
from tests.conformance.nodeflows.stage import NAMESPACE, NODE
from tests.nodeagent.scene import Scene, on_loop, scene

MI = 1024 * 1024
GIB = 1024 * MI


class Gauge:
    """What the machine has left, as the test says."""

    def __init__(self) -> None:
        self.memory = GIB
        self.disk = 50 * GIB

    def read(self) -> Mapping[str, Observation]:
        return {
            "memory.available": Observation(self.memory, 8 * GIB),
            "nodefs.available": Observation(self.disk, 100 * GIB),
        }

    async def size(self, directory: Path) -> int:
        del directory
        return 0


@asynccontextmanager
async def pressed(**changes: Any) -> AsyncIterator[tuple[Scene, Gauge]]:
    """A node with a driver that looks after its resources."""
    async with scene() as it:
        gauge = Gauge()
        it.it.usage = gauge
        it.it.changes = {"eviction_hard": parse_thresholds(DEFAULT_EVICTION_HARD, "--eviction-hard"), **changes}
        await it.restart()
        await it.driver()
        yield it, gauge


async def run(it: Scene, name: str, memory: int, *, request: str = "", disk: int = 0, **spec: Any) -> None:
    resources = {"resources": {"requests": {"memory": request}}} if request else {}
    await it.pod(name, claims=(), container=resources, **spec)
    it.it.runtime.usages[name] = ContainerUsage(memory, disk)
    await it.bind(name)


async def conditions(it: Scene) -> dict[str, str]:
    node = await it.it.client.get(NODES, NODE)
    found = node.document["status"]["conditions"]
    return {each["type"]: f"{each['status']} {each['reason']}" for each in found}


@on_loop
async def test_a_node_short_of_memory_says_so_and_evicts_the_pod_that_is_furthest_above_its_request() -> None:
    async with pressed() as (it, gauge):
        await it.start("small")
        it.it.runtime.usages["small"] = ContainerUsage(10 * MI)
        await run(it, "large", 500 * MI)
        await run(it, "modest", 600 * MI, request="1Gi")
        await it.it.run_for(30.0)
        assert not it.events("Evicted")
        gauge.memory = 50 * MI
        await it.it.run_for(10.0)
        message = (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
            "Container main was using 500Mi, request is 0, has larger consumption of memory. "
        )
        assert it.events("Evicted") == [message]
        state = it.state("large")
        assert (state["phase"], state["reason"], state["message"]) == ("Failed", "Evicted", message)
        assert (await conditions(it))["MemoryPressure"] == "True KubeletHasInsufficientMemory"
        told = {each[2]: each[3] for each in it.it.events if each[0] == f"Node/{NODE}"}
        assert told["EvictionThresholdMet"] == "Attempting to reclaim memory"
        assert told["NodeHasInsufficientMemory"] == f"Node {NODE} status is now: NodeHasInsufficientMemory"
        document = (await it.it.client.get(PODS, "large", namespace=NAMESPACE)).document
        (disruption,) = [each for each in document["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
        stops = [each.about for each in it.it.cri if each.method == "StopContainer"]
        assert stops == [{"timeout": 2}]


@on_loop
async def test_pods_go_one_by_one_and_claims_are_unprepared_and_critical_pods_stay() -> None:
    async with pressed() as (it, gauge):
        await it.start("claimed")
        it.it.runtime.usages["claimed"] = ContainerUsage(100 * MI)
        await run(it, "system", 900 * MI, priorityClassName="system-node-critical")
        await run(it, "other", 200 * MI)
        gauge.memory = 50 * MI
        await it.it.run_for(10.0)
        assert (it.state("other")["phase"], it.state("claimed")["phase"]) == ("Failed", "Running")
        await it.it.run_for(10.0)
        assert it.state("claimed")["phase"] == "Failed"
        assert it.calls() == ["prepare", "unprepare"]
        await it.it.run_for(60.0)
        assert it.state("system")["phase"] == "Running"


@on_loop
async def test_the_condition_stays_for_five_minutes_and_pods_without_requests_are_refused_meanwhile() -> None:
    async with pressed() as (it, gauge):
        gauge.memory = 50 * MI
        await it.it.run_for(10.0)
        gauge.memory = GIB
        await it.it.run_for(200.0)
        await run(it, "greedy", 0)
        await run(it, "modest", 0, request="10Mi")
        refused = it.state("greedy")
        assert (refused["phase"], refused["reason"]) == ("Failed", "Evicted")
        assert refused["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
        assert it.state("modest")["phase"] == "Running"
        await it.it.run_for(110.0)
        assert (await conditions(it))["MemoryPressure"] == "False KubeletHasSufficientMemory"
        await run(it, "later", 0)
        assert it.state("later")["phase"] == "Running"


@on_loop
async def test_a_node_short_of_disk_evicts_by_disk_and_takes_no_pod() -> None:
    async with pressed() as (it, gauge):
        await run(it, "writer", 10 * MI, disk=3 * GIB)
        await run(it, "hungry", GIB, disk=MI)
        gauge.disk = 5 * GIB
        await it.it.run_for(10.0)
        assert it.state("writer")["reason"] == "Evicted"
        assert (
            "low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 5Gi." in it.events("Evicted")[0]
        )
        assert (await conditions(it))["DiskPressure"] == "True KubeletHasDiskPressure"
        await run(it, "modest", 0, request="10Mi")
        assert it.state("modest")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "


@on_loop
async def test_without_thresholds_nothing_is_evicted() -> None:
    async with pressed(eviction_hard=()) as (it, gauge):
        await run(it, "large", GIB)
        gauge.memory = 0
        await it.it.run_for(60.0)
        assert it.state("large")["phase"] == "Running"


def rated(name: str, *, request: str = "0", priority: int = 0, claim: str = "") -> Pod:
    status: dict[str, Any] = {}
    if claim:
        taken = {"resourceClaimName": "claim", "containers": ["main"], "resources": {"memory": claim}}
        status = {"nodeAllocatableResourceClaimStatuses": [taken]}
    container = {"name": "main", "image": "i", "resources": {"requests": {"memory": request}}}
    return pod_of(container, name=name, status=status, priority=priority)


def using(pods: Sequence[Pod], memory: Sequence[int]) -> dict[str, PodUsage]:
    return {pod.metadata.uid: PodUsage({"main": ContainerUsage(used)}) for pod, used in zip(pods, memory, strict=True)}


def names(pods: Sequence[Pod]) -> list[str]:
    return [each.metadata.name for each in pods]


@pytest.mark.parametrize(("with_claims", "first"), [(False, "claimed"), (True, "plain")])
def test_what_claims_give_counts_as_asked_for_behind_the_switch(with_claims: bool, first: str) -> None:
    pods = [rated("claimed", request="100Mi", claim="400Mi"), rated("plain", request="100Mi")]
    usages = using(pods, (450 * MI, 200 * MI))
    assert names(rank(pods, usages, "memory", with_claims=with_claims))[0] == first


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=2, max_size=5))
def test_nobody_goes_before_a_pod_that_deserves_it_more(rows: list[tuple[int, int, int]]) -> None:
    pods = [rated(str(i), request=str(asked), priority=priority) for i, (_, asked, priority) in enumerate(rows)]
    usages = using(pods, [used for used, _, _ in rows])
    ranked = [int(name) for name in names(rank(pods, usages, "memory"))]
    for place, earlier in enumerate(ranked):
        for later in ranked[place + 1 :]:
            assert not _sooner(rows[later], rows[earlier])


def _sooner(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """In plain words: above its request; less important; further above."""
    above, also = one[0] > one[1], other[0] > other[1]
    if above != also:
        return above
    if one[2] != other[2]:
        return one[2] < other[2]
    return one[0] - one[1] > other[0] - other[1]


def test_thresholds_are_amounts_or_parts_and_anything_else_is_told() -> None:
    memory, disk = parse_thresholds("memory.available<1.5Gi, nodefs.available<10%", "--eviction-hard")
    assert memory == Threshold(SIGNALS["memory.available"], amount=3 * GIB // 2)
    assert disk.of(1000) == 100
    for wrong, why in (
        ("memory.available", "is not of the form"),
        ("pid.available<5", "is not measured; these are: memory.available"),
        ("memory.available<lots", "--eviction-hard"),
        ("nodefs.available<120%", "0% to 100%"),
    ):
        with pytest.raises(UsageError, match=why):
            parse_thresholds(wrong, "--eviction-hard")
    assert parse_thresholds("", "--eviction-hard") == ()


def test_amounts_are_shown_as_a_kubelet_shows_them() -> None:
    assert [binary(each) for each in (0, 100, 1024, 1536 * 1024, 50 * MI, 1500000 * 1024)] == [
        *("0", "100", "1Ki", "1536Ki", "50Mi", "1500000Ki"),
    ]


def test_only_containers_above_their_request_are_named() -> None:
    threshold, observed = parse_thresholds("memory.available<100Mi", "f")[0], Observation(MI, GIB)
    text = eviction_message(threshold, observed, rated("p", request="1Gi"), PodUsage({"main": ContainerUsage(MI)}))
    assert text == "The node was low on resource: memory. Threshold quantity: 100Mi, available: 1Mi. "


def test_this_machine_is_measured(tmp_path: Path) -> None:
    seen = ThisMachine(tmp_path).read()
    assert seen.keys() >= {"memory.available", "nodefs.available"}
    assert all(0 <= each.available <= each.capacity for each in seen.values())
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 2 kB\n")
    read = ThisMachine(tmp_path, memory_file=tmp_path / "meminfo").read()
    assert read["memory.available"] == Observation(2048, 8192)
    assert "memory.available" not in ThisMachine(tmp_path, memory_file=tmp_path / "none").read()
