"""Random gangs, devices and accidents: a gang has its minimum or nothing, and no device has two owners."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.client import CLAIMS, POD_GROUPS, PODS
from tests.builders.cluster import run_stepped
from tests.builders.documents import Plain
from tests.builders.podmanifests import by_template, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import SchedulingCluster, scheduling
from tests.scheduler.gangs.scenes import GATES, gang, member

NODES = ("node-0", "node-1", "node-2")
GROUPS = ("a", "b", "c")

_cluster = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=len(NODES))
_member = st.tuples(st.sampled_from(GROUPS), st.integers(1, 3), st.booleans())
_step = st.one_of(
    _member.map(lambda each: ("member", each)),
    st.sampled_from(GROUPS).map(lambda each: ("group", each)),
    st.integers(1, 2).map(lambda each: ("alone", each)),
    st.integers(0, 30).map(lambda each: ("delete", each)),
    st.integers(0, 2).map(lambda each: ("wait", each)),
    st.just(("restart", None)),
)


class World:
    """`least` by group; deleting members is what may bring a gang below its minimum, so those groups are set aside."""

    def __init__(self, it: SchedulingCluster, least: dict[str, int]) -> None:
        self.it = it
        self.least = least
        self.made: list[Plain] = []
        self.disturbed: set[str] = set()

    async def take(self, what: str, value: Any) -> None:
        it = self.it
        match what:
            case "member":
                group, cpu, wants_device = value
                claims = [by_template()] if wants_device else []
                await self._create(member(f"p{len(self.made)}", group, cpu=str(cpu), claims=claims))
            case "alone":
                await self._create(pod(f"p{len(self.made)}", cpu=str(value), claims=[by_template()]))
            case "group" if await it.find(POD_GROUPS, value) is None:
                await it.client.create(gang(value, self.least[value]))
            case "delete" if self.made:
                await self._delete(self.made[value % len(self.made)])
            case "wait":
                await it.run_for(float(value))
            case "restart":
                await it.settle()  # who dies in the middle of bindings has decided, and not done it
                await it.kill_scheduler()
                await it.start_scheduler()

    async def _create(self, document: Plain) -> None:
        self.made.append(document)
        await self.it.client.create(document)

    async def _delete(self, document: Plain) -> None:
        found = await self.it.client.find(PODS, document["metadata"]["name"], namespace="default")
        if found is not None:
            group = document["spec"].get("schedulingGroup", {}).get("podGroupName")
            if group is not None:
                self.disturbed.add(group)
            await self.it.client.delete(PODS, document["metadata"]["name"], namespace="default", grace=0)

    async def check(self) -> None:
        placed: Counter[str] = Counter()
        for each in await self.it.all(PODS):
            if each.spec.node_name and each.spec.scheduling_group is not None:
                placed[each.spec.scheduling_group.pod_group_name] += 1
        for group, count in placed.items():
            assert group in self.disturbed or count >= self.least[group], f"{count} of gang {group}"
        devices: Counter[tuple[str, str]] = Counter()
        for each in await self.it.all(CLAIMS):
            results = each.status.allocation.devices.results if each.status.allocation else ()
            devices.update((result.pool, result.device) for result in results)
        assert [device for device, owners in devices.items() if owners > 1] == []


@settings(max_examples=60, deadline=None)
@given(
    nodes=_cluster,
    least=st.fixed_dictionaries({group: st.integers(1, 4) for group in GROUPS}),
    steps=st.lists(_step, min_size=4, max_size=22),
)
def test_a_gang_has_its_minimum_or_nothing_and_no_device_has_two_owners(
    nodes: list[tuple[int, int]], least: dict[str, int], steps: list[tuple[str, Any]]
) -> None:
    async def run() -> None:
        async with scheduling(gates=GATES) as it:
            await it.create(device_class(), template())
            for name, (cpus, devices) in zip(NODES, nodes, strict=False):
                await it.create(node(name, room={"cpu": str(cpus)}))
                await it.create(resource_slice(name, *(f"d{n}" for n in range(devices)), node=name, pool=name))
            world = World(it, least)
            for what, value in steps:
                await world.take(what, value)
            await it.run_for(30)
            await world.check()

    run_stepped(run())
