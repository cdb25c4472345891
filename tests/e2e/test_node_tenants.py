"""Who has a place on the node and whose a claim is, and a registry without inotify: processes of their own."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from drakit.base.quantity import Quantity
from drakit.client import CLAIMS, NODES, POD_GROUPS, PODS, SLICES, Client
from tests.builders.manifests import by_template, pod_group
from tests.e2e.nodebench import BARE, Bench, allocate, end, place, running
from tests.e2e.nodemachine import NODE, in_phase, make_class, node_cluster, pod_with, there, told
from tests.e2e.reached import reached, until

# In a user namespace of its own, so that only this process is without; the shell becomes the command.
WITHOUT_INOTIFY = (
    *("unshare", "--user", "--map-root-user"),
    *("sh", "-c", 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"', "sh"),
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        yield Bench(machine, stack)


def test_a_critical_pod_drives_out_the_largest_of_the_others_whose_claim_is_let_go(bench: Bench) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            node = await until(client, NODES, lambda each: each.view.metadata.name == NODE, namespace="")
            cpu = Quantity.parse(node.document["status"]["allocatable"]["cpu"]).nanos // 1_000_000
            await allocate(client, "large")
            await client.create(_asking("large", cpu - 100, "bare"))
            await client.create(_asking("small", 100))
            for name in ("large", "small"):
                await running(client, name)
            await client.create(_asking("critical", 200, priorityClassName="system-node-critical"))
            await running(client, "critical")
            status = (await until(client, PODS, in_phase("large", "Failed"), namespace="default")).document["status"]
            assert (status["reason"], status["message"]) == ("Preempting", "Preempted in order to admit critical pod")
            assert await told(client, "large", "Preempting") == "Preempted in order to admit critical pod"
            await there(lambda: bench.calls() == [["prepare", ["large"]], ["unprepare", ["large"]]])
            assert (await client.get(PODS, "small", namespace="default")).view.status.phase == "Running"
            await end(client, "critical", "small", "large")

    with bench.driver():
        asyncio.run(run())


def _asking(name: str, milli: int, *claims: str, **spec: Any) -> dict[str, Any]:
    pod = pod_with(name, "sleep 1000", *claims, nodeName=NODE, **spec)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{milli}m"}
    pod["spec"]["resourceClaims"] = [{"name": each, "resourceClaimName": name} for each in claims]
    return pod


def test_the_claim_of_a_group_serves_its_pods_with_one_device_and_nobody_else(bench: Bench) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await _offer(client)
            await client.create(pod_group("crew", [by_template("bare", "crew")]))
            for name in ("one", "two"):
                pod = pod_with(name, "sleep 1000", "bare", schedulingGroup={"podGroupName": "crew"})
                pod["spec"]["resourceClaims"] = [by_template("bare", "crew")]
                await client.create(pod)
            for name in ("one", "two"):
                await running(client, name)
            claim = await until(client, CLAIMS, lambda each: each.metadata.controller is not None, namespace="default")
            assert [(each.resource, each.name) for each in claim.status.reserved_for] == [("podgroups", "crew")]
            name = claim.metadata.name
            assert {each[0] for each in bench.calls()} == {"prepare"}
            await end(client, "one")
            assert {each[0] for each in bench.calls()} == {"prepare"}, "the other pod of the group has it"
            await _refused(client, name)
            await end(client, "stranger", "two")
            assert bench.calls()[-1] == ["unprepare", [name]]
            assert all(each[1] == [name] for each in bench.calls())
            await client.delete(POD_GROUPS, "crew", namespace="default")

    with bench.driver():
        asyncio.run(run())


async def _offer(client: Client) -> None:
    """A device on the node, a class and a template for it."""
    await make_class(client, BARE)
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": BARE, "nodeName": NODE, "pool": pool, "devices": [{"name": "one"}]}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "of-bare"}}
    await client.create({**about, "spec": spec})
    await until(client, SLICES, lambda each: each.metadata.name == "of-bare", namespace="")
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": BARE}}]}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    metadata = {"name": "crew", "namespace": "default"}
    await client.create({**about, "metadata": metadata, "spec": {"spec": {"devices": devices}}})


async def _refused(client: Client, claim: str) -> None:
    """A pod of another group names the claim of this one in its status."""
    pod = pod_with("stranger", "sleep 1000", "bare", nodeName=NODE, schedulingGroup={"podGroupName": "others"})
    pod["spec"]["resourceClaims"] = [by_template("bare", "crew")]
    await client.create(pod_group("others", []))
    found = await client.create(pod)
    entry = {"name": "bare", "resourceClaimName": claim}
    await client.patch_status(found, {"resourceClaimStatuses": [entry]})
    wanted = f"ResourceClaim default/{claim} was not created for Pod default/stranger (neither Pod nor PodGroup others"
    await until(client, PODS, _waits_for("stranger", wanted), namespace="default")


def _waits_for(name: str, text: str) -> Callable[[Any], bool]:
    def waits(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        messages = [(each["state"].get("waiting") or {}).get("message", "") for each in statuses]
        return bool(pod.view.metadata.name == name and any(text in each for each in messages))

    return waits


def test_without_inotify_a_driver_is_found_by_the_poll_and_again_when_its_socket_was_replaced(bench: Bench) -> None:
    if subprocess.run([*WITHOUT_INOTIFY, "true"], check=False, capture_output=True).returncode:
        pytest.skip("the kernel gives no user namespace")

    async def use(name: str) -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, name)
            await place(client, name, {"bare": name})
            await running(client, name)
            await end(client, name)
        assert bench.calls() == [["prepare", [name]], ["unprepare", [name]]]

    asyncio.run(there(lambda: _instances(bench.agent.process.pid) == 1))
    bench.kill_agent()
    bench.start_agent(under=WITHOUT_INOTIFY)
    for name in ("polled", "replaced"):
        with bench.driver():
            asyncio.run(use(name))
    # Once it has found a driver, it has tried to have one.
    assert _instances(bench.agent.process.pid) == 0


def _instances(pid: int) -> int:
    """How many instances of inotify a process has."""
    links = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    return links.count("anon_inode:inotify")
