"""What each feature gate changes on a node, when it is off."""

from __future__ import annotations

from typing import Any

from drakit.client import CLAIMS, PODS, metadata_of
from tests.conformance.nodeflows.stage import NAMESPACE
from tests.nodeagent.scene import GPU, Scene, on_loop, scene

PREPARE_FAILED = "FailedPrepareDynamicResources"


async def _grouped(it: Scene) -> None:
    """A pod of a group, with a claim that is reserved for the group."""
    group: dict[str, Any] = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    made = await it.it.client.create({**group, "metadata": {"name": "g", "namespace": NAMESPACE}, "spec": spec})
    await it.pod(schedulingGroup={"podGroupName": "g"})
    claim = await it.claim()
    user = {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": "g",
        "uid": metadata_of(made).uid,
    }
    found = await it.it.client.get(CLAIMS, claim.metadata.name, namespace=NAMESPACE)
    await it.it.client.patch_status(found, {"reservedFor": [user]})


@on_loop
async def test_health_and_its_message_are_shown_with_both_gates_on() -> None:
    async with scene() as it:
        driver = await it.driver(health=True)
        await it.start()
        driver.send([{"pool": "pool", "device": "gpu-0", "health": "UNHEALTHY", "message": "fan"}])
        await it.it.settle()
        shown = it.container()["allocatedResourcesStatus"][0]["resources"][0]
        assert (shown["health"], shown["message"]) == ("Unhealthy", "fan")


@on_loop
async def test_without_health_no_stream_is_opened_and_nothing_is_shown() -> None:
    off = ("ResourceHealthStatus", "ResourceHealthStatusMessage")
    async with scene(gates_off=off) as it:
        await it.driver(health=True)
        await it.start()
        assert "allocatedResourcesStatus" not in it.container()
        assert not [each for each in it.it.calls if each.method == "NodeWatchResources"]


@on_loop
async def test_without_health_messages_the_health_is_shown_alone() -> None:
    async with scene(gates_off=("ResourceHealthStatusMessage",)) as it:
        driver = await it.driver(health=True)
        await it.start()
        driver.send([{"pool": "pool", "device": "gpu-0", "health": "UNHEALTHY", "message": "fan"}])
        await it.it.settle()
        shown = it.container()["allocatedResourcesStatus"][0]["resources"][0]
        assert shown == {"resourceID": f"{GPU}/dev=claim", "health": "Unhealthy"}


@on_loop
async def test_a_claim_provides_an_extended_resource() -> None:
    async with scene() as it:
        await it.driver()
        await it.extended()
        await it.bind()
        made = [each.about["CDI_devices"] for each in it.it.cri if each.method == "CreateContainer"]
        assert made == [[f"{GPU}/dev=extended"]]


@on_loop
async def test_without_extended_resources_the_claim_is_ignored_and_the_node_lacks_the_resource() -> None:
    async with scene(gates_off=("DRAExtendedResource",)) as it:
        await it.driver()
        await it.extended()
        await it.bind()
        assert it.calls() == []
        assert it.state()["reason"] == "OutOfexample.com/gpu"


@on_loop
async def test_a_reservation_of_the_pods_group_counts() -> None:
    async with scene() as it:
        await it.driver()
        await _grouped(it)
        await it.bind()
        assert it.state()["phase"] == "Running"


@on_loop
async def test_without_workload_claims_a_reservation_of_the_group_does_not_count() -> None:
    async with scene(gates_off=("DRAWorkloadResourceClaims",)) as it:
        await it.driver()
        await _grouped(it)
        await it.bind()
        assert any("is not allowed to use ResourceClaim claim" in each for each in it.events(PREPARE_FAILED))


@on_loop
async def test_without_node_allocatable_resources_claims_do_not_count_at_admission() -> None:
    async with scene(gates_off=("DRANodeAllocatableResources",)) as it:
        await it.driver()
        await it.pod()
        await it.claim(pod="pod")
        found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
        taken = {"resourceClaimName": "claim", "containers": ["main"], "resources": {"cpu": "1k"}}
        await it.it.client.patch_status(found, {"nodeAllocatableResourceClaimStatuses": [taken]})
        await it.bind()
        assert it.state()["phase"] == "Running"


@on_loop
async def test_without_consumable_capacity_a_share_that_a_driver_answers_is_passed_on() -> None:
    async with scene(gates_off=("DRAConsumableCapacity",)) as it:
        driver = await it.driver()
        one = driver._one
        driver._one = lambda claim: {"devices": [{**one(claim)["devices"][0], "share_id": "s1"}]}  # type: ignore[method-assign]
        await it.start()
        assert it.it.agent is not None
        (shown,) = it.it.agent.listing.all()[0].containers[0].dynamic_resources[0].claim_resources
        assert shown.share_id == "s1"


@on_loop
async def test_an_overdue_report_is_noticed_when_it_is_due_and_an_equal_one_brings_the_health_back() -> None:
    async with scene() as it:
        driver = await it.driver(health=True)
        await it.start()
        report = [{"pool": "pool", "device": "gpu-0", "health": "HEALTHY", "message": "", "timeout": 10}]

        def health() -> str:
            return str(it.container()["allocatedResourcesStatus"][0]["resources"][0]["health"])

        driver.send(report)
        await it.it.run_for(9.9)
        assert health() == "Healthy"
        await it.it.run_for(0.2)
        assert health() == "Unknown"
        driver.send(report)
        await it.it.settle()
        assert health() == "Healthy"
