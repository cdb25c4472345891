"""The scenes: a capability of dynamic resource allocation each, with manifests in the folder `scenes`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from drakit.cli.commands.demo.failures import SceneFailed
from drakit.cli.commands.demo.stage import OnePod, Stage
from drakit.cli.flags.cluster import KINDS, cluster_of, list_objects
from drakit.client import CLAIMS, TAINT_RULES
from drakit.explain import explain_pod

__all__ = ["SCENES", "Scene", "SceneFailed"]

Lines = list[str]


@dataclass(frozen=True, slots=True)
class Scene:
    name: str
    about: str
    play: Callable[[Stage], Awaitable[Lines]]


def running(count: int) -> Callable[[Stage], Awaitable[Lines]]:
    """Apply the manifests, wait for the pods, tell what they print."""

    async def play(stage: Stage) -> Lines:
        await stage.apply()
        return [await stage.printed(pod) for pod in await stage.running(count)]

    return play


async def _taint(stage: Stage) -> Lines:
    await stage.apply()
    [first] = await stage.running(1)
    before = await stage.printed(first)
    [claim] = await stage.insist(lambda: stage.client.list(CLAIMS, namespace=stage.namespace))
    allocation = claim.status.allocation
    if allocation is None:
        raise SceneFailed("the claim of a running pod has no allocation")
    device = allocation.devices.results[0]
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "demo"},
        "spec": {
            "deviceSelector": {"driver": device.driver, "pool": device.pool, "device": device.device},
            "taint": {"key": "example.com/broken", "effect": "NoExecute"},
        },
    }
    await stage.create(rule)
    try:
        [second] = await stage.running(1, but=first.view.metadata.name)
        return [
            f"before, {before}",
            f"{device.pool}/{device.device} is tainted",
            f"after, {await stage.printed(second)}",
        ]
    finally:
        await stage.delete(TAINT_RULES, "demo")


async def _refused(stage: Stage) -> Lines:
    await stage.apply()

    def told(pods: dict[str, OnePod]) -> str | None:
        for pod in pods.values():
            for condition in pod.view.status.conditions:
                if condition.type == "PodScheduled" and condition.status == "False" and condition.message:
                    return condition.message
        return None

    said = await stage.until(told, "reason")
    objects = await stage.insist(lambda: list_objects(stage.client, KINDS))
    found = explain_pod(cluster_of(objects), "greedy", stage.namespace)
    would = [f"it would fit with: {each.text}" for each in found.suggestions[:2]]
    return [f"pending: {said}", f"explained: {found.verdict}", *would]


SCENES = (
    Scene("template", "a pod gets a claim of its own, made from a template", running(1)),
    Scene("shared-claim", "two pods use one claim, and so one card", running(2)),
    Scene("prioritized-list", "the card of its dreams, or else half of a large one", running(1)),
    Scene("constraint", "two cards of the same model", running(1)),
    Scene("partitions", "two pods get a quarter of the same card each", running(2)),
    Scene("bandwidth", "two pods share an interface, 40G of it each", running(2)),
    Scene("admin-access", "a monitor sees all cards of a node, in use or not", running(1)),
    Scene("binding-conditions", "an accelerator is attached to the node before the pod is bound", running(1)),
    Scene("extended-resource", "an unmodified Deployment asks for example.com/gpu", running(2)),
    Scene("node-cpus", "a CPU by number, taken from the node's own cpu", running(1)),
    Scene("pod-group", "two pods run together or not at all, and share their group's claim", running(2)),
    Scene("taint", "a card breaks, its pod is evicted, the next one gets another card", _taint),
    Scene("does-not-fit", "a pod asks for more than any node has, and is told why", _refused),
)
