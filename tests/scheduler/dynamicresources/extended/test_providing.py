"""Who provides a resource, and what the pod gets."""

from __future__ import annotations

from drakit.client import CLAIMS, CLASSES, NODES, SLICES
from tests.builders.podmanifests import by_name, claim, node, pod, resource_slice
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.extended.stage import (
    ANNOTATION,
    CLASS,
    GPU,
    IMPLICIT,
    NIC,
    asking,
    claims,
    container,
    devices_of,
    gpu_class,
    mappings_of,
    message_of,
    plugin_node,
    requests_of,
    stage,
    the_claim,
)

LIMIT = "claim default/<extended-resources>: number of requested devices 33 exceeds the claim limit of 32"


@on_loop
async def test_a_pod_that_asks_by_the_explicit_name_gets_devices_of_the_class() -> None:
    async with stage("d0", "d1", "d2") as it:
        await it.create(asking(gpu=2))
        assert await it.node_of("p") == "node-1"
        made, owner = await the_claim(it), await it.pod("p")
        assert made.metadata.name.startswith("p-extended-resources-")
        assert made.metadata.generate_name == "p-extended-resources-"
        assert made.metadata.annotations == {ANNOTATION: "true"}
        assert made.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        (reference,) = made.metadata.owner_references
        assert (reference.kind, reference.name, reference.uid) == ("Pod", "p", owner.metadata.uid)
        assert reference.controller
        assert requests_of(made) == {"container-0-request-0": (CLASS, 2)}
        assert devices_of(made) == ["d0", "d1"]
        assert [(each.resource, each.uid) for each in made.status.reserved_for] == [("pods", owner.metadata.uid)]
        status = owner.status.extended_resource_claim_status
        assert status is not None
        assert status.resource_claim_name == made.metadata.name
        assert await mappings_of(it) == [("ctr", GPU, "container-0-request-0")]
        assert it.metric("scheduler_resourceclaim_creates_total", status="success") == 1


@on_loop
async def test_a_pod_that_asks_by_the_implicit_name_gets_devices_of_the_class() -> None:
    async with stage("d0", "d1") as it:
        await it.create(asking("p", implicit=1), asking("q", gpu=1))
        assert [await it.node_of(name) for name in "pq"] == ["node-1", "node-1"]
        assert await mappings_of(it) == [("ctr", IMPLICIT, "container-0-request-0")]
        assert sorted(device for each in await claims(it) for device in devices_of(each)) == ["d0", "d1"]


@on_loop
async def test_the_newest_class_has_the_name_and_the_older_one_has_it_again_when_the_newest_lets_go() -> None:
    async with stage("d0", "d1", "d2") as it:
        await it.run_for(5)
        await it.create(gpu_class("a-newer"))
        await it.create(asking("p", gpu=1))
        assert requests_of(await the_claim(it)) == {"container-0-request-0": ("a-newer", 1)}
        newer = await it.client.get(CLASSES, "a-newer")
        await it.client.patch(newer, {"spec": {"extendedResourceName": None}})
        await it.settle()
        await it.create(asking("q", gpu=1))
        asked = [requests_of(each)["container-0-request-0"][0] for each in await claims(it)]
        assert sorted(asked) == ["a-newer", CLASS]


@on_loop
async def test_of_classes_made_at_the_same_time_the_first_name_has_it() -> None:
    async with stage("d0") as it:
        await it.create(gpu_class("zz"), gpu_class("aa"))
        await it.create(asking(gpu=1))
        assert requests_of(await the_claim(it)) == {"container-0-request-0": ("aa", 1)}


@on_loop
async def test_a_node_that_advertises_the_resource_serves_it_itself() -> None:
    async with stage() as it:
        await it.create(plugin_node("plugin", gpu="2"))
        await it.create(asking("p", gpu=2), asking("q", gpu=1))
        assert await it.node_of("p") == "plugin"
        assert await claims(it) == []
        assert (await it.pod("p")).status.extended_resource_claim_status is None
        assert await it.node_of("q") == ""
        assert "1 Insufficient example.com/gpu" in await message_of(it, "q")
        assert "1 cannot allocate all claims" in await message_of(it, "q")


@on_loop
async def test_pods_spread_over_nodes_with_a_plugin_and_nodes_with_devices() -> None:
    async with stage("d0", "d1") as it:
        await it.create(plugin_node("plugin", gpu="2"))
        await it.create(*(asking(f"p{number}", gpu=1) for number in range(5)))
        placed = [await it.node_of(f"p{number}") for number in range(5)]
        assert sorted(placed) == ["", "node-1", "node-1", "plugin", "plugin"]
        assert sorted(device for each in await claims(it) for device in devices_of(each)) == ["d0", "d1"]


@on_loop
async def test_a_node_with_devices_is_not_used_for_them_while_it_advertises_the_resource() -> None:
    async with stage("d0") as it:
        found = await it.client.get(NODES, "node-1")
        await it.client.patch_status(found, {"allocatable": {GPU: "1"}})
        await it.create(asking("p", gpu=1), asking("q", gpu=1))
        assert await it.node_of("p") == "node-1"
        assert await claims(it) == []
        assert await it.node_of("q") == ""


