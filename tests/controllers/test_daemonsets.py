"""Daemon sets: a pod per node that fits, replaced node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.api import Pod
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_time
from drakit.client import CONTROLLER_REVISIONS, DAEMON_SETS, EVENTS, NODES, PODS, STRATEGIC
from drakit.controllers.daemonsets import DaemonSetController
from drakit.controllers.daemonsets.nodes import node_of
from drakit.controllers.garbage import GarbageCollector
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.documents import Plain, node_document
from tests.scenarios.crashes import check_every_crash

MAKERS = (DaemonSetController, GarbageCollector)


@asynccontextmanager
async def running(*nodes: str) -> AsyncIterator[Cluster]:
    async with cluster() as made:
        for name in nodes or ("a", "b", "c"):
            await made.create(labelled_node(name))
        await made.start(MAKERS)
        yield made


def labelled_node(name: str, *, labels: Plain | None = None, taints: list[Plain] | None = None) -> Plain:
    return {**node_document(name, **(labels or {})), "spec": {"taints": taints or []}}


def daemon_set(*, image: str = "one", pod: Plain | None = None, **spec: Any) -> Plain:
    template = {
        "metadata": {"labels": {"app": "driver"}},
        "spec": {"containers": [{"name": "ctr", "image": image}], **(pod or {})},
    }
    return {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "driver", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}, "template": template, **spec},
    }  # fmt: skip


async def pods(it: Cluster) -> dict[str, str]:
    """The image of the pod of each node."""
    return {node_of(each): _image(each) for each in await it.client.list(PODS)}


def _image(pod: Partial[Pod]) -> str:
    return str(pod.document["spec"]["containers"][0]["image"])


async def make_ready(it: Cluster) -> int:
    """Bind each pod to its node and let it be ready; how many were not."""
    count = 0
    for each in await it.client.list(PODS):
        if each.view.status.phase == "Running":
            continue
        count += 1
        name = each.view.metadata.name
        target = {"kind": "Node", "name": node_of(each)}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await it.client.call("POST", PODS, name, "binding", body, namespace="default")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(it.clock.now())}
        await it.client.patch_named(
            PODS, name, {"status": {"phase": "Running", "conditions": [condition]}}, namespace="default",
            subresource="status",
        )  # fmt: skip
    await it.settle()
    return count


async def end_deleted(it: Cluster) -> int:
    """What a node does with pods that are being deleted."""
    going = [each for each in await it.client.list(PODS) if each.view.metadata.deletion_timestamp]
    for each in going:
        await it.client.delete_object(each, grace=0)
    await it.settle()
    return len(going)


async def finish(it: Cluster) -> None:
    while await make_ready(it) + await end_deleted(it):
        pass


async def change(it: Cluster, image: str) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "ctr", "image": image}]}}}
    await it.client.patch_named(DAEMON_SETS, "driver", {"spec": spec}, namespace="default")
    await it.settle()


async def status(it: Cluster) -> Plain:
    return dict((await it.client.get(DAEMON_SETS, "driver", namespace="default")).document["status"])


@on_loop
async def test_every_node_gets_a_pod_and_the_status_counts_them() -> None:
    async with running() as it:
        await it.create(daemon_set())
        assert await pods(it) == dict.fromkeys("abc", "one")
        assert (await status(it))["desiredNumberScheduled"] == 3
        await finish(it)
        now = await status(it)
        assert (now["numberReady"], now["numberAvailable"], now["updatedNumberScheduled"]) == (3, 3, 3)
        await it.create(labelled_node("d"))
        assert set(await pods(it)) == set("abcd")


@on_loop
async def test_nodes_that_do_not_fit_get_none() -> None:
    async with cluster() as it:
        await it.create(labelled_node("gpu", labels={"gpu": "yes"}))
        await it.create(labelled_node("plain"))
        await it.create(labelled_node("tainted", labels={"gpu": "yes"}, taints=[{"key": "x", "effect": "NoSchedule"}]))
        cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        await it.create(labelled_node("cordoned", labels={"gpu": "yes"}, taints=cordon))
        await it.start(MAKERS)
        await it.create(daemon_set(pod={"nodeSelector": {"gpu": "yes"}}))
        assert set(await pods(it)) == {"gpu", "cordoned"}


@on_loop
async def test_a_taint_that_comes_later_drives_out_by_no_execute_alone() -> None:
    async with running("a", "b") as it:
        await it.create(daemon_set())
        await finish(it)
        for name, effect in (("a", "NoSchedule"), ("b", "NoExecute")):
            await it.client.patch_named(NODES, name, {"spec": {"taints": [{"key": "x", "effect": effect}]}})
        await it.settle()
        await end_deleted(it)
        assert set(await pods(it)) == {"a"}


@on_loop
async def test_a_rolling_update_takes_one_node_after_the_other() -> None:
    async with running() as it:
        await it.create(daemon_set())
        await finish(it)
        await change(it, "two")
        going = [each for each in await it.client.list(PODS) if each.view.metadata.deletion_timestamp]
        assert len(going) == 1
        await end_deleted(it)
        assert Counter((await pods(it)).values()) == {"one": 2, "two": 1}
        await finish(it)
        assert await pods(it) == dict.fromkeys("abc", "two")


@on_loop
async def test_with_surge_the_new_pod_is_ready_before_the_old_one_goes() -> None:
    async with running("a") as it:
        rolling = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await it.create(daemon_set(updateStrategy=rolling))
        await finish(it)
        await change(it, "two")
        found = await it.client.list(PODS)
        assert sorted(map(_image, found)) == ["one", "two"]
        assert not any(each.view.metadata.deletion_timestamp for each in found)
        await finish(it)
        assert await pods(it) == {"a": "two"}


@on_loop
async def test_on_delete_leaves_old_pods_until_somebody_deletes_them() -> None:
    async with running("a") as it:
        await it.create(daemon_set(updateStrategy={"type": "OnDelete"}))
        await finish(it)
        await change(it, "two")
        assert await pods(it) == {"a": "one"}
        for each in await it.client.list(PODS):
            await it.client.delete_object(each, grace=0)
        await it.settle()
        assert await pods(it) == {"a": "two"}


@on_loop
async def test_a_failed_pod_is_replaced_after_a_pause() -> None:
    async with running("a") as it:
        await it.create(daemon_set())
        await finish(it)
        [first] = await it.client.list(PODS)
        await it.client.patch_status(first, {"phase": "Failed"})
        await it.settle()
        await end_deleted(it)
        assert await it.all(PODS) == []
        await it.run_for(2)
        assert await pods(it) == {"a": "one"}
        assert "FailedDaemonPod" in {each.reason for each in await it.all(EVENTS)}


@on_loop
async def test_history_is_kept_and_an_undo_makes_the_old_revision_the_newest() -> None:
    async with running("a") as it:
        await it.create(daemon_set(revisionHistoryLimit=1))
        await finish(it)
        for image in ("two", "three"):
            await change(it, image)
            await finish(it)
        kept = sorted(each.view.revision for each in await it.client.list(CONTROLLER_REVISIONS))
        assert kept == [2, 3]
        [second] = [each for each in await it.client.list(CONTROLLER_REVISIONS) if each.view.revision == 2]
        await it.client.patch_named(
            DAEMON_SETS, "driver", dict(second.view.data or {}), namespace="default", kind=STRATEGIC
        )
        await it.settle()
        await finish(it)
        assert await pods(it) == {"a": "two"}
        assert max(each.view.revision for each in await it.client.list(CONTROLLER_REVISIONS)) == 4


@on_loop
async def test_pods_that_nobody_owns_are_adopted() -> None:
    async with running("a") as it:
        orphan = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "orphan", "namespace": "default", "labels": {"app": "driver"}},
            "spec": {"nodeName": "a", "containers": [{"name": "ctr", "image": "one"}]},
        }  # fmt: skip
        await it.create(orphan)
        await it.create(daemon_set(updateStrategy={"type": "OnDelete"}))
        [found] = await it.client.list(PODS)
        owner = found.view.metadata.controller
        assert owner is not None
        assert owner.kind == "DaemonSet"


def test_a_daemon_set_survives_a_crash_after_every_write() -> None:
    async def an_update(it: Cluster) -> None:
        await it.create(labelled_node("a"))
        await it.create(daemon_set())
        await finish(it)
        await change(it, "two")
        await finish(it)

    kinds = (DAEMON_SETS, CONTROLLER_REVISIONS, PODS)
    assert check_every_crash(an_update, MAKERS, kinds, exact=False, at_most=True, lost=1) >= 6
