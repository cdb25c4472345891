"""Deployments: rolled out, rolled back, paused, resized; never too few pods, never too many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api import ReplicaSet
from drakit.api.objects.apps import Deployment
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_time
from drakit.client import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Invalid
from drakit.controllers.deployments import DeploymentController
from drakit.controllers.deployments.replicasets import REVISION, max_surge, max_unavailable, new_set, size_of
from drakit.controllers.deployments.rollout import roll
from drakit.controllers.garbage import GarbageCollector
from drakit.controllers.replicasets import ReplicaSetController
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.documents import Plain
from tests.scenarios.crashes import check_every_crash

MAKERS = (DeploymentController, ReplicaSetController, GarbageCollector)


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


def deployment(replicas: int = 3, *, image: str = "one", **spec: Any) -> Plain:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "ctr", "image": image}]},
    }
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }  # fmt: skip


async def change(it: Cluster, **spec: Any) -> None:
    await it.client.patch_named(DEPLOYMENTS, "web", {"spec": spec}, namespace="default")
    await it.settle()


def with_image(image: str) -> Plain:
    return {"spec": {"containers": [{"name": "ctr", "image": image}]}}


async def make_ready(it: Cluster) -> int:
    """All pods that are there become ready at once; how many were not."""
    count = 0
    for each in await it.client.list(PODS):
        if each.view.status.phase != "Running":
            count += 1
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(it.clock.now())}
            await it.client.patch_status(each, {"phase": "Running", "conditions": [condition]})
    await it.settle()
    return count


async def finish(it: Cluster) -> None:
    while await make_ready(it):
        pass


async def sizes(it: Cluster) -> dict[str, int]:
    """Replica sets by the image of their template."""
    found = await it.client.list(REPLICA_SETS)
    return {_image(each): size_of(each) for each in found}


def _image(replica_set: Partial[ReplicaSet]) -> str:
    return str(replica_set.document["spec"]["template"]["spec"]["containers"][0]["image"])


async def status(it: Cluster) -> dict[str, Any]:
    return dict((await it.client.get(DEPLOYMENTS, "web", namespace="default")).document["status"])


async def condition(it: Cluster, type_: str) -> tuple[str, str]:
    found = next(each for each in (await status(it))["conditions"] if each["type"] == type_)
    return found["status"], found["reason"]


async def revisions(it: Cluster) -> dict[str, str]:
    found = await it.client.list(REPLICA_SETS)
    return {_image(each): each.view.metadata.annotations[REVISION] for each in found}


@on_loop
async def test_a_deployment_makes_a_replica_set_of_its_template() -> None:
    async with running() as it:
        await it.create(deployment(2))
        assert await sizes(it) == {"one": 2}
        [made] = await it.client.list(REPLICA_SETS)
        hashed = made.view.metadata.labels["pod-template-hash"]
        assert made.view.metadata.name == f"web-{hashed}"
        pods = await it.client.list(PODS)
        assert [pod.view.metadata.labels for pod in pods] == [{"app": "web", "pod-template-hash": hashed}] * 2
        assert await condition(it, "Available") == ("False", "MinimumReplicasUnavailable")
        await finish(it)
        now = await status(it)
        assert (now["replicas"], now["updatedReplicas"], now["availableReplicas"]) == (2, 2, 2)
        assert await condition(it, "Available") == ("True", "MinimumReplicasAvailable")
        assert await condition(it, "Progressing") == ("True", "NewReplicaSetAvailable")
        told = [each.message for each in await it.all(EVENTS) if each.reason == "ScalingReplicaSet"]
        assert told == [f"Scaled up replica set web-{hashed} from 0 to 2"]


@on_loop
async def test_a_rolling_update_replaces_all_pods_step_by_step() -> None:
    async with running() as it:
        await it.create(deployment(4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}))
        await finish(it)
        await change(it, template=with_image("two"))
        assert await sizes(it) == {"one": 3, "two": 2}
        await finish(it)
        assert await sizes(it) == {"one": 0, "two": 4}
        assert await revisions(it) == {"one": "1", "two": "2"}
        assert await condition(it, "Progressing") == ("True", "NewReplicaSetAvailable")


@on_loop
async def test_an_update_whose_pods_never_get_ready_stops_and_is_told_after_the_deadline() -> None:
    async with running() as it:
        await it.create(deployment(4, progressDeadlineSeconds=60))
        await finish(it)
        await change(it, template=with_image("broken"))
        assert await sizes(it) == {"one": 3, "broken": 2}
        await it.run_for(61)
        assert await condition(it, "Progressing") == ("False", "ProgressDeadlineExceeded")
        assert await condition(it, "Available") == ("True", "MinimumReplicasAvailable")


@on_loop
async def test_going_back_to_an_earlier_template_takes_its_replica_set_again_under_a_new_revision() -> None:
    async with running() as it:
        await it.create(deployment(2))
        await finish(it)
        await change(it, template=with_image("two"))
        await finish(it)
        await change(it, template=with_image("one"))
        await finish(it)
        assert await sizes(it) == {"one": 2, "two": 0}
        assert await revisions(it) == {"one": "3", "two": "2"}
        found = await it.client.get(DEPLOYMENTS, "web", namespace="default")
        assert found.view.metadata.annotations[REVISION] == "3"
        [first] = [each for each in await it.client.list(REPLICA_SETS) if _image(each) == "one"]
        assert first.view.metadata.annotations["deployment.kubernetes.io/revision-history"] == "1"


@on_loop
async def test_a_paused_deployment_is_resized_and_not_rolled_out() -> None:
    async with running() as it:
        await it.create(deployment(2))
        await finish(it)
        await change(it, paused=True, template=with_image("two"))
        assert await sizes(it) == {"one": 2}
        assert await condition(it, "Progressing") == ("Unknown", "DeploymentPaused")
        await change(it, replicas=3)
        assert await sizes(it) == {"one": 3}
        await change(it, paused=False)
        await finish(it)
        assert await sizes(it) == {"one": 0, "two": 3}


@on_loop
async def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    async with running() as it:
        await it.create(deployment(2, strategy={"type": "Recreate", "rollingUpdate": None}))
        await finish(it)
        for each in await it.client.list(PODS):  # bound, they end only when their node says so
            target = {"kind": "Node", "name": "node-1"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": each.view.metadata.name}}
            await it.client.call(
                "POST", PODS, each.view.metadata.name, "binding", {**body, "target": target}, namespace="default"
            )
        await change(it, template=with_image("two"))
        assert await sizes(it) == {"one": 0}
        for each in await it.client.list(PODS):
            await it.client.delete_object(each, grace=0)
        await it.settle()
        assert await sizes(it) == {"one": 0, "two": 2}


@on_loop
async def test_another_size_in_the_middle_of_a_rollout_is_shared_out() -> None:
    async with running() as it:
        await it.create(deployment(10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}))
        await finish(it)
        await change(it, template=with_image("two"))
        assert await sizes(it) == {"one": 8, "two": 5}
        await change(it, replicas=20)
        now = await sizes(it)
        assert sum(now.values()) == 23
        assert now["one"] > 8
        assert now["two"] > 5


@on_loop
async def test_replica_sets_beyond_the_history_limit_go() -> None:
    async with running() as it:
        await it.create(deployment(1, revisionHistoryLimit=1))
        await finish(it)
        for image in ("two", "three", "four"):
            await change(it, template=with_image(image))
            await finish(it)
        assert set(await sizes(it)) == {"three", "four"}


@on_loop
async def test_deleting_a_deployment_takes_its_replica_sets_and_pods() -> None:
    async with running() as it:
        await it.create(deployment(2))
        await it.client.delete(DEPLOYMENTS, "web", namespace="default")
        await it.settle()
        assert await it.all(REPLICA_SETS) == []
        assert await it.all(PODS) == []


@on_loop
async def test_a_name_that_another_object_has_leads_to_another_hash() -> None:
    async with running() as it:
        document = deployment(1, paused=True)
        await it.create(document)
        found = await it.client.get(DEPLOYMENTS, "web", namespace="default")
        from drakit.controllers.templatehash import template_hash

        hashed = template_hash(found.document["spec"]["template"])
        stranger = new_set(found, hashed, 0, 1)
        stranger["metadata"].pop("ownerReferences")
        stranger["metadata"]["labels"] = stranger["spec"]["selector"]["matchLabels"] = {"app": "other"}
        stranger["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
        await it.create(stranger)
        await change(it, paused=False)
        made = [each for each in await it.client.list(REPLICA_SETS) if each.view.metadata.controller]
        assert len(made) == 1
        assert made[0].view.metadata.name != f"web-{hashed}"
        assert (await status(it))["collisionCount"] == 1


def test_a_rollout_survives_a_crash_after_every_write() -> None:
    async def a_rollout(it: Cluster) -> None:
        await it.create(deployment(2))
        await finish(it)
        await change(it, template=with_image("two"))
        await finish(it)

    kinds = (DEPLOYMENTS, REPLICA_SETS, PODS)
    assert check_every_crash(a_rollout, MAKERS, kinds, exact=False, at_most=True) >= 10


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ({"strategy": {"type": "Blue"}}, "spec.strategy: Unsupported value"),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}, "spec.strategy.rollingUpdate"),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
        ),
        ({"strategy": {"rollingUpdate": {"maxSurge": "lots"}}}, "spec.strategy.rollingUpdate.maxSurge"),
        ({"progressDeadlineSeconds": 5, "minReadySeconds": 5}, "spec.progressDeadlineSeconds"),
    ],
)
def test_what_is_wrong_with_a_deployment_is_told_by_field(spec: Plain, field: str) -> None:
    async def run() -> None:
        async with cluster() as it:
            with pytest.raises(Invalid) as caught:
                await it.create(deployment(2, **spec))
            assert field in str(caught.value)

    on_loop(run)()


def _sets(new: tuple[int, int], old: list[tuple[int, int]], spec: Plain) -> tuple[Any, Any, list[Any]]:
    made = Partial.of(Deployment, deployment(**spec))

    def replica_set(name: str, size: int, available: int) -> Partial[ReplicaSet]:
        document = {
            "metadata": {"name": name}, "spec": {"replicas": size}, "status": {"availableReplicas": available},
        }  # fmt: skip
        return Partial.of(ReplicaSet, document)

    return made, replica_set("new", *new), [replica_set(f"old-{n}", *pair) for n, pair in enumerate(old)]


counts = st.integers(0, 6).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size)))


@settings(max_examples=300)
@given(
    st.integers(0, 8), counts, st.lists(counts, max_size=3), st.sampled_from([0, 1, 3, "25%", "100%"]),
    st.sampled_from([0, 1, 2, "25%", "100%"]),
)  # fmt: skip
def test_a_step_keeps_within_surge_and_availability(
    wanted: int, new: tuple[int, int], old: list[tuple[int, int]], surge: int | str, missing: int | str
) -> None:
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
    made, new_, olds = _sets(new, old, {"replicas": wanted, "strategy": rolling})
    step = roll(made, new_, olds)
    sets = [new_, *olds]
    after = {each.view.metadata.name: step.get(each.view.metadata.name, size_of(each)) for each in sets}
    before = sum(map(size_of, sets))
    assert all(size >= 0 for size in after.values())
    assert sum(after.values()) <= max(before, wanted + max_surge(made))
    available = sum(each.view.status.available_replicas for each in sets)
    kept = sum(min(after[each.view.metadata.name], each.view.status.available_replicas) for each in sets)
    if size_of(new_) <= wanted:  # one that is too large shrinks by itself
        assert kept >= min(available, wanted - max_unavailable(made))
