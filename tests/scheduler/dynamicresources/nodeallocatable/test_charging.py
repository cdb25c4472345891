"""What claims take of a node: counted from the moment of decision, kept in the pod's status, given back."""

from __future__ import annotations

import pytest

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, NODES, PODS
from drakit.controllers.composition import ALL
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import device_class, node
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop
from tests.scheduler.dynamicresources.extended.stage import start_over
from tests.scheduler.dynamicresources.nodeallocatable.scenes import (
    GATES,
    GPU,
    Plain,
    capacity_claim,
    charging_pod,
    container,
    cores,
    message_of,
    published,
    requested,
    scene,
    taken,
)

ROOM = {"cpu": "4", "memory": "8Gi"}
TWO_CPUS = [{"resourceClaimName": "a", "containers": ["ctr"], "resources": {"cpu": "2"}}]


@on_loop
async def test_the_status_is_written_after_the_claims_and_before_the_pod_is_bound() -> None:
    async with scene(cores(4)) as it:
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        assert await taken(it, "p") == TWO_CPUS
        assert it.scheduler_transport is not None
        own = [
            (method, path.split("default/")[1]) for method, path in it.scheduler_transport.writes if "default/" in path
        ]
        assert [each for each in own if "events" not in each[1]] == [
            ("PUT", "resourceclaims/a"),
            ("PUT", "resourceclaims/a/status"),
            ("PATCH", "pods/p/status"),
            ("POST", "pods/p/binding"),
        ]


@on_loop
async def test_a_pod_whose_devices_take_nothing_costs_no_write() -> None:
    async with scene(cores(1), published({"name": "gpu0"}, driver=GPU)) as it:
        await it.create(capacity_claim("a", of="gpu"), charging_pod("p", claims=("a",)))
        assert await it.node_of("p") == "node-1"
        assert it.scheduler_transport is not None
        assert [path for method, path in it.scheduler_transport.writes if path.endswith("pods/p/status")] == []


@on_loop
async def test_pods_that_come_together_do_not_take_more_than_there_is() -> None:
    async with scene(cores(8), room=ROOM) as it:
        await it.create(*(capacity_claim(f"c{number}", 2) for number in range(4)))
        for number in range(4):
            await it.client.create(
                charging_pod(f"p{number}", container("ctr", f"c{number}", cpu="500m"), claims=(f"c{number}",))
            )
        await it.settle()
        placed = [await it.node_of(f"p{number}") for number in range(4)]
        assert sorted(placed) == ["", "", "", "node-1"]
        assert requested(it)["cpu"] == 2500


@on_loop
async def test_what_claims_take_keeps_plain_pods_out() -> None:
    async with scene(cores(4), room=ROOM) as it:
        await it.create(
            capacity_claim("a", 3), charging_pod("p", claims=("a",)), charging_pod("plain", container(cpu="1500m"))
        )
        assert await it.node_of("plain") == ""
        assert (await message_of(it, "plain")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await it.create(charging_pod("small", container(cpu="1")))
        assert await it.node_of("small") == "node-1"


@on_loop
async def test_a_pod_that_waits_for_room_is_tried_when_another_leaves() -> None:
    async with scene(cores(4), room=ROOM) as it:
        await it.create(
            charging_pod("plain", container(cpu="3")), capacity_claim("a", 2), charging_pod("p", claims=("a",))
        )
        assert await it.node_of("p") == ""
        await it.delete(PODS, "plain")
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_that_waits_for_room_is_tried_when_the_node_grows() -> None:
    async with scene(cores(4), room={"cpu": "1"}) as it:
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        assert (await message_of(it, "p")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await it.set_status(NODES, "node-1", {"allocatable": {"cpu": "4"}})
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_the_end_of_a_pod_gives_back_what_its_claims_took() -> None:
    async with scene(cores(4), room=ROOM) as it:
        await it.create(
            capacity_claim("a", 4),
            charging_pod("p", claims=("a",)),
            capacity_claim("b", 4),
            charging_pod("q", claims=("b",)),
        )
        assert (await it.node_of("p"), await it.node_of("q")) == ("node-1", "")
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        await it.delete(CLAIMS, "a")
        await it.run_for(2)
        assert await it.node_of("q") == "node-1"
        assert requested(it) == {"cpu": 4000}


@on_loop
async def test_the_ledger_is_rebuilt_from_the_status_of_pods() -> None:
    async with scene(cores(8), room=ROOM) as it:
        await it.create(capacity_claim("a", 3), charging_pod("p", claims=("a",)))
        before = requested(it)
        await it.kill_scheduler()
        await it.start_scheduler()
        assert requested(it) == before == {"cpu": 3000}
        await it.create(capacity_claim("b", 2), charging_pod("q", claims=("b",)))
        assert await it.node_of("q") == ""


@on_loop
async def test_a_claim_counts_once_however_many_containers_use_it_and_also_when_none_does() -> None:
    async with scene(cores(8)) as it:
        await it.create(capacity_claim("used", 2), capacity_claim("unused", 3))
        containers = [container(name, "used") for name in ("c1", "c2")]
        await it.create(
            charging_pod("p", *containers, claims=("used", "unused"), initContainers=[container("first", "used")])
        )
        assert await taken(it, "p") == [
            {"resourceClaimName": "unused", "resources": {"cpu": "3"}},
            {"resourceClaimName": "used", "containers": ["first", "c1", "c2"], "resources": {"cpu": "2"}},
        ]
        assert requested(it) == {"cpu": 5000}


@on_loop
async def test_a_claim_that_a_pod_names_twice_counts_once() -> None:
    async with scene(cores(2)) as it:
        entries = [{"name": name, "resourceClaimName": "a"} for name in ("one", "other")]
        containers = [container("c1", "one"), container("c2", "other")]
        await it.create(capacity_claim("a", 2), charging_pod("p", *containers, resourceClaims=entries))
        assert await taken(it, "p") == [{**TWO_CPUS[0], "containers": ["c1", "c2"]}]
        assert requested(it) == {"cpu": 2000}


@on_loop
async def test_a_claim_that_another_pod_uses_is_refused_until_that_pod_is_gone() -> None:
    async with scene(cores(4)) as it:
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)), charging_pod("q", claims=("a",)))
        assert await it.node_of("q") == ""
        assert (await message_of(it, "q")).startswith(
            "0/1 nodes are available: 1 node allocatable resource claim a is already used by another pod."
        )
        await it.delete(PODS, "p")
        await it.run_for(2)
        assert await it.node_of("q") == "node-1"
        assert await taken(it, "q") == TWO_CPUS
        assert requested(it) == {"cpu": 2000}


