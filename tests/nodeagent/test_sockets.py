"""The agent on real sockets: plugins register as files appear, drivers are called over gRPC, PodResources answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from prometheus_client import CollectorRegistry

from drakit.api.exchange import User
from drakit.apiserver import build_server
from drakit.base.clock import RealClock
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.client import CLAIMS, EVENTS, LEASES, NODES, PODS, Client, InProcess, bind
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from drakit.nodeagent.settings import AgentPaths, AgentSettings
from drakit.pluginapi import deviceplugin_v1beta1_pb2 as device_wire
from drakit.pluginapi import deviceplugin_v1beta1_pb2_grpc as device_stubs
from drakit.pluginapi import podresources_v1_pb2, podresources_v1_pb2_grpc
from drakit.store import MemoryStore
from tests.builders.cluster import settings as server_settings
from tests.nodeagent.deviceplugin import device_plugin
from tests.nodeagent.grpcdriver import GrpcTestDriver
from tests.nodeagent.scene import on_loop

GPU = "gpu.example.com"
NODE_USER = User(name="system:node:n1", groups=("system:nodes", "system:authenticated"))


class Host:
    """A server and an agent of one process, with real files, sockets and time."""

    def __init__(self, client: Client, make: Callable[[], NodeAgent], root: Path) -> None:
        self.client = client
        self.root = root
        self._make = make

    async def start(self) -> None:
        """An agent on what the last one has left on disk; its runtime has forgotten everything, as by a reboot."""
        self.agent = self._make()
        self._task = asyncio.create_task(self.agent.run())
        ready = asyncio.create_task(self.agent.wait_ready())
        await asyncio.wait({self._task, ready}, return_when="FIRST_COMPLETED")

    async def stop(self) -> None:
        await self.agent.stop()
        await self._task

    async def until(self, holds: Callable[[], Any]) -> None:
        """Until that holds; a test that waits in vain ends with its own time limit."""
        async with asyncio.timeout(120):
            while not (await found if asyncio.iscoroutine(found := holds()) else found):
                await asyncio.sleep(0.01)

    async def start_pod(self, name: str = "p", **container: Any) -> None:
        made = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}, **container}
        spec = {
            "terminationGracePeriodSeconds": 1,
            "containers": [made],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}] if "claims" in made["resources"] else [],
        }
        about = {"name": name, "namespace": "default"}
        await self.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})
        pod = await self.client.get(PODS, name, namespace="default")
        if spec["resourceClaims"]:
            await self._claim(pod.view.metadata.uid, name)
        await bind(self.client, pod, "n1")

    async def _claim(self, uid: str, pod: str) -> None:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "any"}}]
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "spec": {"devices": {"requests": requests}},
        }
        await self.client.create({**claim, "metadata": {"name": "claim", "namespace": "default"}})
        found = await self.client.get(CLAIMS, "claim", namespace="default")
        results = [{"request": "gpu", "driver": GPU, "pool": "pool", "device": "gpu-0"}]
        found = await self.client.patch_status(found, {"allocation": {"devices": {"results": results}}})
        await self.client.patch_status(found, {"reservedFor": [{"resource": "pods", "name": pod, "uid": uid}]})

    async def phase(self, name: str = "p") -> str:
        found = await self.client.find(PODS, name, namespace="default")
        return "gone" if found is None else str(found.view.status.phase)

    async def events(self, reason: str) -> list[str]:
        return [each.document["message"] for each in await self.client.list(EVENTS) if each.view.reason == reason]


@asynccontextmanager
async def host(**about: Any) -> AsyncIterator[Host]:
    clock = RealClock()
    with tempfile.TemporaryDirectory(prefix="n") as directory:
        root = Path(directory)
        async with (
            MemoryStore(clock=clock) as store,
            await build_server(store, clock=clock, settings=server_settings(FeatureGates.all_on())) as server,
        ):
            capacity = {"cpu": Quantity.of(2), "memory": Quantity.parse("1Gi"), "pods": Quantity.of(10)}

            def make() -> NodeAgent:
                return NodeAgent(
                    Client(InProcess(server, NODE_USER), clock=clock),
                    SimulatedRuntime(clock=clock),
                    AgentSettings("n1", AgentPaths.below(root), MachineFacts(capacity), FeatureGates.all_on(), **about),
                    clock=clock,
                    registry=CollectorRegistry(),
                )

            made = Host(Client(InProcess(server), clock=clock), make, root)
            await made.start()
            try:
                yield made
            finally:
                await made.stop()


@on_loop
async def test_a_pod_with_a_claim_runs_and_goes_over_real_sockets() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running() as driver:
        await it.until(driver.registered.is_set)
        assert driver.notified == [(True, "")]
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        await it.client.delete(PODS, "p", namespace="default")
        await it.until(lambda: _is(it.phase(), "gone"))
        assert driver.calls == [("prepare", ["claim"]), ("unprepare", ["claim"])]


async def _is(told: Any, wanted: Any) -> bool:
    return bool(await told == wanted)


@on_loop
async def test_a_driver_that_comes_late_wakes_the_pod() -> None:
    async with host() as it:
        await it.start_pod()
        await it.until(lambda: it.events("FailedPrepareDynamicResources"))
        async with GrpcTestDriver(GPU, it.root).running():
            await it.until(lambda: _is(it.phase(), "Running"))


@on_loop
async def test_a_socket_that_is_away_fails_with_the_words_of_a_go_client_and_is_used_as_soon_as_it_is_back() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running() as driver:
        await it.until(driver.registered.is_set)
        await driver._servers.pop(0).stop(None)
        driver.endpoint.unlink(missing_ok=True)
        await it.until(lambda: not it.agent.drivers.is_usable(GPU))
        await it.start_pod()
        await it.until(lambda: it.events("FailedPrepareDynamicResources"))
        words = f"dial unix {driver.endpoint}: connect: no such file or directory"
        assert words in (await it.events("FailedPrepareDynamicResources"))[0]
        await driver.start_service()
        await it.until(lambda: _is(it.phase(), "Running"))


@on_loop
async def test_an_error_of_the_driver_is_told_with_its_code() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running() as driver:
        await it.until(driver.registered.is_set)
        driver.fail = ["not today"]
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        (told,) = await it.events("FailedPrepareDynamicResources")
        assert told.endswith("NodePrepareResources: rpc error: code = Unavailable desc = not today")


@on_loop
async def test_a_driver_that_unregisters_while_it_is_called_fails_the_call_and_the_next_one_gets_it() -> None:
    async with host() as it:
        async with GrpcTestDriver(GPU, it.root).running() as driver:
            await it.until(driver.registered.is_set)
            driver.go.clear()
            await it.start_pod()
            await it.until(lambda: driver.calls)
            driver.registration.unlink()
            await it.until(lambda: it.events("FailedPrepareDynamicResources"))
            (told, *_) = await it.events("FailedPrepareDynamicResources")
            assert told.endswith("rpc error: code = Canceled desc = grpc: the client connection is closing")
            driver.go.set()
        async with GrpcTestDriver(GPU, it.root).running():
            await it.until(lambda: _is(it.phase(), "Running"))


@on_loop
async def test_a_pod_is_looked_at_again_after_an_error_that_nobody_expected() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running():
        prepare, failures = it.agent.preparation.prepare, [OSError(28, "No space left on device")]

        async def fails_once(pod: Any) -> None:
            if failures:
                raise failures.pop()
            await prepare(pod)

        it.agent.preparation.prepare = fails_once  # type: ignore[method-assign]
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        assert failures == []


@on_loop
async def test_a_replaced_socket_is_registered_anew_and_an_unknown_version_is_refused_with_the_reason() -> None:
    async with host() as it:
        async with GrpcTestDriver(GPU, it.root, versions=("v9.DRAPlugin",)).running() as odd:
            await it.until(odd.registered.is_set)
            assert odd.notified[0][0] is False
            assert 'none of services supported by the plugin (["v9.DRAPlugin"])' in odd.notified[0][1]
        async with GrpcTestDriver(GPU, it.root).running() as good:
            await it.until(good.registered.is_set)
            assert good.notified == [(True, "")]


@on_loop
async def test_health_reaches_the_pods_status() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running() as driver:
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        driver.report("dev-claim", 2, "hot")

        async def shown() -> bool:
            pod = await it.client.get(PODS, "p", namespace="default")
            (entry,) = pod.document["status"]["containerStatuses"][0]["allocatedResourcesStatus"]
            return bool(entry["resources"][0].get("message") == "hot")

        await it.until(shown)


@on_loop
async def test_pod_resources_answers_on_its_socket() -> None:
    async with host() as it, GrpcTestDriver(GPU, it.root).running():
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        async with aio.insecure_channel(f"unix:{it.root}/pod-resources/kubelet.sock") as channel:
            stub: Any = podresources_v1_pb2_grpc.PodResourcesListerStub(channel)
            listed = await stub.List(podresources_v1_pb2.ListPodResourcesRequest())
            (claim,) = listed.pod_resources[0].containers[0].dynamic_resources
            assert claim.claim_resources[0].cdi_devices[0].name == f"{GPU}/dev=claim"
            with pytest.raises(aio.AioRpcError) as refused:
                await stub.Get(podresources_v1_pb2.GetPodResourcesRequest(pod_name="q", pod_namespace="default"))
            assert refused.value.code() is grpc.StatusCode.UNKNOWN
            assert refused.value.details() == "pod q in namespace default not found"


@on_loop
async def test_the_node_object_has_what_the_machine_has_without_what_is_reserved() -> None:
    async with host(system_reserved={"cpu": Quantity.parse("500m")}, labels={"zone": "a"}) as it:
        node = await it.client.get(NODES, "n1")
        assert str(node.view.status.capacity["cpu"]) == "2"
        assert str(node.view.status.allocatable["cpu"]) == "1500m"
        assert node.document["metadata"]["labels"]["zone"] == "a"
        assert node.document["status"]["nodeInfo"]["containerRuntimeVersion"] == "simulated://1"
        ready = next(each for each in node.view.status.conditions if each.type == "Ready")
        assert ready.status == "True"
        await it.until(lambda: it.client.find(LEASES, "n1", namespace="kube-node-lease"))


@on_loop
async def test_a_shutdown_ends_pods_in_good_order_and_says_why() -> None:
    async with host(shutdown_grace=10.0) as it, GrpcTestDriver(GPU, it.root).running() as driver:
        await it.start_pod()
        await it.until(lambda: _is(it.phase(), "Running"))
        await it.agent.stop()
        pod = await it.client.get(PODS, "p", namespace="default")
        assert pod.document["status"]["phase"] == "Failed"
        assert pod.document["status"]["reason"] == "Terminated"
        assert driver.calls[-1] == ("unprepare", ["claim"])
        node = await it.client.get(NODES, "n1")
        ready = next(each for each in node.view.status.conditions if each.type == "Ready")
        assert (ready.status, ready.message) == ("False", "node is shutting down")


@on_loop
async def test_a_device_plugins_resource_is_in_the_node_and_given_to_a_container_and_zero_when_it_leaves() -> None:
    resource = "example.com/fpga"

    async def capacity(it: Host) -> str:
        node = await it.client.get(NODES, "n1")
        return str(node.view.status.capacity.get(resource))

    async with host() as it:
        async with device_plugin(it.root / "device-plugins", resource) as plugin:
            await it.until(lambda: _is(capacity(it), "2"))
            await it.start_pod(resources={"limits": {resource: "1"}})
            await it.until(lambda: _is(it.phase(), "Running"))
            await it.start_pod("q", resources={"limits": {resource: "2"}})
            await it.until(lambda: _is(it.phase("q"), "Failed"))
            assert plugin.allocated == [["a"]]
            pods = it.agent.listing.all()
            assert [list(each.device_ids) for each in pods[0].containers[0].devices] == [["a"]]
        await it.until(lambda: _is(capacity(it), "0"))


@on_loop
async def test_pods_that_start_together_do_not_get_the_same_device_of_a_plugin_with_a_preference() -> None:
    resource = "example.com/fpga"
    options = {"get_preferred_allocation_available": True, "pre_start_required": True}
    async with host() as it, device_plugin(it.root / "device-plugins", resource, **options) as plugin:
        await it.until(lambda: it.agent.device_plugins.healthy().get(resource))
        plugin.go.clear()
        for name in ("p", "q"):
            await it.start_pod(name, resources={"limits": {resource: "1"}})
        await it.until(lambda: plugin.calls)
        plugin.go.set()
        await it.until(lambda: _is(it.phase("p"), "Running"))
        await it.until(lambda: _is(it.phase("q"), "Running"))
        assert plugin.allocated == [["b"], ["a"]]
        assert plugin.calls.index("allocate") < plugin.calls.index("pre-start")


@on_loop
async def test_a_container_restarts_with_the_devices_of_a_plugin_that_is_away() -> None:
    resource = "example.com/fpga"
    async with host() as it:
        async with device_plugin(it.root / "device-plugins", resource) as plugin:
            await it.until(lambda: it.agent.device_plugins.healthy().get(resource))
            await it.start_pod(resources={"limits": {resource: "1"}})
            await it.until(lambda: _is(it.phase(), "Running"))
        await it.until(lambda: it.agent.device_plugins.find(resource) is None)
        (container,) = await it.agent.runtime.containers()
        await it.agent.runtime.stop_container(container.id, grace=0)
        it.agent.workers.wake(container.pod.uid)

        async def restarts() -> int:
            pod = await it.client.get(PODS, "p", namespace="default")
            return int(pod.document["status"]["containerStatuses"][0]["restartCount"])

        await it.until(lambda: _is(restarts(), 1))
        assert plugin.allocated == [["a"]]


@on_loop
async def test_a_plugin_that_left_while_the_agent_was_away_has_no_devices_and_a_container_waits_for_its_own() -> None:
    resource, where = "example.com/fpga", "device-plugins"

    async def amounts(it: Host) -> tuple[str, str]:
        status = (await it.client.get(NODES, "n1")).view.status
        return str(status.capacity.get(resource)), str(status.allocatable.get(resource))

    async def waits(it: Host) -> str:
        pod = await it.client.get(PODS, "p", namespace="default")
        return str((pod.document["status"]["containerStatuses"][0]["state"].get("waiting") or {}).get("message"))

    async with host() as it:
        async with device_plugin(it.root / where, resource):
            await it.until(lambda: _is(amounts(it), ("2", "2")))
            await it.start_pod(resources={"limits": {resource: "1"}})
            await it.until(lambda: _is(it.phase(), "Running"))
            await it.stop()
        await it.start()
        await it.until(lambda: _is(amounts(it), ("0", "0")))
        await it.until(lambda: _is(waits(it), f"the device plugin of {resource} is not there"))
        async with device_plugin(it.root / where, resource) as plugin:
            await it.until(lambda: _is(it.phase(), "Running"))
            await it.until(lambda: plugin.allocated == [["a"]])


@on_loop
async def test_a_device_plugin_of_another_version_is_refused() -> None:
    async with host() as it, aio.insecure_channel(f"unix:{it.root}/device-plugins/kubelet.sock") as channel:
        stub: Any = device_stubs.RegistrationStub(channel)
        with pytest.raises(aio.AioRpcError) as refused:
            await stub.Register(
                device_wire.RegisterRequest(version="v9", endpoint="p.sock", resource_name="example.com/x")
            )
        assert "v9" in str(refused.value.details())
