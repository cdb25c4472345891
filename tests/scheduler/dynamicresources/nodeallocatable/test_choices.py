"""Within a node the next alternative or device is tried when the first takes more of the node than it has left."""

from __future__ import annotations

from tests.builders.documents import Plain, pod_document, request_of
from tests.builders.manifests import claim
from tests.builders.podmanifests import device_class
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.nodeallocatable.scenes import published, scene
from tests.scheduler.dynamicresources.scenes import devices_of, user


def taking(name: str, cpu: str) -> Plain:
    return {"name": name, "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": cpu}}}


@on_loop
async def test_the_next_device_is_tried_when_the_first_does_not_fit_the_node() -> None:
    async with scene(published(taking("large", "32"), taking("small", "2"))) as it:
        await it.create(claim("c", request_of("r", "cpu")), user("p"))
        assert await it.node_of("p") == "node-1"
        assert await devices_of(it) == ["small"]
        (status,) = (await it.pod("p")).status.node_allocatable_resource_claim_statuses
        assert str(status.resources["cpu"]) == "2"


@on_loop
async def test_the_next_alternative_is_tried_when_the_first_does_not_fit_the_node() -> None:
    async with scene(published(taking("large", "32")), published({"name": "plain"}, driver="gpu.example.com")) as it:
        choices = [{"name": "big", "deviceClassName": "cpu"}, {"name": "other", "deviceClassName": "gpu"}]
        await it.create(claim("c", {"name": "r", "firstAvailable": choices}), user("p"))
        assert await it.node_of("p") == "node-1"
        assert await devices_of(it) == ["plain"]


@on_loop
async def test_where_no_choice_fits_the_pod_is_told_so() -> None:
    async with scene(published(taking("large", "32"), taking("larger", "64"))) as it:
        await it.create(claim("c", request_of("r", "cpu")), user("p"))
        assert await it.node_of("p") == ""
        condition = await it.condition("p")
        assert condition is not None
        assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


@on_loop
async def test_with_hints_the_claim_and_device_that_take_too_much_of_the_node_are_named() -> None:
    async with scene(published(taking("large", "32")), hints=True) as it:
        await it.create(claim("c", request_of("r", "cpu")), user("p"))
        condition = await it.condition("p")
        assert condition is not None
        assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        device = "cpu.example.com/cpu.example.com-node-1/large"
        assert f"Claim c: device {device} takes cpu of node-1, which has too little: see drakit" in condition.message


@on_loop
async def test_the_device_behind_an_extended_resource_is_named_too() -> None:
    async with scene(hints=True) as it:
        backed = device_class("named", "cpu.example.com")
        backed["spec"]["extendedResourceName"] = "example.com/cpus"
        await it.create(backed, published(taking("large", "32")))
        asked = {"name": "c", "image": "i", "resources": {"limits": {"example.com/cpus": "1"}}}
        await it.create(pod_document("p", {"containers": [asked]}, namespace="default"))
        condition = await it.condition("p")
        assert condition is not None
        assert "1 Insufficient cpu." in condition.message
        device = "cpu.example.com/cpu.example.com-node-1/large"
        words = f"Claim for extended resources: device {device} takes cpu of node-1, which has too little"
        assert f"{words}: see drakit explain pod p" in condition.message
