"""Nodes as processes: API server, controllers, scheduler, `drakit node` and three drivers, each on its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest

from drakit.client import CLAIMS, NODES, PODS, SLICES, Client
from tests.e2e.processes import ROOT, Running, apiserver, command, controllers, following
from tests.e2e.reached import PATIENCE, reached, until

GATES = ("--feature-gates", "AllAlpha=true,AllBeta=true")
NODE = "node-1"
CLASSES = {"gpu": "gpu.example.com", "nic": "net.example.com", "cpu": "dra.cpu"}
FABRIC = "fabric.example.com"


class Machine(msgspec.Struct, frozen=True):
    """A cluster of processes; `root` is the node's directory."""

    server: Running
    root: Path
    reach: tuple[str, ...]
    metrics: str = ""
    """Where the agent shows its metrics."""

    def agent(self) -> tuple[str, ...]:
        authority = str(self.server.kubeconfig.parent / "pki")
        return (
            *self.reach, "--node-name", NODE, "--root-dir", str(self.root), "--cdi-dir", str(self.root / "cdi"),
            "--authority-dir", authority, "--secure-port", "0", *GATES,
        )  # fmt: skip

    def driver(self, name: str) -> tuple[str, ...]:
        return (
            "run", name, "--kubeconfig", str(self.server.kubeconfig), "--node-name", NODE,
            "--plugin-dir", str(self.root / "plugins"), "--registry-dir", str(self.root / "plugins_registry"),
            "--cdi-dir", str(self.root / "cdi"), "--set", f"directory={self.root / name}",
        )  # fmt: skip


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    # Sockets have short paths: the directories of pytest are too deep.
    with TemporaryDirectory(prefix="dn") as directory, ExitStack() as stack:
        root = Path(directory)
        (root / "tokens.csv").write_text(f"node-token,system:node:{NODE},1,system:nodes\n")
        (root / "token").write_text("node-token")
        server = stack.enter_context(
            apiserver(
                "--data-dir",
                str(root / "data"),
                "--token-auth-file",
                str(root / "tokens.csv"),
                "--authorization-mode",
                "Node,RBAC",
                *GATES,
            )
        )
        authority = server.kubeconfig.parent / "pki" / "ca.crt"
        reach = ("--master", server.url, "--token-file", str(root / "token"), "--certificate-authority", str(authority))
        (root / "node" / "cdi").mkdir(parents=True)
        made = Machine(server, root / "node", reach)
        stack.enter_context(controllers(server.kubeconfig, *GATES))
        stack.enter_context(following("scheduler", "--kubeconfig", str(server.kubeconfig), *GATES))
        agent = stack.enter_context(following("node", *made.agent()))
        made = msgspec.structs.replace(made, metrics=f"{agent.shown}/metrics")
        for name in CLASSES:
            stack.enter_context(_driver(made, name))
        asyncio.run(_classes(made))
        yield made


class _driver:  # noqa: N801 - a context manager
    """`drakit driver run NAME`, ended with the test."""

    def __init__(self, machine: Machine, name: str, *flags: str) -> None:
        (machine.root / name).mkdir(parents=True, exist_ok=True)
        self._arguments = command(*machine.driver(name), "--port", "0", *flags, name="driver")

    def __enter__(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self._arguments, stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        said = ""
        for line in self.process.stdout or ():
            said += line
            if "listening on" in line:
                return self.process
        raise RuntimeError(f"the driver did not start: {said}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
        if self.process.stdout is not None:
            self.process.stdout.close()


async def _classes(machine: Machine) -> None:
    async with reached(machine.server.kubeconfig) as client:
        for driver in CLASSES.values():
            spec = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
            about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": driver}}
            await client.create({**about, "spec": spec})
        for driver in CLASSES.values():
            await until(client, SLICES, _of(driver), namespace="")


def _of(driver: str) -> Callable[[Any], bool]:
    return lambda each: each.spec.driver == driver


def _pod(name: str, script: str, *kinds: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["sh", "-c", script],
                    "resources": {"claims": [{"name": kind} for kind in kinds]},
                }
            ],
            "resourceClaims": [{"name": kind, "resourceClaimName": f"{name}-{kind}"} for kind in kinds],
            **spec,
        },
    }


