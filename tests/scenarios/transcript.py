"""Transcripts: the story of a whole cluster as commands and what they change, for a person to review.

In:  a text of blocks: commands, a line `----`, then what changed, and an empty line.
Out: the same text with what really changed.

Commands, one per line; time goes on only by `wait`:

    node NAME                            a node with room for pods
    slice NAME NODE DEVICE...            what a driver publishes there
    class NAME                           a class that takes every device of the driver
    template NAME COUNT                  for claims of that many devices
    claim NAME COUNT                     a claim that pods share
    pod NAME template=NAME|claim=NAME    a pod that asks for devices
    end POD                              the pod has run to its end
    stop POD                             the node agent has stopped a pod that is being deleted
    delete KIND NAME                     pod, claim or slice
    taint DEVICE EFFECT                  a DeviceTaintRule
    wait SECONDS
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from drakit.api import Pod, ResourceClaim
from drakit.client import CLAIMS, PODS, SLICES
from drakit.testing import AsyncCluster
from tests.builders.manifests import by_name, by_template, claim, claim_spec, device_class, resource_slice, template
from tests.builders.podmanifests import node, pod

RULE = "----"
_RESOURCES = {"pod": PODS, "claim": CLAIMS, "slice": SLICES}


async def replay(text: str, it: AsyncCluster) -> str:
    """The transcript as the cluster writes it: equal to the text when everything is as it was."""
    blocks, known = [], dict[str, str]()
    for block in text.strip().split("\n\n"):
        commands = block.partition(f"\n{RULE}")[0]
        for line in commands.splitlines():
            if not line.startswith("#"):
                await _run(line, it)
        await it.settle()
        now = await _state(it)
        gone = [f"{name} is gone" for name in known if name not in now]
        changed = [f"{name} {state}" for name, state in now.items() if known.get(name) != state]
        blocks.append("\n".join((commands, RULE, *(sorted(gone) + changed or ["nothing changes"]))))
        known = now
    return "\n\n".join(blocks) + "\n"


async def _run(line: str, it: AsyncCluster) -> None:
    verb, *words = line.split()
    await _VERBS[verb](it, *words)


async def _slice(it: AsyncCluster, name: str, home: str, *devices: str) -> None:
    await it.create(resource_slice(name, *devices, pool=home, node=home))


async def _claim(it: AsyncCluster, name: str, count: str) -> None:
    await it.create({**claim(name), "spec": claim_spec(count=int(count))})


async def _pod(it: AsyncCluster, name: str, source: str) -> None:
    how, _, what = source.partition("=")
    entry = by_template("gpu", what) if how == "template" else by_name(what, "gpu")
    await it.create(pod(name, claims=[entry]))


async def _delete(it: AsyncCluster, kind: str, name: str) -> None:
    await it.client.delete(_RESOURCES[kind], name, namespace="" if kind == "slice" else "default")


async def _taint(it: AsyncCluster, device: str, effect: str) -> None:
    taint = {"key": "example.com/broken", "effect": effect}
    await it.create(
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"broken-{device}"},
            "spec": {"deviceSelector": {"device": device}, "taint": taint},
        }
    )


_VERBS: dict[str, Callable[..., Awaitable[object]]] = {
    "node": lambda it, name: it.create(node(name)),
    "slice": _slice,
    "class": lambda it, name: it.apply(device_class(name)),
    "template": lambda it, name, count: it.create(template(name, count=int(count))),
    "claim": _claim,
    "pod": _pod,
    "end": lambda it, name: it.set_status(PODS, name, {"phase": "Succeeded"}),
    "stop": lambda it, name: it.client.delete(PODS, name, namespace="default", grace=0),
    "delete": _delete,
    "taint": _taint,
    "wait": lambda it, seconds: it.advance(float(seconds)),
}


async def _state(it: AsyncCluster) -> dict[str, str]:
    """Pods and claims by name, each in one line. Of a generated name, what is random is a star."""
    pods = [each.view for each in (await it.client.list(PODS)).items]
    claims = list((await it.client.list(CLAIMS)).items)
    shown = {f"pod/{each.metadata.name}": _of_pod(each) for each in pods}
    for made in claims:
        shown = {name: state.replace(made.metadata.name, _name(made)) for name, state in shown.items()}
    return dict(sorted({**{f"claim/{_name(each)}": _of_claim(each) for each in claims}, **shown}.items()))


def _name(each: ResourceClaim) -> str:
    meta = each.metadata
    return f"{meta.generate_name}*" if meta.generate_name else meta.name


def _of_pod(each: Pod) -> str:
    refused = next(
        (one for one in each.status.conditions if one.type == "PodScheduled" and one.status == "False"), None
    )
    where = f"on {each.spec.node_name}" if each.spec.node_name else "has no node"
    going = ", being deleted" if each.metadata.deletion_timestamp else ""
    return f"{each.status.phase} {where}{going}" + (f": {refused.message}" if refused else "")


def _of_claim(each: ResourceClaim) -> str:
    allocation = each.status.allocation
    if allocation is None:
        return "pending"
    devices = ", ".join(f"{one.pool}/{one.device}" for one in allocation.devices.results)
    users = ", ".join(one.name for one in each.status.reserved_for) or "nobody"
    return f"has {devices} for {users}"
