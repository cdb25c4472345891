"""Claims allocated by hand, pods placed by hand, and a driver of bare gRPC: processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from drakit.client import CLAIMS, NODES, PODS, SLICES, Client
from drakit.nodeagent.claims.checkpoint import FILE, decode
from tests.e2e.nodebench import BARE, Bench, allocate, end, place, running
from tests.e2e.nodemachine import NODE, in_phase, node_cluster, pod_with, there, told
from tests.e2e.podresources import pod_resources
from tests.e2e.reached import reached, until


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        yield Bench(machine, stack)


def test_a_driver_of_an_unknown_service_is_refused_with_the_reason(bench: Bench) -> None:
    old = "old.example.com"
    with bench.driver(old, "--versions", "v1alpha3.DRAPlugin"), bench.driver():
        asyncio.run(bench.registered())
        asyncio.run(there(lambda: bench.heard(old)))
    said = bench.heard(old)[0]
    assert said[:2] == ["notified", False]
    assert said[2].endswith(
        f"plugin {old} at endpoint {bench.root}/plugins/{old}/dra.sock: none of services supported by the plugin "
        '(["v1alpha3.DRAPlugin"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
    )


def test_a_connection_that_the_driver_closes_for_idleness_is_made_again_and_serves_the_next_pod(bench: Bench) -> None:
    endpoint, seen = f"{bench.root}/plugins/{BARE}/dra.sock", set[str]()

    def connections() -> int:
        """How many connections to the driver there have been: each has an inode of its own."""
        for line in Path("/proc/net/unix").read_text().splitlines():
            parts = line.split()
            if parts[-1] == endpoint and parts[5] == "03":
                seen.add(parts[6])
        return len(seen)

    async def run() -> None:
        await bench.registered()
        await there(lambda: connections() >= 4)
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "idle")
            await place(client, "idle", {"bare": "idle"})
            await running(client, "idle")
            before = connections()
            await there(lambda: connections() >= before + 2)
            await end(client, "idle")
        assert bench.calls() == [["prepare", ["idle"]], ["unprepare", ["idle"]]]

    with bench.driver(BARE, "--idle", "150"):
        asyncio.run(run())


def test_slices_go_at_the_agents_start_and_half_a_minute_after_their_driver_was_killed(bench: Bench) -> None:
    async def publish(client: Client, name: str) -> None:
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": BARE, "nodeName": NODE, "pool": pool, "devices": [{"name": "one"}]}
        about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}}
        await client.create({**about, "spec": spec})

    async def empty(client: Client) -> None:
        async with asyncio.timeout(200):
            while await client.list(SLICES):  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.1)

    async def restart() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await until(client, NODES, lambda each: each.view.metadata.name == NODE, namespace="")
            bench.kill_agent()
            await publish(client, "of-before")
            bench.start_agent()
            await empty(client)
            await publish(client, "of-now")
            os.kill(process.pid, signal.SIGKILL)
            await empty(client)

    with bench.driver() as process:
        asyncio.run(restart())


def test_what_a_node_cannot_give_ends_a_pod_with_the_kubelets_reason_and_no_driver_is_called(bench: Bench) -> None:
    def failed(name: str) -> Callable[[Any], bool]:
        return in_phase(name, "Failed")

    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            for name, resource, amount in (("big", "cpu", "4000"), ("odd", "example.com/none", "1")):
                await allocate(client, name)
                pod = pod_with(name, "sleep 1000", "bare", nodeName=NODE)
                pod["spec"]["containers"][0]["resources"] |= {
                    "limits": {resource: amount},
                    "requests": {resource: amount},
                }
                await client.create(pod)
                found = await until(client, PODS, failed(name), namespace="default")
                status = found.document["status"]
                assert status["reason"] == f"OutOf{resource}"
                assert status["message"].startswith(
                    f"Pod was rejected: Node didn't have enough resource: {resource}, requested: "
                )
                assert await told(client, name, f"OutOf{resource}")
        assert bench.calls() == []

    with bench.driver():
        asyncio.run(run())


def test_who_may_use_a_claim_is_told_and_the_agent_stays_up(bench: Bench) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            # The claim of a template belongs to somebody else.
            await allocate(client, "theirs", reserved=[{"resource": "pods", "name": "x", "uid": "x"}])
            pod = pod_with("thief", "sleep 1000", "bare", nodeName=NODE)
            pod["spec"]["resourceClaims"] = [{"name": "bare", "resourceClaimTemplateName": "template"}]
            await client.create(pod)
            found = await client.get(PODS, "thief", namespace="default")
            entry = {"name": "bare", "resourceClaimName": "theirs"}
            await client.patch_status(found, {"resourceClaimStatuses": [entry]})
            await until(
                client,
                PODS,
                _waits_for("was not created for Pod default/thief (Pod is not owner)"),
                namespace="default",
            )
            # Deleted and still reserved: it may be used.
            bench.kill_agent()
            await allocate(client, "leaving", finalizers=["example.com/stay"])
            await place(client, "guest", {"bare": "leaving"})
            await until(client, CLAIMS, _is_reserved("leaving"), namespace="default")
            await client.delete(CLAIMS, "leaving", namespace="default")
            bench.start_agent()
            await running(client, "guest")
            await allocate(client, "twice")
            await place(client, "pair", {"one": "twice", "two": "twice"})
            await running(client, "pair")
            await end(client, "thief", "guest", "pair")
        assert [each for each in bench.calls() if each[0] == "prepare"] == [
            ["prepare", ["leaving"]],
            ["prepare", ["twice"]],
        ]

    with bench.driver():
        asyncio.run(run())


def _waits_for(text: str) -> Callable[[Any], bool]:
    def waits(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        return any(text in (each["state"].get("waiting") or {}).get("message", "") for each in statuses)

    return waits


def _is_reserved(name: str) -> Callable[[Any], bool]:
    return lambda each: bool(each.metadata.name == name and each.status.reserved_for)


def test_a_restarted_agent_makes_no_call_for_a_running_pod_and_one_for_the_next_pod_of_the_claim(bench: Bench) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "shared")
            await place(client, "first", {"bare": "shared"})
            before = (await running(client, "first"))["containerStatuses"][0]["containerID"]
            bench.kill_agent()
            bench.forget()
            bench.start_agent()
            await bench.registered()
            await place(client, "bystander", {})
            await running(client, "bystander")
            assert bench.calls() == []
            await place(client, "second", {"bare": "shared"})
            await running(client, "second")
            assert bench.calls() == [["prepare", ["shared"]]]
            assert (await running(client, "first"))["containerStatuses"][0]["containerID"] == before
            await end(client, "bystander", "first", "second")
            # For the last of the two only.
            assert bench.calls() == [["prepare", ["shared"]], ["unprepare", ["shared"]]]
            assert decode((bench.root / FILE).read_bytes()) == []

    with bench.driver():
        asyncio.run(run())


def test_devices_of_init_containers_and_sidecars_are_prepared_once_and_pod_resources_and_metrics_show_them(
    bench: Bench,
) -> None:
    async def run() -> None:
        await bench.registered()
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "all")
            uses = {"resources": {"claims": [{"name": "bare", "request": "r"}]}, "image": "i"}
            init = [
                {"name": "init", "command": ["true"], **uses},
                {"name": "side", "command": ["sleep", "1000"], "restartPolicy": "Always", **uses},
            ]
            await place(client, "all", {"bare": "all"}, initContainers=init)
            await running(client, "all")
            assert bench.calls() == [["prepare", ["all"]]]
            (shown,) = await pod_resources(bench.root)
            assert [(each.name, len(each.dynamic_resources)) for each in shown.containers] == [("side", 1), ("main", 1)]
            (device,) = shown.containers[1].dynamic_resources[0].claim_resources
            assert (device.driver_name, device.pool_name, device.device_name) == (BARE, "pool", "dev-all")
            before = bench.counted("UnprepareResources")
            await end(client, "all")
            assert await pod_resources(bench.root) == []
            assert bench.counted("UnprepareResources") == before + 1
        page = bench.metrics()
        method = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
        labels = f'driver_name="{BARE}",grpc_status_code="OK",method_name="{method}"'
        assert f"dra_grpc_operations_duration_seconds_count{{{labels}}}" in page
        assert 'dra_resource_claims_in_use{driver_name="<any>"} 0.0' in page

    with bench.driver():
        asyncio.run(run())


def test_a_node_that_shuts_down_ends_its_pods_and_lets_their_claims_go(bench: Bench) -> None:
    async def run() -> None:
        await bench.registered()
        bench.kill_agent()
        bench.start_agent("--shutdown-grace-period", "20")
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "last")
            await place(client, "last", {"bare": "last"})
            await running(client, "last")
            os.kill(bench.agent.process.pid, signal.SIGTERM)
            found = await until(client, PODS, in_phase("last", "Failed"), namespace="default")
            bench.agent.process.wait()
        bench.start_agent()
        assert found.document["status"]["reason"] == "Terminated"
        assert bench.calls() == [["prepare", ["last"]], ["unprepare", ["last"]]]

    with bench.driver():
        asyncio.run(run())