async def _claims(client: Client, name: str, *kinds: str) -> None:
    for kind in kinds:
        request = {"name": "r", "exactly": {"deviceClassName": CLASSES[kind]}}
        about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        metadata = {"name": f"{name}-{kind}", "namespace": "default"}
        await client.create({**about, "metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def _in_phase(name: str, phase: str) -> Callable[[Any], bool]:
    return lambda each: each.view.metadata.name == name and each.view.status.phase == phase


async def _gone(client: Client, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await client.find(PODS, name, namespace="default") is not None:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)


def _prepared(root: Path) -> int:
    """How many claims have their CDI files."""
    return len(list((root / "cdi").glob("*.json")))


def test_a_pod_gets_the_devices_of_three_drivers_and_its_metadata_and_its_log_comes_through_the_server(
    machine: Machine,
) -> None:
    script = "env; cat /var/run/kubernetes.io/dra-device-attributes/resourceclaims/p-gpu/r/*; sleep 100"

    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await _claims(client, "p", *CLASSES)
            await client.create(_pod("p", script, *CLASSES))
            await until(client, PODS, _in_phase("p", "Running"), namespace="default")
            said = await _log(client, "p", "metadata")
            assert "GPU_DEVICE_0=" in said
            assert "NET_DEVICE_0=" in said
            assert "DRA_CPUSET_" in said
            assert '"kind"' in said
            await client.delete(PODS, "p", namespace="default")
            await _gone(client, "p")
            assert _prepared(machine.root) == 0
            await until(client, CLAIMS, lambda each: each.status.allocation is None, namespace="default")

    asyncio.run(run())


async def _log(client: Client, pod: str, wanted: str) -> str:
    """The pod's log, as soon as it has that word."""
    async with asyncio.timeout(PATIENCE):
        path = f"/api/v1/namespaces/default/pods/{pod}/log"
        while wanted not in (said := await client.text(path)):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)
        return said


def test_a_pod_with_a_preset_node_runs_without_a_scheduler(machine: Machine) -> None:
    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.create(_pod("preset", "exit 0", nodeName=NODE))
            await until(client, PODS, _in_phase("preset", "Succeeded"), namespace="default")
            await client.delete(PODS, "preset", namespace="default")
            await _gone(client, "preset")

    asyncio.run(run())


def test_an_agent_that_is_killed_finds_its_pods_again_and_lets_their_claims_go(machine: Machine) -> None:
    """On a node of its own: the agent of the fixture lives on."""
    root = machine.root.parent / "second"
    (root / "cdi").mkdir(parents=True)
    second = msgspec.structs.replace(machine, root=root)
    arguments = [each if each != NODE else "node-2" for each in second.agent()]

    async def begin() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.create(_pod("k", "echo up; sleep 100", nodeName="node-2"))
            await until(client, PODS, _in_phase("k", "Running"), namespace="default")

    async def end() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, NODES, lambda each: each.view.metadata.name == "node-2", namespace="")
            pod = await client.get(PODS, "k", namespace="default")
            assert pod.document["status"]["containerStatuses"][0]["restartCount"] == 0
            await client.delete(PODS, "k", namespace="default")
            await _gone(client, "k")

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
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    async def use() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, SLICES, lambda each: each.spec.node_name == name, namespace="")
            await _claims(client, "stays", "gpu")
            await client.create(_pod("stays", "sleep 100", "gpu", affinity=there))
            await until(client, PODS, _in_phase("stays", "Running"), namespace="default")
            assert _prepared(root) > 0

    async def give_up() -> None:
        """The node is silent, and somebody says that it is out of service: its pods are taken off the server."""
        async with reached(machine.server.kubeconfig) as client:
            silent = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            node = await client.get(NODES, name)
            await client.patch_status(node, {"conditions": [silent]})
            taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
            await client.patch_named(NODES, name, {"spec": {"taints": [taint]}})
            await _gone(client, "stays")
            await until(client, CLAIMS, _is_free("stays-gpu"), namespace="default")
            assert _prepared(root) > 0  # nobody asked the driver

    async def come_back() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.patch_named(NODES, name, {"spec": {"taints": []}})
            async with asyncio.timeout(PATIENCE):
                while _prepared(root):  # noqa: ASYNC110 - files of another process
                    await asyncio.sleep(0.05)

    driver = _driver(third, "gpu", "--node-name", name)
    with driver, following("node", *agent, killed=True) as working:
        asyncio.run(use())
        os.kill(working.process.pid, signal.SIGKILL)
        working.process.wait()
        asyncio.run(give_up())
        with following("node", *agent):
            asyncio.run(come_back())


def _is_free(name: str) -> Callable[[Any], bool]:
    return lambda each: each.metadata.name == name and each.status.allocation is None


def test_a_driver_is_removed_safely(machine: Machine) -> None:
    """As its guide says: taint its devices, wait until no claim is in use, end it."""

    async def use_and_empty() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await client.patch_named(NODES, NODE, {"metadata": {"labels": {f"{FABRIC}/zone": "zone-a"}}})
            selector = {"cel": {"expression": f'device.driver == "{FABRIC}"'}}
            about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": FABRIC}}
            await client.create({**about, "spec": {"selectors": [selector]}})
            await until(client, SLICES, _of(FABRIC), namespace="")
            await client.create(_fabric_claim("leaving"))
            await client.create(_fabric_pod("leaving"))
            await until(client, PODS, _in_phase("leaving", "Running"), namespace="default")
            assert _in_use(machine) == 1
            taint = {"key": f"{FABRIC}/leaving", "effect": "NoExecute"}
            rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "leave"}}
            await client.create({**rule, "spec": {"deviceSelector": {"driver": FABRIC}, "taint": taint}})
            await _gone(client, "leaving")
            assert _in_use(machine) == 0

    async def nothing_is_left() -> None:
        async with reached(machine.server.kubeconfig) as client:
            assert [each for each in await client.list(SLICES) if each.spec.driver == FABRIC] == []
            await client.create(_fabric_pod("late"))
            await client.create(_fabric_claim("late"))
            await until(client, PODS, _is_refused("late"), namespace="default")
            await client.delete(PODS, "late", namespace="default")
            await _gone(client, "late")

    with _driver(machine, "fabric", "--remove-slices-on-exit"):
        asyncio.run(use_and_empty())
    asyncio.run(nothing_is_left())


def _fabric_pod(name: str) -> dict[str, Any]:
    return _pod(name, "sleep 100", "fabric")


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
                await client.create(_pod("p", "echo hello; sleep 100"))
                await until(client, PODS, _in_phase("p", "Running"), namespace="default")
                assert "hello" in await _log(client, "p", "hello")
                await client.delete(PODS, "p", namespace="default")
                await _gone(client, "p")

        asyncio.run(run())