@on_loop
async def test_a_claim_that_takes_something_of_the_node_is_not_shared_within_a_group_either() -> None:
    async with scene(cores(4), gates=FeatureGates.all_on()) as it:
        group = {"schedulingGroup": {"podGroupName": "group"}}
        await it.create(pod_group("group", [{"name": "a", "resourceClaimName": "a"}]), capacity_claim("a", 2))
        await it.create(charging_pod("p", claims=("a",), **group), charging_pod("q", claims=("a",), **group))
        assert (await it.node_of("p"), await it.node_of("q")) == ("node-1", "")
        assert "node allocatable resource claim a is already used by another pod" in await message_of(it, "q")
        assert requested(it) == {"cpu": 2000}


@on_loop
async def test_a_partition_counts_by_its_capacity() -> None:
    key = "dra.example.com/cpu"
    counters = published(name="counters", sharedCounters=[{"name": "cpus", "counters": {"cpu": {"value": "32"}}}])
    del counters["spec"]["devices"]
    parts = [
        {
            "name": name,
            "capacity": {key: {"value": size}},
            "consumesCounters": [{"counterSet": "cpus", "counters": {"cpu": {"value": size}}}],
            "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": key}},
        }
        for name, size in (("numa-0-l3-0", "8"), ("numa-0", "32"))
    ]
    devices = published(*parts, name="partitions")
    for each in (counters, devices):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    async with scene(counters, devices) as it:
        await it.create(capacity_claim("a"), charging_pod("p", claims=("a",)))
        assert await taken(it, "p") == [{"resourceClaimName": "a", "containers": ["ctr"], "resources": {"cpu": "8"}}]
        assert requested(it) == {"cpu": 8000}


@on_loop
async def test_a_claim_that_was_allocated_before_its_pod_came_counts() -> None:
    async with scene(cores(8), room=ROOM) as it:
        await it.create(capacity_claim("a", 2), charging_pod("first", claims=("a",)))
        await it.set_status(PODS, "first", {"phase": "Succeeded"})
        assert requested(it) == {}
        await it.create(charging_pod("second", claims=("a",)))
        assert await taken(it, "second") == TWO_CPUS
        assert requested(it) == {"cpu": 2000}


@on_loop
async def test_what_devices_behind_a_resource_name_take_counts_under_the_name_of_their_claim() -> None:
    mapping = {"cpu": {"allocationMultiplier": "2"}}
    gpus = published({"name": "gpu0", "nodeAllocatableResourceMappings": mapping}, driver=GPU)
    async with scene(gpus) as it:
        backed = device_class("backed", GPU)
        backed["spec"]["extendedResourceName"] = "example.com/gpu"
        limits = {"limits": {"example.com/gpu": "1"}}
        await it.create(backed, charging_pod("p", {"name": "ctr", "image": "i", "resources": limits}))
        status = (await it.pod("p")).status.extended_resource_claim_status
        assert status is not None
        [found] = await taken(it, "p")
        assert found == {**TWO_CPUS[0], "resourceClaimName": status.resource_claim_name}
        assert requested(it)["cpu"] == 2000


