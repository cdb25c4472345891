"""All of a gang's minimum, or none."""

from __future__ import annotations

import pytest

from drakit.client import PODS
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import on_loop
from tests.scheduler.gangs.scenes import gang, member, members, named, placed, with_cpus

HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


@on_loop
async def test_a_gang_that_fits_is_placed_whole() -> None:
    async with with_cpus(2, 2) as it:
        await it.create(gang("pg", 4), *members(4))
        assert await placed(it, named(4)) == named(4)


@on_loop
async def test_of_a_gang_that_does_not_fit_nobody_is_placed_and_nothing_is_held() -> None:
    async with with_cpus(2, 1) as it:
        await it.create(gang("pg", 4), *members(4))
        assert await placed(it, named(4)) == []
        await it.create(*(pod(f"p{number}", cpu="1") for number in range(3)))
        assert len(await placed(it, ["p0", "p1", "p2"])) == 3


@on_loop
async def test_a_gang_larger_than_the_cluster_waits_and_lets_others_pass() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 20), *members(20), gang("qg", 2), *members(2, "qg"))
        await it.run_for(30)
        assert await placed(it, named(20)) == []
        assert await placed(it, named(2, "qg")) == named(2, "qg")


@on_loop
async def test_members_beyond_the_minimum_that_do_not_fit_wait_while_the_rest_runs() -> None:
    async with with_cpus(3) as it:
        await it.create(*members(5), gang("pg", 2))
        assert len(await placed(it, named(5))) == 3
        await it.create(node("more", room={"cpu": "1"}))
        await it.run_for(10)
        assert len(await placed(it, named(5))) == 4


@on_loop
async def test_a_member_that_fits_nowhere_does_not_keep_a_gang_from_its_minimum() -> None:
    async with with_cpus(2) as it:
        await it.create(member("large", cpu="5"), *members(2), gang("pg", 2))
        assert await placed(it, ["large", *named(2)]) == named(2)


@on_loop
async def test_members_that_run_count_for_those_that_come_later() -> None:
    async with with_cpus(3) as it:
        await it.create(gang("pg", 2), *members(2), member("pg-2"))
        assert await placed(it, named(3)) == named(3)
        await it.delete(PODS, "pg-0")
        await it.create(member("pg-0"))
        assert await it.node_of("pg-0") == "node-0"


@on_loop
async def test_a_member_that_somebody_else_placed_counts() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 2), member("pg-0"))
        assert await it.node_of("pg-0") == ""
        await it.create(member("pg-1", node="node-0"))
        assert await it.node_of("pg-0") == "node-0"


@pytest.mark.parametrize("cpus", [(3,), (2, 1), (1, 1, 1)])
def test_of_two_gangs_that_want_the_same_one_runs(cpus: tuple[int, ...]) -> None:
    async def run() -> None:
        async with with_cpus() as it:
            await it.create(gang("pg", 2), gang("qg", 2))
            for number in range(2):
                await it.create(member(f"pg-{number}", "pg"), member(f"qg-{number}", "qg"))
            for number, each in enumerate(cpus):
                await it.create(node(f"n{number}", room={"cpu": str(each)}))
            await it.run_for(60)
            running = sorted((len(await placed(it, named(2))), len(await placed(it, named(2, "qg")))))
            assert running == [0, 2]

    on_loop(run)()


@on_loop
async def test_the_gang_with_a_member_of_higher_priority_goes_first() -> None:
    async with with_cpus() as it:
        await it.create(HIGH, gang("pg", 2), gang("qg", 2), *members(2))
        await it.create(member("qg-0", "qg"), member("qg-1", "qg", spec={"priorityClassName": "high"}))
        await it.create(node("a", room={"cpu": "2"}))
        await it.run_for(10)
        assert await placed(it, [*named(2), *named(2, "qg")]) == named(2, "qg")


@on_loop
async def test_members_of_higher_priority_are_the_first_of_their_gang() -> None:
    async with with_cpus(2) as it:
        await it.create(HIGH, *members(2), member("first", spec={"priorityClassName": "high"}), gang("pg", 2))
        assert "first" in await placed(it, [*named(2), "first"])


@on_loop
async def test_pods_of_a_basic_group_are_placed_one_by_one() -> None:
    async with with_cpus(1) as it:
        await it.create(pod_group("pg", []), *members(2))
        assert len(await placed(it, named(2))) == 1


@on_loop
async def test_a_large_member_that_comes_last_gets_its_place_all_the_same() -> None:
    async with with_cpus(4, 4) as it:
        await it.create(*members(4), member("leader", cpu="4"), gang("pg", 5))
        assert await placed(it, [*named(4), "leader"]) == [*named(4), "leader"]
        assert len({await it.node_of(name) for name in named(4)} | {await it.node_of("leader")}) == 2
        assert await it.told("leader", "FailedScheduling") == []


@on_loop
async def test_a_mixed_gang_that_does_not_fit_in_any_order_holds_nothing() -> None:
    async with with_cpus(4, 3) as it:
        await it.create(*members(4), member("leader", cpu="4"), gang("pg", 5))
        assert await placed(it, [*named(4), "leader"]) == []
        await it.create(*(pod(f"p{number}", cpu="1") for number in range(7)))
        assert len(await placed(it, [f"p{number}" for number in range(7)])) == 7
