"""Scenes and objects for the tests of jobs, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.client import JOBS, PODS
from tests.builders.cluster import Cluster
from tests.builders.documents import Plain


def job(name: str = "train", *, restart: str = "Never", **spec: Any) -> Plain:
    template = {
        "metadata": {"labels": {"app": "train"}},
        "spec": {"containers": [{"name": "ctr", "image": "img"}], "restartPolicy": restart},
    }
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template, **spec},
    }  # fmt: skip


async def pods_of(it: Cluster, name: str = "train") -> list[Any]:
    """Pods of a job that have not ended and are not being deleted, in the order of their indexes or names."""
    found = [
        pod for pod in await it.all(PODS)
        if pod.metadata.labels.get("job-name") == name and not pod.is_terminal and not pod.metadata.deletion_timestamp
    ]  # fmt: skip
    return sorted(found, key=lambda pod: pod.metadata.annotations.get("batch.kubernetes.io/job-completion-index", ""))


async def end(it: Cluster, pod: Any, phase: str = "Succeeded", *, code: int = 0, reason: str = "") -> None:
    """Let a pod end as its kubelet would tell."""
    ended = {"exitCode": code, "finishedAt": f"{it.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
    container = {"name": "ctr", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    status: Plain = {"phase": phase, "containerStatuses": [{**container, "state": {"terminated": ended}}]}
    if reason:
        status["conditions"] = [{"type": reason, "status": "True"}]
    await it.set_status(PODS, pod.metadata.name, status)
    await it.run_for(1)


async def fail(it: Cluster, pod: Any, code: int = 1) -> None:
    await end(it, pod, "Failed", code=code)


async def conditions(it: Cluster, name: str = "train") -> dict[str, tuple[str, str]]:
    """Conditions that are true, with reason and message."""
    found = (await it.find(JOBS, name)).status.conditions
    return {each.type: (each.reason, each.message) for each in found if each.status == "True"}


async def a_job_succeeds_in_the_end(it: Cluster) -> None:
    await it.create(job(parallelism=2, completions=3))
    await it.run_for(1)
    first, second = await pods_of(it)
    await fail(it, first)
    await end(it, second)
    await it.run_for(60)
    for _ in range(3):
        for pod in await pods_of(it):
            await end(it, pod)
        await it.run_for(15)


async def an_indexed_job_fails(it: Cluster) -> None:
    await it.create(job(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1))
    await it.run_for(1)
    await end(it, (await pods_of(it))[0])
    for _ in range(2):
        for pod in await pods_of(it):
            await fail(it, pod)
        await it.run_for(60)


async def a_job_is_suspended_and_dropped(it: Cluster) -> None:
    await it.create(job(parallelism=2, completions=4))
    await it.run_for(1)
    await it.client.patch_named(JOBS, "train", {"spec": {"suspend": True}}, namespace="default")
    await it.run_for(5)
    await it.client.patch_named(JOBS, "train", {"spec": {"suspend": False}}, namespace="default")
    await it.run_for(30)
    await it.delete(JOBS, "train", propagation="Background")
    await it.run_for(5)
