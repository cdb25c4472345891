"""Nodes as processes: API server, controllers, scheduler, `drakit node` and three drivers, each on its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest

from drakit.client import CLAIMS, NODES, PODS, SLICES
from tests.e2e.nodemachine import (
    CLASSES,
    NODE,
    Machine,
    driver,
    gone,
    in_phase,
    log_of,
    make_claims,
    make_classes,
    node_cluster,
    of_driver,
    pod_with,
    prepared,
)
from tests.e2e.processes import apiserver, following
from tests.e2e.reached import PATIENCE, reached, until

FABRIC = "fabric.example.com"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with node_cluster() as made, ExitStack() as stack:
        for name in CLASSES:
            stack.enter_context(driver(made, name))
        asyncio.run(make_classes(made))
        asyncio.run(_published(made))
        yield made


async def _published(machine: Machine) -> None:
    async with reached(machine.server.kubeconfig) as client:
        for name in CLASSES.values():
            await until(client, SLICES, of_driver(name), namespace="")


def test_a_pod_gets_the_devices_of_three_drivers_and_its_metadata_and_its_log_comes_through_the_server(
    machine: Machine,
) -> None:
    script = "env; cat /var/run/kubernetes.io/dra-device-attributes/resourceclaims/p-gpu/r/*; sleep 100"

    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await make_claims(client, "p", *CLASSES)
            await client.create(pod_with("p", script, *CLASSES))
            await until(client, PODS, in_phase("p", "Running"), namespace="default")
            said = await log_of(client, "p", "metadata")
            assert "GPU_DEVICE_0=" in said
            assert "NET_DEVICE_0=" in said
            assert "DRA_CPUSET_" in said
            assert '"kind"' in said
            await client.delete(PODS, "p", namespace="default")
            await gone(client, "p")
            assert prepared(machine.root) == 0
            for kind in CLASSES:
                await until(client, CLAIMS, _is_free(f"p-{kind}"), namespace="default")

    asyncio.run(run())


def test_a_pod_with_a_preset_node_runs_without_a_scheduler(machine: Machine) -> None:
    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.create(pod_with("preset", "exit 0", nodeName=NODE))
            await until(client, PODS, in_phase("preset", "Succeeded"), namespace="default")
            await client.delete(PODS, "preset", namespace="default")
            await gone(client, "preset")

    asyncio.run(run())


def test_an_agent_that_is_killed_finds_its_pods_again_and_lets_their_claims_go(machine: Machine) -> None:
    """On a node of its own: the agent of the fixture lives on."""
    root = machine.root.parent / "second"
    (root / "cdi").mkdir(parents=True)
    second = msgspec.structs.replace(machine, root=root)
    arguments = [each if each != NODE else "node-2" for each in second.agent()]

    async def begin() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.create(pod_with("k", "echo up; sleep 100", nodeName="node-2"))
            await until(client, PODS, in_phase("k", "Running"), namespace="default")

    async def end() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, NODES, lambda each: each.view.metadata.name == "node-2", namespace="")
            pod = await client.get(PODS, "k", namespace="default")
            assert pod.document["status"]["containerStatuses"][0]["restartCount"] == 0
            await client.delete(PODS, "k", namespace="default")
            await gone(client, "k")

    reach = ("--kubeconfig", str(machine.server.kubeconfig))
    plain = [*reach, *arguments[len(machine.reach) :]]
    with following("node", *plain, killed=True) as working:
        asyncio.run(begin())
        os.kill(working.process.pid, signal.SIGKILL)
        working.process.wait()
    with following("node", *plain):
        asyncio.run(end())


def test_a_node_that_was_out_of_service_comes_back_and_lets_go_of_claims_that_nobody_unprepared(
    machine: Machine,
) -> None:
    name, root = "node-3", machine.root.parent / "third"
    (root / "cdi").mkdir(parents=True)
    third = msgspec.structs.replace(machine, root=root)
    admin = ("--kubeconfig", str(machine.server.kubeconfig))
    agent = (*admin, *(name if each == NODE else each for each in third.agent()[len(machine.reach) :]))

    async def use() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, SLICES, lambda each: each.spec.node_name == name, namespace="")
            await make_claims(client, "stays", "gpu")
            await client.create(pod_with("stays", "sleep 100", "gpu", affinity=_only_on(name)))
            await until(client, PODS, in_phase("stays", "Running"), namespace="default")
            assert prepared(root) > 0

    async def give_up() -> None:
        """The node is silent, and somebody says that it is out of service: its pods are taken off the server."""
        async with reached(machine.server.kubeconfig) as client:
            silent = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            node = await client.get(NODES, name)
            await client.patch_status(node, {"conditions": [silent]})
            taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
            await client.patch_named(NODES, name, {"spec": {"taints": [taint]}})
            await gone(client, "stays")
            await until(client, CLAIMS, _is_free("stays-gpu"), namespace="default")
            assert prepared(root) > 0  # nobody asked the driver

    async def come_back() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.patch_named(NODES, name, {"spec": {"taints": []}})
            async with asyncio.timeout(PATIENCE):
                while prepared(root):  # noqa: ASYNC110 - files of another process
                    await asyncio.sleep(0.05)

    on_third = driver(third, "gpu", "--node-name", name)
    with on_third, following("node", *agent, killed=True) as working:
        asyncio.run(use())
        os.kill(working.process.pid, signal.SIGKILL)
        working.process.wait()
        asyncio.run(give_up())
        with following("node", *agent):
            asyncio.run(come_back())


def _only_on(node: str) -> dict[str, Any]:
    """The affinity of a pod that fits one node alone."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _is_free(name: str) -> Callable[[Any], bool]:
    return lambda each: each.metadata.name == name and each.status.allocation is None


