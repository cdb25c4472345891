"""What an agent does without each of its feature gates, and with the switch for limits: processes of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from drakit.base.quantity import Quantity
from drakit.client import CLAIMS, NODES, POD_GROUPS, PODS, Client, bind, metadata_of
from tests.builders.manifests import pod_group
from tests.e2e.nodebench import BARE, Bench, allocate, end, place, running
from tests.e2e.nodemachine import GATES, NODE, in_phase, log_of, node_cluster, pod_with
from tests.e2e.podresources import pod_resources
from tests.e2e.reached import reached, until

Plain = dict[str, Any]
DEVICE, SHARE, RESOURCE = "dev-well", "8f0ee7d4-2b9f-4f4a-9d0a-2f3a6f0c1d11", "example.com/gpu"
PAGE = os.sysconf("SC_PAGE_SIZE")
MEMORY = Path("/sys/fs/cgroup/memory")
ILL = {"resourceID": f"{BARE}/pool/{DEVICE}", "health": "Unhealthy"}


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        yield Bench(machine, stack)


def restart(bench: Bench, *flags: str, off: tuple[str, ...] = ()) -> None:
    bench.kill_agent()
    gates = ",".join((GATES[1], *(f"{each}=false" for each in off)))
    bench.start_agent("--feature-gates", gates, *flags)


def without(*gates: str) -> pytest.MarkDecorator:
    """The test with every gate on, and without these."""
    return pytest.mark.parametrize("off", [(), gates], ids=["on", "off"])


@pytest.mark.parametrize(
    ("off", "shown"),
    [
        ((), {**ILL, "message": "overheated"}),
        (("ResourceHealthStatusMessage",), ILL),
        (("ResourceHealthStatus", "ResourceHealthStatusMessage"), None),
    ],
)
def test_health_and_its_message_are_shown_by_their_gates(
    bench: Bench, off: tuple[str, ...], shown: Plain | None
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "well")
            await place(client, "well", {"bare": "well"})
            await running(client, "well")
            if shown is not None:
                await until(client, PODS, _shows("well", shown), namespace="default")
            else:
                # Whatever a stream had told would be in the status by the time another pod has come and gone.
                await place(client, "bystander", {})
                await running(client, "bystander")
                await end(client, "bystander")
                (status,) = (await running(client, "well"))["containerStatuses"]
                assert "allocatedResourcesStatus" not in status
            assert (["watched"] in bench.heard(BARE)) == (shown is not None)
            await end(client, "well")
            await client.delete(CLAIMS, "well", namespace="default")

    restart(bench, off=off)
    with bench.driver(BARE, "--ill", DEVICE):
        asyncio.run(run())


def _shows(name: str, wanted: Plain) -> Callable[[Any], bool]:
    def shows(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        found = [each for status in statuses for each in status.get("allocatedResourcesStatus") or ()]
        return bool(pod.view.metadata.name == name and found == [{"name": "claim:bare", "resources": [wanted]}])

    return shows


@without("DRAExtendedResource")
def test_a_claim_provides_an_extended_resource_by_the_gate_and_else_the_node_lacks_it(
    bench: Bench, off: tuple[str, ...]
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            pod = pod_with("extended", "sleep 1000", schedulerName="this-test")
            pod["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "1"}}
            made = await client.create(pod)
            user = {"resource": "pods", "name": "extended", "uid": metadata_of(made).uid}
            await allocate(client, "provider", reserved=[user])
            mapping = {"containerName": "main", "resourceName": RESOURCE, "requestName": "r"}
            provided = {"resourceClaimName": "provider", "requestMappings": [mapping]}
            found = await client.get(PODS, "extended", namespace="default")
            await bind(client, await client.patch_status(found, {"extendedResourceClaimStatus": provided}), NODE)
            phase = "Failed" if off else "Running"
            status = (await until(client, PODS, in_phase("extended", phase), namespace="default")).document["status"]
            assert status.get("reason") == (f"OutOf{RESOURCE}" if off else None)
            await end(client, "extended")
            await client.delete(CLAIMS, "provider", namespace="default")
        assert bench.calls() == ([] if off else [["prepare", ["provider"]], ["unprepare", ["provider"]]])

    restart(bench, off=off)
    with bench.driver():
        asyncio.run(run())


@without("DRAWorkloadResourceClaims")
def test_the_reservation_of_a_group_counts_by_the_gate_and_else_the_pod_is_refused(
    bench: Bench, off: tuple[str, ...]
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            crew = await client.create(pod_group("crew", []))
            about = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}
            await allocate(client, "ours", reserved=[{**about, "name": "crew", "uid": metadata_of(crew).uid}])
            await place(client, "member", {"bare": "ours"}, schedulingGroup={"podGroupName": "crew"})
            if off:
                waits = _waits_for("member", "is not allowed to use ResourceClaim ours")
                await until(client, PODS, waits, namespace="default")
            else:
                await running(client, "member")
            assert bench.calls() == ([] if off else [["prepare", ["ours"]]])
            await end(client, "member")
            await client.delete(CLAIMS, "ours", namespace="default")
            await client.delete(POD_GROUPS, "crew", namespace="default")

    restart(bench, off=off)
    # The controllers would reserve the claim for the pod itself.
    assert bench.machine.controllers is not None
    bench.machine.controllers.stop()
    try:
        with bench.driver():
            asyncio.run(run())
    finally:
        bench.machine.controllers.start()


def _waits_for(name: str, text: str) -> Callable[[Any], bool]:
    def waits(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        messages = [(each["state"].get("waiting") or {}).get("message", "") for each in statuses]
        return bool(pod.view.metadata.name == name and any(text in each for each in messages))

    return waits


@without("DRAConsumableCapacity")
def test_the_share_that_a_driver_answers_is_passed_on_whatever_the_gate_says(
    bench: Bench, off: tuple[str, ...]
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "shared")
            await place(client, "shared", {"bare": "shared"})
            await running(client, "shared")
            (shown,) = await pod_resources(bench.root)
            (device,) = shown.containers[0].dynamic_resources[0].claim_resources
            assert (device.device_name, device.share_id) == ("dev-shared", SHARE)
            await end(client, "shared")
            await client.delete(CLAIMS, "shared", namespace="default")

    restart(bench, off=off)
    with bench.driver(BARE, "--share", SHARE):
        asyncio.run(run())


@without("DRANodeAllocatableResources")
def test_what_a_claim_takes_of_the_node_counts_at_admission_by_the_gate(bench: Bench, off: tuple[str, ...]) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await bind_taking(client, "large", "sleep 1000", {"cpu": "1k"})
            phase = "Running" if off else "Failed"
            status = (await until(client, PODS, in_phase("large", phase), namespace="default")).document["status"]
            assert status.get("reason") == (None if off else "OutOfcpu")
            assert status["qosClass"] == "BestEffort"
            await end_taking(client, "large")
        assert [each[0] for each in bench.calls()] == (["prepare", "unprepare"] if off else [])

    restart(bench, off=off)
    with bench.driver():
        asyncio.run(run())


async def bind_taking(client: Client, name: str, script: str, amounts: Plain, **resources: Any) -> None:
    """A pod on the node whose claim takes these amounts of the node."""
    pod = pod_with(name, script, "bare", schedulerName="this-test")
    pod["spec"]["containers"][0]["resources"] |= resources
    pod["spec"]["resourceClaims"] = [{"name": "bare", "resourceClaimName": name}]
    user = {"resource": "pods", "name": name, "uid": metadata_of(await client.create(pod)).uid}
    await allocate(client, name, reserved=[user])
    found = await client.get(PODS, name, namespace="default")
    taken = {"resourceClaimName": name, "containers": ["main"], "resources": amounts}
    await bind(client, await client.patch_status(found, {"nodeAllocatableResourceClaimStatuses": [taken]}), NODE)


async def end_taking(client: Client, name: str) -> None:
    await end(client, name)
    await client.delete(CLAIMS, name, namespace="default")


@pytest.mark.parametrize("switch", [(), ("--limits-with-claims",)], ids=["off", "on"])
def test_what_claims_take_raises_oom_score_and_cgroup_limits_and_ranks_victims_behind_the_switch(
    bench: Bench, switch: tuple[str, ...]
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            node = await until(client, NODES, lambda each: each.view.metadata.name == NODE, namespace="")
            memory = Quantity.parse(node.document["status"]["capacity"]["memory"]).value
            score, limit = await limited_pod(client, memory)
            asked = (64 << 20) + (memory // 4 if switch else 0)
            assert score == min(1000 - 1000 * asked // memory, 999)
            if limit is not None:
                assert limit == asked // PAGE * PAGE
            await driven_out(client, node, "by-claim" if switch else "by-spec")

    restart(bench, *switch)
    with bench.driver():
        asyncio.run(run())


async def limited_pod(client: Client, memory: int) -> tuple[int, int | None]:
    """OOM score and memory limit, as its container finds them, of a pod whose claim takes a quarter of the memory.

    Without a limit where no cgroup of version 1 may be made.
    """
    asked, can_limit = {"memory": "64Mi"}, os.access(MEMORY, os.W_OK)
    resources = {"requests": asked} | ({"limits": asked} if can_limit else {})
    script = "cat /proc/self/oom_score_adj /proc/self/cgroup; echo end; sleep 1000"
    await bind_taking(client, "limited", script, {"memory": str(memory // 4)}, **resources)
    assert (await running(client, "limited"))["qosClass"] == "Burstable"
    score, *lines = (await log_of(client, "limited", "end")).splitlines()
    groups = [group for _, found, group in (each.partition(":memory:") for each in lines) if found]
    limit = _memory_limit(groups[0]) if can_limit else None
    await end_taking(client, "limited")
    return int(score), limit


def _memory_limit(group: str) -> int:
    return int((MEMORY / group.lstrip("/") / "memory.limit_in_bytes").read_text())


async def driven_out(client: Client, node: Any, first: str) -> None:
    """Of two pods of equal priority a critical one drives out that which asks for more."""
    cpu = Quantity.parse(node.document["status"]["allocatable"]["cpu"]).nanos // 1_000_000
    await client.create(_asking("by-spec", cpu * 4 // 10))
    await bind_taking(client, "by-claim", "sleep 1000", {"cpu": f"{cpu * 5 // 10}m"})
    for name in ("by-spec", "by-claim"):
        await running(client, name)
    await client.create(_asking("critical", cpu * 3 // 10, priorityClassName="system-node-critical"))
    await running(client, "critical")
    found = await until(client, PODS, in_phase(first, "Failed"), namespace="default")
    assert found.document["status"]["reason"] == "Preempting"
    (other,) = {"by-spec", "by-claim"} - {first}
    assert (await client.get(PODS, other, namespace="default")).view.status.phase == "Running"
    await end(client, "critical", "by-spec")
    await end_taking(client, "by-claim")


def _asking(name: str, milli: int, **spec: Any) -> Plain:
    pod = pod_with(name, "sleep 1000", nodeName=NODE, **spec)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{milli}m"}
    return pod
