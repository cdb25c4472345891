"""Gangs that share a claim: allocated once, reserved for the group, kept as long as the group is there."""

from __future__ import annotations

from drakit.client import CLAIMS, POD_GROUPS, PODS
from tests.builders.documents import Plain
from tests.builders.manifests import claim
from tests.builders.podmanifests import by_template, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import on_loop, scheduling
from tests.scheduler.dynamicresources.scenes import by_name, devices_of, scene, stored, users_of
from tests.scheduler.gangs.scenes import GATES, gang, member, members, named, placed


def sharing(count: int, entry: Plain, **others: str) -> list[Plain]:
    return members(count, claims=[entry], **others)


@on_loop
async def test_a_gang_shares_the_claim_that_was_made_for_it_where_that_was_allocated() -> None:
    async with scene("d0", "d1", gates=GATES) as it:
        await it.create(node("node-2"), template(), gang("pg", 3, [by_template()]), *sharing(3, by_template()))
        await it.run_for(5)
        assert {await it.node_of(name) for name in named(3)} == {"node-1"}
        [made] = await it.all(CLAIMS)
        [reserved] = made.status.reserved_for
        assert (reserved.resource, reserved.name) == ("podgroups", "pg")
        assert len(await devices_of(it, made.metadata.name)) == 1


@on_loop
async def test_the_claim_is_written_once_for_the_whole_gang() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), gang("pg", 3, [by_name("c")]), *sharing(3, by_name("c")))
        await it.run_for(5)
        assert await placed(it, named(3)) == named(3)
        assert it.scheduler_transport is not None
        writes = [path for method, path in it.scheduler_transport.writes if "/resourceclaims/c" in path]
        assert len([path for path in writes if path.endswith("/status")]) == 1
        assert all([not await it.told(name, "FailedScheduling") for name in named(3)])


@on_loop
async def test_a_member_that_comes_later_goes_where_the_claim_is() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), gang("pg", 2, [by_name("c")]), *sharing(2, by_name("c")))
        await it.create(node("large", room={"cpu": "64"}))
        await it.create(member("late", claims=[by_name("c")]))
        await it.run_for(5)
        assert await it.node_of("late") == "node-1"
        assert await users_of(it) == ["pg"]


@on_loop
async def test_a_gang_that_does_not_fit_where_its_claim_would_be_leaves_no_trace_of_it() -> None:
    async with scheduling(gates=GATES) as it:
        await it.create(device_class(), node("node-1", room={"cpu": "2"}), node("node-2"), resource_slice("s", "d0"))
        await it.create(claim(), gang("pg", 3, [by_name("c")]), *sharing(3, by_name("c")))
        await it.run_for(30)
        assert await placed(it, named(3)) == []
        found = await stored(it)
        assert (found.status.allocation, found.status.reserved_for) == (None, ())
        await it.create(claim("other"), pod("p", claims=[by_name("other")]))
        await it.run_for(5)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_the_reservation_stays_until_the_group_is_deleted() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), gang("pg", 2, [by_name("c")]), *sharing(2, by_name("c")))
        await it.run_for(5)
        for name in named(2):
            await it.delete(PODS, name)
        await it.run_for(60)
        assert (await users_of(it), await devices_of(it)) == (["pg"], ["d0"])
        await it.create(*sharing(2, by_name("c")))
        await it.run_for(5)
        assert await placed(it, named(2)) == named(2)
        for name in named(2):
            await it.delete(PODS, name)
        await it.delete(POD_GROUPS, "pg")
        await it.run_for(60)
        assert (await users_of(it), await devices_of(it)) == ([], [])


@on_loop
async def test_a_claim_kept_from_earlier_where_the_gang_no_longer_fits_is_allocated_anew() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), gang("pg", 2, [by_name("c")]), *sharing(2, by_name("c")))
        await it.run_for(5)
        for name in named(2):
            await it.delete(PODS, name)
        await it.create(pod("p", cpu="7"), node("node-2"), resource_slice("t", "d1", node="node-2", pool="other"))
        await it.create(*sharing(2, by_name("c")))
        await it.run_for(60)
        assert {await it.node_of(name) for name in named(2)} == {"node-2"}
        assert await devices_of(it) == ["d1"]


@on_loop
async def test_two_gangs_with_claims_of_their_own_for_the_same_devices_do_not_share_them_out() -> None:
    async with scene("d0", "d1", "d2", gates=GATES) as it:
        await it.create(template(), gang("pg", 2), gang("qg", 2))
        for number in range(2):
            await it.create(member(f"pg-{number}", claims=[by_template()]))
            await it.create(member(f"qg-{number}", "qg", claims=[by_template()]))
        await it.run_for(60)
        running = [len(await placed(it, named(2, group))) for group in ("pg", "qg")]
        assert sorted(running) == [0, 2]
