"""The use cases of KEP-5517, as their document tells them."""

from __future__ import annotations

from tests.builders.podmanifests import node
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.nodeallocatable.scenes import (
    GPU,
    Plain,
    capacity_claim,
    charging_pod,
    container,
    message_of,
    published,
    requested,
    scene,
    socket,
    taken,
)

GIB = 1 << 30
LARGE = {"cpu": "64", "memory": "128Gi"}


@on_loop
async def test_standard_and_device_requests_of_cpu_and_memory_add_up() -> None:
    async with scene(socket(cpu="128", memory="256Gi"), room=LARGE) as it:
        await it.create(capacity_claim("cpu-mem-claim", cpu="4", memory="8Gi"))
        first = container("my-app1", "my-cpu-mem-claim", cpu="100m", memory="100Mi")
        entry = {"name": "my-cpu-mem-claim", "resourceClaimName": "cpu-mem-claim"}
        await it.create(
            charging_pod("dra-pod", first, container("my-app2", "my-cpu-mem-claim"), resourceClaims=[entry])
        )
        assert await it.node_of("dra-pod") == "node-1"
        assert await taken(it, "dra-pod") == [
            {
                "resourceClaimName": "cpu-mem-claim",
                "containers": ["my-app1", "my-app2"],
                "resources": {"cpu": "4", "memory": "8Gi"},
            }
        ]
        assert requested(it) == {"cpu": 4100, "memory": 8 * GIB + 100 * (1 << 20)}


def fungible() -> Plain:
    asked = {"capacity": {"requests": {"dra.example.com/cpu": "30"}}}
    choices = [
        {"name": "gpu", "deviceClassName": "gpu", "count": 1},
        {"name": "cpu", "deviceClassName": "cpu", **asked},
    ]
    spec = {"devices": {"requests": [{"name": "gpu-or-cpu-req", "firstAvailable": choices}]}}
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu-or-cpu-template", "namespace": "default"}, "spec": {"spec": spec},
    }  # fmt: skip


def fungible_pod(name: str) -> Plain:
    entry = {"name": "gpu-or-cpu", "resourceClaimTemplateName": "gpu-or-cpu-template"}
    return charging_pod(name, container("my-app", "gpu-or-cpu", cpu="1", memory="1Gi"), resourceClaims=[entry])


@on_loop
async def test_a_pod_takes_a_gpu_or_else_cpus_and_counts_for_what_it_got() -> None:
    gpu = published({"name": "gpu0"}, driver=GPU)
    async with scene(socket(cpu="128"), gpu, room=LARGE) as it:
        await it.create(fungible(), fungible_pod("with-gpu"))
        assert await taken(it, "with-gpu") == []
        assert requested(it) == {"cpu": 1000, "memory": GIB}
        await it.create(fungible_pod("with-cpus"))
        [status] = await taken(it, "with-cpus")
        assert (
            status["resourceClaimName"]
            == (await it.pod("with-cpus")).status.resource_claim_statuses[0].resource_claim_name
        )
        assert (status["containers"], status["resources"]["cpu"]) == (["my-app"], "30")
        assert requested(it)["cpu"] == 32000


@on_loop
async def test_the_same_choice_is_judged_node_by_node() -> None:
    async with scene(socket(cpu="128"), room={"cpu": "8", "memory": "32Gi"}) as it:
        gpu = published({"name": "gpu0"}, driver=GPU, node="node-2")
        await it.create(node("node-2", room={"cpu": "2", "memory": "4Gi"}), gpu)
        await it.create(fungible(), fungible_pod("p"))
        assert await it.node_of("p") == "node-2"
        await it.create(fungible_pod("q"))
        assert (await message_of(it, "q")).startswith(
            "0/2 nodes are available: 1 Insufficient cpu, 1 cannot allocate all claims."
        )


def auxiliary() -> Plain:
    mappings = {"cpu": {"allocationMultiplier": "2"}, "memory": {"allocationMultiplier": "4Gi"}}
    return published({"name": "gpu0", "nodeAllocatableResourceMappings": mappings}, driver=GPU)


@on_loop
async def test_cpus_of_devices_and_what_an_accelerator_needs_beside_it_add_up() -> None:
    async with scene(socket(cpu="128"), auxiliary(), room=LARGE) as it:
        await it.create(capacity_claim("cpu-claim", cpu="10"), capacity_claim("gpu-claim", of="gpu"))
        apps = [
            container("my-app1", "cpu-claim", "gpu-claim", cpu="100m", memory="1Gi"),
            container("my-app2", "cpu-claim", "gpu-claim", cpu="200m", memory="2Gi"),
        ]
        await it.create(charging_pod("combined-dra-pod", *apps, claims=("cpu-claim", "gpu-claim")))
        both = ["my-app1", "my-app2"]
        assert await taken(it, "combined-dra-pod") == [
            {"resourceClaimName": "cpu-claim", "containers": both, "resources": {"cpu": "10"}},
            {"resourceClaimName": "gpu-claim", "containers": both, "resources": {"cpu": "2", "memory": "4Gi"}},
        ]
        assert requested(it) == {"cpu": 12300, "memory": 7 * GIB}


def budgeted(name: str, cpu: str) -> Plain:
    amounts = {"cpu": cpu, "memory": "10Gi"}
    return charging_pod(
        name,
        container("my-app1", "cpu-req-10-cpus"),
        container("my-app2", "cpu-req-10-cpus"),
        container("sidecar-container-1"),
        container("sidecar-container-2"),
        claims=("cpu-req-10-cpus",),
        resources={"requests": amounts, "limits": amounts},
    )


@on_loop
async def test_the_budget_of_a_pod_covers_a_claim_that_its_containers_share() -> None:
    async with scene(socket(cpu="128"), room=LARGE) as it:
        await it.create(capacity_claim("cpu-req-10-cpus", cpu="10"))
        await it.create(budgeted("dra-pod-with-plr-besteffort-sidecars", "11"))
        [status] = await taken(it, "dra-pod-with-plr-besteffort-sidecars")
        assert (status["containers"], status["resources"]) == (["my-app1", "my-app2"], {"cpu": "10"})
        assert requested(it) == {"cpu": 11000, "memory": 10 * GIB}


@on_loop
async def test_a_budget_that_does_not_cover_the_claim_is_refused() -> None:
    async with scene(socket(cpu="128"), room=LARGE) as it:
        await it.create(capacity_claim("cpu-req-10-cpus", cpu="10"))
        await it.create(budgeted("small", "9"))
        assert (await message_of(it, "small")).startswith(
            "0/1 nodes are available: 1 pod level request for cpu is insufficient to cover the aggregated container "
            "and node-allocatable DRA requests."
        )
