"""Every gate, switched on, off and on again, with a restart of server, controllers and scheduler between.

Running pods and claims stay as they are, nothing is given twice, and fields are kept or dropped as documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from drakit.api.codec.documents import to_wire
from drakit.api.objects.partial import Partial
from drakit.base.gates import GATES, FeatureGates
from drakit.client import CLAIMS, Answered, Resource, resource
from tests.builders.manifests import allocation
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scenarios.gate_scenes import SCENES, Plain, Scene, claim_for
from tests.scenarios.gates import lives, over_allocated, remembered, without

PATIENCE = 15.0


def test_every_gate_that_can_be_switched_has_a_scene() -> None:
    assert sorted(scene.gate for scene in SCENES) == sorted(name for name, gate in GATES.items() if not gate.locked)


@on_loop
async def test_the_naive_look_sees_what_is_given_twice() -> None:
    async with lives() as cluster, cluster.life(FeatureGates.all_on()) as it:
        shared = next(scene for scene in SCENES if scene.gate == "DRAConsumableCapacity")
        parted = next(scene for scene in SCENES if scene.gate == "DRAPartitionableDevices")
        await it.create(*shared.objects[:3], *parted.objects[2:4], *(claim_for(name) for name in "abcde"))
        uid = "0b7e2a52-6d3c-4c1b-9f0e-0000000000"
        given: list[tuple[str, str, str, Plain]] = [
            ("a", "d0", "slice", {"shareID": f"{uid}01", "consumedCapacity": {"memory": "6Gi"}}),
            ("b", "d0", "slice", {"shareID": f"{uid}02", "consumedCapacity": {"memory": "5Gi"}}),
            ("c", "half-0", "parts", {}),
            ("d", "half-0", "parts", {}),
            ("e", "whole", "parts", {}),
        ]
        for name, device, pool, more in given:
            await it.set_status(CLAIMS, name, {"allocation": allocation(device, pool=pool, **more)})
        assert await over_allocated(it) == [
            "device gpu.example.com/parts/half-0 is given 2 times",
            "device gpu.example.com/slice/d0: 11Gi of 10Gi memory is taken",
            "counter gpu.example.com/parts/all/memory is -5Gi",
        ]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.gate)
@on_loop
async def test_pods_and_claims_outlive_a_gate_that_goes_off_and_on(scene: Scene) -> None:
    async with lives() as cluster:
        async with cluster.life(FeatureGates.all_on()) as it:
            before = await begin(it, scene)
        async with cluster.life(without(scene.gate)) as it:
            await it.run_for(PATIENCE)
            assert holds(before, await remembered(it))
            await touch(it, scene)
            assert await missing(it, scene) == []
            await renew(it, scene)
            await compete(it, scene.rivals, scene.bound_while_off)
            await lose(it, scene)
            assert holds(before, await remembered(it))
            before = {key: each for key, each in (await remembered(it)).items() if each[1]}
        async with cluster.life(FeatureGates.all_on()) as it:
            await it.run_for(PATIENCE)
            assert holds(before, await remembered(it))
            assert await missing(it, scene) == []
            await compete(it, scene.late, scene.bound_in_the_end)
            assert holds(before, await remembered(it))


async def begin(it: SchedulingCluster, scene: Scene) -> dict[str, Any]:
    """The scene as it is with its gate on."""
    await it.create(*scene.objects)
    for kind, name, status in scene.statuses:
        await it.set_status(kind, name, status)
    await it.run_for(PATIENCE)
    for name in scene.placed:
        assert await it.node_of(name), f"pod {name} is not placed"
    assert await missing(it, scene) == []
    assert await over_allocated(it) == []
    return await remembered(it)


async def touch(it: SchedulingCluster, scene: Scene) -> None:
    """Write something else to each object that uses the feature."""
    for kind, name in {(kind.name, name): (kind, name) for kind, name, _ in scene.kept}.values():
        if await it.client.serves(kind):
            found = await it.client.get(kind, name, namespace=place(kind))
            await it.client.patch(found, {"metadata": {"labels": {"touched": "yes"}}}, versioned=False)
    await it.run_for(PATIENCE)


async def renew(it: SchedulingCluster, scene: Scene) -> None:
    """New objects cannot use the feature."""
    for document, path in scene.dropped:
        await it.create(document)
        kind = resource(document["kind"])
        name = document["metadata"]["name"]
        assert read(await wire(it, kind, name), path) is None, f"{kind.name} {name} has {path}"
        await it.client.delete(kind, name, namespace=place(kind), grace=0)
    for document in scene.refused:
        with pytest.raises(Answered) as told:
            await it.create(document)
        assert told.value.status.code == 422


async def compete(it: SchedulingCluster, documents: tuple[Plain, ...], bound: Mapping[str, bool]) -> None:
    """More pods want what there is."""
    await it.create(*documents)
    await it.run_for(PATIENCE)
    assert {name: bool(await it.node_of(name)) for name in bound} == bound
    assert await over_allocated(it) == []


async def lose(it: SchedulingCluster, scene: Scene) -> None:
    """What is reported of objects that did not use the feature does not arrive."""
    for kind, name, status, path in scene.lost:
        await it.set_status(kind, name, status)
        assert not read(await wire(it, kind, name), path), f"{kind.name} {name} has {path}"


async def missing(it: SchedulingCluster, scene: Scene) -> list[str]:
    """Fields of the feature that are gone, of kinds that are served."""
    return [
        f"{kind.name} {name}: {path}"
        for kind, name, path in scene.kept
        if await it.client.serves(kind) and not read(await wire(it, kind, name), path)
    ]


def holds(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Nothing is lost. A claim may be reserved for more: for pods one by one, where their group counts no more."""
    assert {key: value for key, value in now.items() if key in before and key.startswith("pod ")} == {
        key: value for key, value in before.items() if key.startswith("pod ")
    }
    for key, value in before.items():
        if key.startswith("claim "):
            assert now[key][:2] == value[:2], key
            assert {*value[2]} <= {*now[key][2]}, key
    return True


async def wire(it: SchedulingCluster, kind: Resource[Any], name: str) -> Plain:
    found = await it.client.get(kind, name, namespace=place(kind))
    return dict(found.document) if type(found) is Partial else dict(to_wire(found))


def read(document: Any, path: str) -> Any:
    """What is at `spec.devices.0.taints`; none when there is no such thing."""
    for part in path.split("."):
        if isinstance(document, list | tuple):
            document = document[int(part)] if len(document) > int(part) else None
        else:
            document = (document or {}).get(part)
    return document


def place(kind: Resource[Any]) -> str:
    return "default" if kind.kind.namespaced else ""