@on_loop
async def test_one_resource_comes_from_the_node_and_another_from_devices() -> None:
    async with stage("d0") as it:
        await it.create(plugin_node("nics", nic="1"), resource_slice("s2", "e0", pool="p2", node="nics"))
        await it.create(asking(gpu=1, nic=1, cpu="1"))
        assert await it.node_of("p") == "nics"
        made = await the_claim(it)
        assert requests_of(made) == {"container-0-request-1": (CLASS, 1)}
        assert devices_of(made) == ["e0"]


@on_loop
async def test_a_pod_has_one_claim_for_all_its_containers_and_resources() -> None:
    async with stage("d0", "d1", "d2") as it:
        await it.create(gpu_class("nic-class", NIC))
        spec = {"containers": [container("a", gpu=1, nic=1), container("b", gpu=1)]}
        await it.create(pod("p", spec=spec))
        made = await the_claim(it)
        assert requests_of(made) == {
            "container-0-request-0": (CLASS, 1),
            "container-0-request-1": ("nic-class", 1),
            "container-1-request-0": (CLASS, 1),
        }
        assert len(set(devices_of(made))) == 3
        assert await mappings_of(it) == [
            ("a", GPU, "container-0-request-0"),
            ("b", GPU, "container-1-request-0"),
            ("a", NIC, "container-0-request-1"),
        ]


@on_loop
async def test_init_containers_are_counted_and_use_what_later_ones_will_have() -> None:
    async with stage("d0", "d1", "d2") as it:
        await it.create(asking("p", container("i", gpu=3), container("s", gpu=1, sidecar=True), gpu=1))
        made = await the_claim(it)
        assert {name: count for name, (_, count) in requests_of(made).items()} == {
            "container-0-request-0": 1,
            "container-1-request-0": 1,
            "container-2-request-0": 1,
        }
        assert await mappings_of(it) == [
            ("s", GPU, "container-1-request-0"),
            ("ctr", GPU, "container-2-request-0"),
            ("i", GPU, "container-1-request-0"),
            ("i", GPU, "container-2-request-0"),
            ("i", GPU, "container-0-request-0"),
        ]


@on_loop
async def test_who_asks_for_nothing_gets_no_claim_and_fits_anywhere() -> None:
    async with stage() as it:
        await it.create(asking(gpu=0))
        assert await it.node_of("p") == "node-1"
        assert await claims(it) == []


@on_loop
async def test_more_devices_than_a_claim_may_have_are_refused_with_the_limit() -> None:
    async with stage(*(f"d{number}" for number in range(40))) as it:
        await it.create(asking("p", gpu=33), asking("q", gpu=32))
        assert f"1 {LIMIT}." in await message_of(it, "p")
        assert await it.node_of("p") == ""
        assert len(devices_of(await the_claim(it))) == 32


@on_loop
async def test_a_node_with_a_plugin_may_serve_more_than_a_claim_could() -> None:
    async with stage(*(f"d{number}" for number in range(40))) as it:
        await it.create(plugin_node("plugin", gpu="64"))
        await it.create(asking("p", gpu=33))
        assert await it.node_of("p") == "plugin"


@on_loop
async def test_a_resource_that_nobody_provides_is_insufficient() -> None:
    async with stage("d0") as it:
        await it.create(asking("p", **{"nobody.example.com/x": 1}))
        refused = "0/1 nodes are available: 1 Insufficient nobody.example.com/x. no new claims to deallocate"
        assert (await message_of(it)).startswith(refused)


@on_loop
async def test_a_pod_gets_its_own_claims_and_extended_resources_together() -> None:
    async with stage("d0", "d1", "d2") as it:
        await it.create(claim("c"))
        asked = asking(gpu=2)
        asked["spec"]["resourceClaims"] = [by_name("c")]
        await it.create(asked)
        assert await it.node_of("p") == "node-1"
        named = await it.find(CLAIMS, "c")
        assert len({*devices_of(named), *devices_of(await the_claim(it))}) == 3


@on_loop
async def test_its_own_claims_and_extended_resources_do_not_fit_together_where_devices_are_too_few() -> None:
    async with stage("d0", "d1") as it:
        await it.create(claim("c"))
        asked = asking(gpu=2)
        asked["spec"]["resourceClaims"] = [by_name("c")]
        await it.create(asked)
        assert await it.node_of("p") == ""
        assert "1 cannot allocate all claims" in await message_of(it)
        assert devices_of(await it.find(CLAIMS, "c")) == []
        assert await claims(it) == []


@on_loop
async def test_a_node_without_the_devices_is_left_alone() -> None:
    async with stage() as it:
        await it.create(node("node-2"), resource_slice("slice", "d0", node="node-2"))
        await it.create(asking(gpu=1))
        assert await it.node_of("p") == "node-2"
        await it.delete(SLICES, "slice")
        await it.create(asking("q", gpu=1))
        assert "2 cannot allocate all claims" in await message_of(it, "q")
