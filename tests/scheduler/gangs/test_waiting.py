"""Members that wait outside of the queue: for their group, and for each other."""

from __future__ import annotations

from drakit.base.gates import FeatureGates
from drakit.client import PODS
from drakit.scheduler.config import default_configuration, load_configuration
from tests.builders.manifests import pod_group
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.gangs.scenes import GATES, gang, group_attempts, member, members, named, placed, with_cpus

WITHOUT_PLUGIN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}]
"""


def gated(it: SchedulingCluster) -> float:
    return it.metric("scheduler_pending_pods", queue="gated")


@on_loop
async def test_members_wait_for_their_group() -> None:
    async with with_cpus(4) as it:
        await it.create(*members(2))
        assert gated(it) == 2
        await it.create(gang("pg", 2))
        assert await placed(it, named(2)) == named(2)


@on_loop
async def test_members_wait_until_there_are_enough_of_them() -> None:
    async with with_cpus(4) as it:
        await it.create(gang("pg", 3), *members(2))
        assert gated(it) == 2
        assert await placed(it, named(2)) == []
        await it.create(member("pg-2"))
        assert await placed(it, named(3)) == named(3)
        assert group_attempts(it, "scheduled") == 1
        assert group_attempts(it, "unschedulable") == 0


@on_loop
async def test_pods_of_another_namespace_or_group_and_pods_that_are_over_do_not_count() -> None:
    async with with_cpus(8) as it:
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await it.create(member("over", node="node-0"))
        await it.set_status(PODS, "over", {"phase": "Succeeded"})
        await it.create(gang("pg", 2), gang("qg", 2), member("pg-0"), member("qg-0", "qg"))
        await it.create(member("pg-1", namespace="other"))
        assert await placed(it, ["pg-0", "qg-0"]) == []
        await it.create(member("qg-1", "qg"))
        assert await placed(it, ["pg-0", "qg-0", "qg-1"]) == ["qg-0", "qg-1"]


@on_loop
async def test_a_member_on_its_way_out_does_not_complete_a_gang() -> None:
    async with with_cpus(4) as it:
        await it.create(member("pg-0", finalizers=["example.com/hold"]))
        await it.delete(PODS, "pg-0")
        await it.create(gang("pg", 2), member("pg-1"))
        assert await placed(it, named(2)) == []
        assert gated(it) == 2


@on_loop
async def test_a_member_that_is_gone_leaves_the_others_waiting_again() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 2), *members(2))
        await it.delete(PODS, "pg-1")
        await it.run_for(310)
        assert gated(it) == 1
        await it.create(member("pg-2", cpu="0"))
        await it.run_for(10)
        assert await placed(it, ["pg-0", "pg-2"]) == ["pg-0", "pg-2"]


@on_loop
async def test_members_of_a_basic_group_wait_for_the_group_alone() -> None:
    async with with_cpus(4) as it:
        await it.create(member("pg-0"))
        assert await it.node_of("pg-0") == ""
        await it.create(pod_group("pg", []))
        assert await it.node_of("pg-0") == "node-0"


@on_loop
async def test_without_gang_scheduling_members_are_placed_one_by_one() -> None:
    async with with_cpus(1, gates=FeatureGates.of({"GenericWorkload": True})) as it:
        await it.create(gang("pg", 2), *members(2))
        assert len(await placed(it, named(2))) == 1


@on_loop
async def test_where_a_profile_has_the_plugin_off_members_are_placed_one_by_one() -> None:
    config = load_configuration(WITHOUT_PLUGIN, gates=GATES)
    async with with_cpus(1, config=config) as it:
        await it.create(gang("pg", 2), *members(2))
        assert len(await placed(it, named(2))) == 1


@on_loop
async def test_the_plugin_without_its_gate_looks_for_no_groups() -> None:
    config = default_configuration(GATES)
    async with with_cpus(1, gates=FeatureGates.defaults(), config=config) as it:
        await it.create(member("pg-0"))
        assert await it.node_of("pg-0") == "node-0"


@on_loop
async def test_without_workloads_a_group_means_nothing() -> None:
    async with with_cpus(1, gates=FeatureGates.defaults()) as it:
        await it.create(member("pg-0"))
        assert await it.node_of("pg-0") == "node-0"
