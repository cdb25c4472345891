"""Containers as their pods want them, and the node as its flags want it: processes of their own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from drakit.base.quantity import Quantity
from drakit.client import LEASES, NODES, PODS, Client
from tests.e2e.nodebench import Bench, end, running
from tests.e2e.nodemachine import NODE, gone, in_phase, log_of, node_cluster, pod_with, there, told
from tests.e2e.processes import ROOT, command
from tests.e2e.reached import reached, until

Plain = dict[str, Any]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        yield Bench(machine, stack)


def run(bench: Bench, test: Callable[[Client], Any]) -> None:
    async def reach() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await test(client)

    asyncio.run(reach())


def placed_pod(name: str, script: str, **changes: Any) -> Plain:
    """On the node; `container` are changes of its one container."""
    container = changes.pop("container", {})
    made = pod_with(name, script, nodeName=NODE, **changes)
    made["spec"]["containers"][0] |= container
    return made


async def status_of(client: Client, name: str, holds: Callable[[Plain], object]) -> Plain:
    """The status of the pod's container, as soon as that holds."""

    def wanted(found: Any) -> bool:
        statuses = (found.document.get("status") or {}).get("containerStatuses") or ()
        return bool(found.view.metadata.name == name and statuses and holds(statuses[0]))

    found = await until(client, PODS, wanted, namespace="default")
    return dict(found.document["status"]["containerStatuses"][0])


def waits_as(reason: str) -> Callable[[Plain], bool]:
    return lambda status: (status["state"].get("waiting") or {}).get("reason") == reason


def test_containers_end_and_start_again_by_the_restart_policy_with_their_exit_codes(bench: Bench) -> None:
    async def test(client: Client) -> None:
        await client.create(placed_pod("crashing", "exit 3", restartPolicy="Always"))
        await client.create(placed_pod("failing", "exit 7"))
        await client.create(placed_pod("done", "exit 0", restartPolicy="OnFailure"))
        status = await status_of(client, "crashing", waits_as("CrashLoopBackOff"))
        assert (status["lastState"]["terminated"]["exitCode"], status["restartCount"] >= 1) == (3, True)
        assert "Back-off restarting failed container main" in await told(client, "crashing", "BackOff")
        for name, phase, code, reason in (("failing", "Failed", 7, "Error"), ("done", "Succeeded", 0, "Completed")):
            await until(client, PODS, in_phase(name, phase), namespace="default")
            ended = (await status_of(client, name, lambda each: "terminated" in each["state"]))["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (code, reason)
        await end(client, "crashing", "failing", "done")

    run(bench, test)


@pytest.mark.skipif(not os.access("/sys/fs/cgroup/memory", os.W_OK), reason="no cgroup may be made")
def test_a_container_above_its_memory_is_told_to_be_killed_for_it(bench: Bench) -> None:
    async def test(client: Client) -> None:
        limits = {"resources": {"limits": {"memory": "32Mi"}}}
        await client.create(placed_pod("greedy", "x=0123456789; while :; do x=$x$x; done", container=limits))
        status = await status_of(client, "greedy", lambda each: "terminated" in each["state"])
        assert (status["state"]["terminated"]["reason"], status["state"]["terminated"]["exitCode"]) == (
            "OOMKilled",
            137,
        )
        await end(client, "greedy")

    run(bench, test)


def test_init_containers_and_sidecars_come_first_and_volumes_and_environment_are_theirs(bench: Bench) -> None:
    async def test(client: Client) -> None:
        about = {"apiVersion": "v1", "metadata": {"name": "settings", "namespace": "default"}}
        await client.create({**about, "kind": "ConfigMap", "data": {"color": "blue"}})
        await client.create({**about, "kind": "Secret", "stringData": {"word": "swordfish"}})
        await client.create(furnished())
        await running(client, "furnished")
        said = (await log_of(client, "furnished", "\nend")).splitlines()
        assert said == ["side init", "blueswordfishbluefurnished", "furnished 250 blue swordfish", "end"]
        await end(client, "furnished")

    run(bench, test)


def furnished() -> Plain:
    data = {"name": "data", "mountPath": "/drakit-data"}
    mounts = [data, *({"name": each, "mountPath": f"/drakit-{each}"} for each in ("config", "secret", "all"))]
    note = {"image": "i", "volumeMounts": [data]}
    downward = {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}
    env = {
        "NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
        "CPU": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}},
        "COLOR": {"configMapKeyRef": {"name": "settings", "key": "color"}},
        "WORD": {"secretKeyRef": {"name": "settings", "key": "word"}},
    }
    script = """
        echo $(cat /drakit-data/order)
        echo $(cat /drakit-config/color /drakit-secret/word /drakit-all/color /drakit-all/name)
        echo $NAME $CPU $COLOR $WORD
        echo end
        sleep 1000
    """
    side = "echo side >>/drakit-data/order; sleep 1000"
    first = "until test -s /drakit-data/order; do sleep 0.05; done; echo init >>/drakit-data/order"
    return placed_pod(
        "furnished",
        script,
        initContainers=[
            {"name": "side", "command": ["sh", "-c", side], "restartPolicy": "Always", **note},
            {"name": "first", "command": ["sh", "-c", first], **note},
        ],
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "secret", "secret": {"secretName": "settings"}},
            {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}, {"downwardAPI": downward}]}},
        ],
        container={
            "volumeMounts": mounts,
            "env": [{"name": name, "valueFrom": source} for name, source in env.items()],
            "resources": {"requests": {"cpu": "250m"}},
        },
    )