@on_loop
async def test_without_the_gate_nothing_counts_and_what_was_written_before_stays() -> None:
    async with scene(cores(8), room=ROOM) as it:
        await it.create(capacity_claim("a", 3), charging_pod("p", claims=("a",)))
        await it.kill_scheduler()
        await it.start_scheduler(gates=FeatureGates.defaults())
        assert requested(it) == {}
        await it.create(capacity_claim("b", 3), charging_pod("q", claims=("b",)))
        assert await it.node_of("q") == "node-1"
        assert await taken(it, "q") == []
        assert [each["resources"] for each in await taken(it, "p")] == [{"cpu": "3"}]


@on_loop
async def test_the_status_is_taken_back_when_the_pod_cannot_be_bound() -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        line = await start_over(it)
        line.refuse = lambda request: request.path.endswith("pods/p/binding")
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        assert await taken(it, "p") == []
        assert requested(it) == {}
        line.refuse = lambda _: False
        await it.run_for(30)
        assert await it.node_of("p") == "node-1"
        assert await taken(it, "p") == TWO_CPUS


@on_loop
async def test_a_status_that_cannot_be_written_keeps_the_pod_from_being_bound() -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        line = await start_over(it)
        line.refuse = lambda request: (
            request.path.endswith("pods/p/status") and "nodeAllocatable" in str(request.document)
        )
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        assert (await it.node_of("p"), requested(it)) == ("", {})
        assert await it.told("p", "FailedScheduling") != []
        line.refuse = lambda _: False
        await it.run_for(30)
        assert (await it.node_of("p"), await taken(it, "p")) == ("node-1", TWO_CPUS)


@on_loop
async def test_a_status_whose_answer_was_lost_is_taken_back_and_written_again() -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        line = await start_over(it)
        line.lose = lambda request: "nodeAllocatable" in str(request.document)
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        assert (await it.node_of("p"), await taken(it, "p"), requested(it)) == ("", [], {})
        line.lose = lambda _: False
        await it.run_for(30)
        assert (await it.node_of("p"), await taken(it, "p"), requested(it)) == ("node-1", TWO_CPUS, {"cpu": 2000})


@on_loop
async def test_a_pod_that_is_deleted_while_it_is_bound_leaves_nothing_in_the_ledger() -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        line = await start_over(it)
        line.refuse = lambda request: request.path.endswith("pods/p/binding")
        await it.create(capacity_claim("a", 4), charging_pod("p", claims=("a",)))
        await it.delete(PODS, "p")
        line.refuse = lambda _: False
        await it.create(charging_pod("next", container(cpu="4")))
        await it.run_for(30)
        assert (await it.node_of("next"), requested(it)) == ("node-1", {"cpu": 4000})


@pytest.mark.parametrize("writes", range(1, 7))
@on_loop
async def test_a_scheduler_that_dies_after_any_write_leaves_nothing_that_the_next_one_miscounts(writes: int) -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        await it.start_scheduler(dies_after=writes)
        await it.create(capacity_claim("a", 2), charging_pod("p", claims=("a",)))
        await it.kill_scheduler()
        await it.start_scheduler()
        await it.run_for(30)
        assert (await it.node_of("p"), await taken(it, "p")) == ("node-1", TWO_CPUS)
        assert requested(it) == {"cpu": 2000}
        await it.create(
            capacity_claim("b", 2), charging_pod("q", claims=("b",)), charging_pod("full", container(cpu="1m"))
        )
        assert (await it.node_of("q"), await it.node_of("full")) == ("node-1", "")


@pytest.mark.parametrize(("of", "left"), [("cpu", TWO_CPUS), ("gpu", [])])
@on_loop
async def test_what_an_attempt_left_in_the_status_goes(of: str, left: list[Plain]) -> None:
    async with cluster(GATES) as it:
        await prepare(it)
        await it.create(device_class("gpu", GPU), published({"name": "gpu0"}, {"name": "gpu1"}, driver=GPU))
        held = [{"name": "example.com/wait"}]
        await it.create(capacity_claim("a", 2, of=of), charging_pod("p", claims=("a",), schedulingGates=held))
        stale = {**TWO_CPUS[0], "resources": {"cpu": "64"}}
        await it.set_status(PODS, "p", {"nodeAllocatableResourceClaimStatuses": [stale]})
        await it.start_scheduler()
        found = await it.client.get(PODS, "p", namespace="default")
        await it.client.patch(found, {"spec": {"schedulingGates": None}})
        await it.settle()
        assert (await it.node_of("p"), await taken(it, "p")) == ("node-1", left)


async def prepare(it: SchedulingCluster) -> None:
    """A node with four cpus, all of them devices too."""
    await it.start(ALL)
    await it.create(device_class("cpu", "cpu.example.com"), node("node-1", room=ROOM), cores(4))
