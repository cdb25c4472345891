"""A pod with claims is placed where its devices are, and its claims say so."""

from __future__ import annotations

from drakit.client import CLAIMS, NAMESPACES, PODS, STRATEGIC
from tests.builders.manifests import claim
from tests.builders.podmanifests import by_name, by_template, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.scenes import (
    devices_of,
    exactly,
    message_of,
    refused,
    scene,
    stored,
    user,
    users_of,
)


@on_loop
async def test_a_claim_is_protected_allocated_and_reserved_before_its_pod_is_bound() -> None:
    async with scene("d0") as it:
        await it.create(claim(), user("p"))
        assert await it.node_of("p") == "node-1"
        found = await stored(it)
        assert found.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        assert found.status.allocation is not None
        assert found.status.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
        assert await devices_of(it) == ["d0"]
        assert await users_of(it) == ["p"]


@on_loop
async def test_a_claim_costs_two_writes_and_no_read() -> None:
    async with scene("d0") as it:
        await it.create(claim())
        assert it.scheduler_transport is not None
        before = len(it.scheduler_transport.writes)
        await it.create(user("p"))
        writes = [each for each in it.scheduler_transport.writes[before:] if "resourceclaims" in each[1]]
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
        assert writes == [("PUT", path), ("PUT", f"{path}/status")]


@on_loop
async def test_a_claim_of_a_template_is_awaited_and_used() -> None:
    async with scene("d0") as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        assert await it.node_of("p") == "node-1"
        [made] = await it.all(CLAIMS)
        assert await users_of(it, made.metadata.name) == ["p"]


@on_loop
async def test_the_pod_goes_where_the_device_is() -> None:
    async with scene() as it:
        await it.create(node("node-2"), resource_slice("s", "d0", node="node-2"), claim(), user("p"))
        assert await it.node_of("p") == "node-2"


@on_loop
async def test_claims_of_one_pod_are_allocated_together() -> None:
    async with scene("d0", "d1", "d2") as it:
        await it.create(claim("a", exactly(count=2)), claim("b"))
        await it.create(pod("p", claims=[by_name("a", "x"), by_name("b", "y")]))
        assert await it.node_of("p") == "node-1"
        assert await devices_of(it, "a") + await devices_of(it, "b") == ["d0", "d1", "d2"]


@on_loop
async def test_an_allocated_claim_is_shared_and_keeps_its_pods_on_its_node() -> None:
    async with scene("d0") as it:
        await it.create(node("node-2"), node("node-3"), claim(), user("p"), user("q"), user("r"))
        await it.run_for(5)
        assert [await it.node_of(each) for each in "pqr"] == ["node-1"] * 3
        assert sorted(await users_of(it)) == ["p", "q", "r"]
        assert await devices_of(it) == ["d0"]


@on_loop
async def test_no_device_is_given_twice_however_many_pods_come_at_once() -> None:
    async with scene(*(f"d{number}" for number in range(12))) as it:
        await it.create(node("node-2"), resource_slice("s2", *(f"d{n}" for n in range(8)), node="node-2", pool="two"))
        for number in range(30):
            await it.client.create(claim(f"c{number}"))
            await it.client.create(user(f"p{number}", f"c{number}"))
        await it.settle()
        placed = [each for each in await it.all(PODS) if each.spec.node_name]
        held = [
            (result.pool, result.device)
            for each in await it.all(CLAIMS)
            if each.status.allocation
            for result in each.status.allocation.devices.results
        ]
        assert len(placed) == len(held) == len(set(held)) == 20


@on_loop
async def test_devices_that_become_free_go_to_the_pod_that_waits() -> None:
    async with scene("d0") as it:
        await it.create(claim("a"), user("p", "a"), claim("b"), user("q", "b"))
        assert await it.node_of("q") == ""
        await it.delete(PODS, "p")
        await it.run_for(3)
        assert await it.node_of("q") == "node-1"
        assert await devices_of(it, "b") == ["d0"]


@on_loop
async def test_a_claim_that_was_protected_before_is_only_written_once() -> None:
    """A scheduler that died between its two writes left the finalizer."""
    async with scene("d0") as it:
        made = claim()
        made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        await it.create(made)
        assert it.scheduler_transport is not None
        before = len(it.scheduler_transport.writes)
        await it.create(user("p"))
        writes = [each for each in it.scheduler_transport.writes[before:] if "resourceclaims" in each[1]]
        assert [method for method, _ in writes] == ["PUT"]
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_at_most_256_consumers_use_a_claim() -> None:
    async with scene("d0") as it:
        await it.create(claim(), user("p"))
        full = [{"apiGroup": "example.com", "resource": "jobs", "name": f"x{n}", "uid": f"x{n}"} for n in range(255)]
        found = await stored(it)
        await it.client.patch(found, {"status": {"reservedFor": full}}, kind=STRATEGIC, subresource="status")
        await it.create(user("q"))
        assert await it.node_of("q") == ""
        assert (await message_of(it, "q")).startswith(refused("resourceclaim in use", "no new claims to deallocate"))
        await it.delete(PODS, "p")
        await it.run_for(3)
        assert await it.node_of("q") == "node-1"


@on_loop
async def test_admin_access_takes_no_device_from_anybody_and_waits_for_nobody() -> None:
    async with scene("d0") as it:
        label = {"resource.kubernetes.io/admin-access": "true"}
        await it.client.patch(await it.client.get(NAMESPACES, "default"), {"metadata": {"labels": label}})
        watching = [claim(name, exactly(adminAccess=True)) for name in ("before", "after")]
        await it.create(*watching, user("w1", "before"), claim(), user("p"), user("w2", "after"))
        await it.create(claim("more"), user("q", "more"))
        assert [await it.node_of(each) for each in ("w1", "p", "w2")] == ["node-1"] * 3
        assert [await devices_of(it, each) for each in ("before", "c", "after", "more")] == [["d0"]] * 3 + [[]]
        assert (await message_of(it, "q")).startswith(refused("1 cannot allocate all claims"))


@on_loop
async def test_a_class_that_comes_later_lets_the_pod_in() -> None:
    async with scene("d0") as it:
        await it.create(device_class("other", driver="none"))
        await it.create(claim("c", {"name": "r", "exactly": {"deviceClassName": "late"}}), user("p"))
        assert await it.node_of("p") == ""
        await it.create(device_class("late"))
        await it.run_for(3)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_slice_of_a_node_that_is_not_registered_yet_stays_and_counts_when_the_node_comes() -> None:
    async with scene() as it:
        await it.run_for(2)
        await it.create(resource_slice("early", "d7", pool="later", node="later"), claim(), user("p"))
        await it.run_for(600)
        assert await it.node_of("p") == ""
        await it.create(node("later"))
        await it.run_for(30)
        assert await it.node_of("p") == "later"
        assert await devices_of(it) == ["d7"]