def test_a_cordoned_node_takes_no_pod_and_a_noexecute_taint_ends_pods_and_lets_their_claims_go(
    machine: Machine,
) -> None:
    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await make_claims(client, "moved", "gpu")
            # Other tests have nodes of their own, which the server may still take for alive.
            await client.create(pod_with("moved", "sleep 1000", "gpu", affinity=_only_on(NODE)))
            await until(client, PODS, in_phase("moved", "Running"), namespace="default")
            await client.patch_named(NODES, NODE, {"spec": {"unschedulable": True}})
            await client.create(pod_with("cordoned", "sleep 1000", affinity=_only_on(NODE)))
            await until(client, PODS, _is_refused("cordoned"), namespace="default")
            await client.patch_named(NODES, NODE, {"spec": {"unschedulable": None}})
            await until(client, PODS, in_phase("cordoned", "Running"), namespace="default")
            taint = {"key": "example.com/repair", "effect": "NoExecute"}
            await client.patch_named(NODES, NODE, {"spec": {"taints": [taint]}})
            for name in ("moved", "cordoned"):
                await gone(client, name)
            assert prepared(machine.root) == 0
            await client.patch_named(NODES, NODE, {"spec": {"taints": []}})

    asyncio.run(run())


def test_a_driver_is_removed_safely(machine: Machine) -> None:
    """As its guide says: taint its devices, wait until no claim is in use, end it."""

    async def use_and_empty() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.patch_named(NODES, NODE, {"metadata": {"labels": {f"{FABRIC}/zone": "zone-a"}}})
            selector = {"cel": {"expression": f'device.driver == "{FABRIC}"'}}
            about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": FABRIC}}
            await client.create({**about, "spec": {"selectors": [selector]}})
            await until(client, SLICES, of_driver(FABRIC), namespace="")
            await client.create(_fabric_claim("leaving"))
            await client.create(_fabric_pod("leaving"))
            await until(client, PODS, in_phase("leaving", "Running"), namespace="default")
            assert _in_use(machine) == 1
            taint = {"key": f"{FABRIC}/leaving", "effect": "NoExecute"}
            rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "leave"}}
            await client.create({**rule, "spec": {"deviceSelector": {"driver": FABRIC}, "taint": taint}})
            await gone(client, "leaving")
            assert _in_use(machine) == 0

    async def nothing_is_left() -> None:
        async with reached(machine.server.kubeconfig) as client:
            assert [each for each in await client.list(SLICES) if each.spec.driver == FABRIC] == []
            await client.create(_fabric_pod("late"))
            await client.create(_fabric_claim("late"))
            await until(client, PODS, _is_refused("late"), namespace="default")
            await client.delete(PODS, "late", namespace="default")
            await gone(client, "late")

    with driver(machine, "fabric", "--remove-slices-on-exit"):
        asyncio.run(use_and_empty())
    asyncio.run(nothing_is_left())


def _fabric_pod(name: str) -> dict[str, Any]:
    return pod_with(name, "sleep 100", "fabric")


def _fabric_claim(name: str) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": FABRIC}}
    metadata = {"name": f"{name}-fabric", "namespace": "default"}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    return {**about, "spec": {"devices": {"requests": [request]}}}


def _is_refused(name: str) -> Callable[[Any], bool]:
    def refused(pod: Any) -> bool:
        conditions = pod.view.status.conditions
        return pod.view.metadata.name == name and any(each.reason == "Unschedulable" for each in conditions)

    return refused


def _in_use(machine: Machine) -> int:
    """`dra_resource_claims_in_use` of the fabric's driver."""
    with urlopen(machine.metrics) as answer:
        text = answer.read().decode()
    found = re.search(rf'^dra_resource_claims_in_use{{driver_name="{FABRIC}"}} (\S+)$', text, re.MULTILINE)
    return int(float(found[1])) if found else 0


def test_up_runs_a_node_in_its_own_process() -> None:
    with (
        TemporaryDirectory(prefix="du") as directory,
        apiserver("--data-dir", directory, name="up") as server,
    ):

        async def run() -> None:
            async with reached(server.kubeconfig) as client:
                await client.create(pod_with("p", "echo hello; sleep 100"))
                await until(client, PODS, in_phase("p", "Running"), namespace="default")
                assert "hello" in await log_of(client, "p", "hello")
                await client.delete(PODS, "p", namespace="default")
                await gone(client, "p")

        asyncio.run(run())