def test_probes_by_command_page_and_port_say_when_a_container_is_ready_and_when_it_is_ended(bench: Bench) -> None:
    ready = bench.root / "ready"
    page = urlsplit(bench.agent.shown).port
    port = urlsplit(bench.machine.server.url).port

    async def test(client: Client) -> None:
        probes: dict[str, Plain] = {
            "by-command": {"exec": {"command": ["test", "-e", str(ready)]}},
            "by-page": {"httpGet": {"host": "127.0.0.1", "port": page, "path": "/healthz"}},
            "by-port": {"tcpSocket": {"host": "127.0.0.1", "port": port}},
        }
        for name, handler in probes.items():
            probe = {**handler, "periodSeconds": 1}
            await client.create(placed_pod(name, "sleep 1000", container={"readinessProbe": probe}))
        for name in ("by-page", "by-port"):
            await status_of(client, name, lambda each: each["ready"])
        assert "Readiness probe failed" in await told(client, "by-command", "Unhealthy")
        assert not (await status_of(client, "by-command", lambda each: "running" in each["state"]))["ready"]
        ready.touch()
        await status_of(client, "by-command", lambda each: each["ready"])
        alive = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
        await client.create(
            placed_pod("dead", "sleep 1000", restartPolicy="Always", container={"livenessProbe": alive})
        )
        await status_of(client, "dead", lambda each: each["restartCount"] >= 1)
        assert "Liveness probe failed" in await told(client, "dead", "Unhealthy")
        await end(client, "dead", *probes)

    run(bench, test)


def test_a_hook_comes_before_the_signal_and_the_grace_period_before_the_kill(bench: Bench) -> None:
    notes = bench.root / "notes"

    async def test(client: Client) -> None:
        hook = {"preStop": {"exec": {"command": ["sh", "-c", f"echo hook >>{notes}"]}}}
        script = f"trap 'echo term >>{notes}; exit 0' TERM; echo up >>{notes}; while :; do sleep 0.05; done"
        for name, body in (("polite", script), ("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done")):
            changes = {"lifecycle": hook} if name == "polite" else {}
            grace = 60 if name == "polite" else 1
            await client.create(placed_pod(name, body, container=changes, terminationGracePeriodSeconds=grace))
        await there(lambda: notes.exists() and "up" in notes.read_text())
        await log_of(client, "deaf", "up")
        for name in ("polite", "deaf"):
            await client.delete(PODS, name, namespace="default")
        await gone(client, "polite")
        assert notes.read_text().split() == ["up", "hook", "term"]
        await gone(client, "deaf")

    run(bench, test)


def test_what_the_runtime_cannot_do_is_refused_with_an_event_that_says_so(bench: Bench) -> None:
    async def test(client: Client) -> None:
        bare = placed_pod("bare", "")
        del bare["spec"]["containers"][0]["command"]
        await client.create(bare)
        assert "command" in await told(client, "bare", "Failed")
        volume = {"name": "disk", "nfs": {"server": "nobody", "path": "/"}}
        await client.create(placed_pod("attached", "sleep 1000", volumes=[volume]))
        assert "disk" in await told(client, "attached", "FailedMount")
        for name in ("bare", "attached"):
            assert (await client.get(PODS, name, namespace="default")).view.status.phase == "Pending"
        await end(client, "bare", "attached")

    run(bench, test)


def test_a_node_has_what_its_machine_has_without_what_is_reserved_and_renews_its_lease(bench: Bench) -> None:
    async def test(client: Client) -> None:
        reserved = {"cpu": Quantity.parse("250m"), "memory": Quantity.parse("64Mi")}
        node = await until(client, NODES, lambda each: _kept_back(each, *reserved) == reserved, namespace="")
        status = node.document["status"]
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
        assert {"type": "InternalIP", "address": "127.0.0.1"} in status["addresses"]
        assert status["nodeInfo"]["containerRuntimeVersion"].startswith("process://")
        labels = node.document["metadata"]["labels"]
        assert (labels["kubernetes.io/hostname"], labels["example.com/rack"]) == (NODE, "r1")
        before = await client.get(LEASES, NODE, namespace="kube-node-lease")
        await until(client, LEASES, lambda each: _renewed(each) > _renewed(before), namespace="kube-node-lease")

    bench.kill_agent()
    bench.start_agent(
        *("--system-reserved", "cpu=150m,memory=64Mi", "--kube-reserved", "cpu=100m"),
        *("--node-labels", "example.com/rack=r1"),
    )
    run(bench, test)


def _kept_back(node: Any, *resources: str) -> dict[str, Quantity]:
    """What a node has and does not give to pods."""
    status = node.document.get("status") or {}
    parts = [status.get(each) or dict.fromkeys(resources, "0") for each in ("capacity", "allocatable")]
    return {name: Quantity.parse(parts[0][name]) - Quantity.parse(parts[1][name]) for name in resources}


def _renewed(lease: Any) -> str:
    return str(lease.document["spec"]["renewTime"] if hasattr(lease, "document") else lease.spec.renew_time)


def test_processes_are_not_run_for_a_server_beyond_this_machine(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    flags = ("--master", "https://192.0.2.1:6443", "--token-file", str(tmp_path / "token"), "--root-dir", str(tmp_path))
    asked = command(*flags, "--node-name", "n", "--port", "0", "--secure-port", "0", name="node")
    ended = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "--allow-remote-api" in ended.stderr
