"""Play a recorded flow on a cluster in this process, and compare what it leaves.

In:  a flow: manifests and actions in order, snapshots of objects and events.
Out: differences as pairs (recorded, ours), after uids, times, versions and random name parts are made alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drakit.api.codec.documents import to_wire
from drakit.api.objects.partial import Partial
from drakit.client import EVENTS, QUOTAS, Answered, metadata_of, resource
from tests.builders.cluster import Cluster
from tests.builders.manifests import node
from tests.conformance.vectors import read_vectors

FLOWS = Path(__file__).parent / "data" / "flows" / "flows.jsonl.gz"
PATIENCE = 30.0
_DROPPED = ("managedFields", "apiVersion", "kind")
_MADE_ALIKE = {"uid": "<uid>", "resourceVersion": "<rv>"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_UID = re.compile(r"<uid-\d+>|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_PREEMPTION = re.compile(r", preemption: .*$")
"""What is told of preemption, which upstream always tries and drakit only when it is asked to."""

Differences = list[tuple[str, Any, Any]]


def flow(name: str) -> dict[str, Any]:
    return next(each for each in read_vectors([FLOWS]) if each["id"] == name)


def flows() -> list[str]:
    return [each["id"] for each in read_vectors([FLOWS])]


async def prepare(it: Cluster, recorded: dict[str, Any]) -> str:
    """The nodes and the namespace that a flow begins with."""
    namespace = f"f{recorded['id'].removeprefix('flow-')}"
    labels = next((step.get("labels") or {} for step in recorded["steps"] if step["do"] == "namespace"), {})
    about = {"name": namespace, "labels": labels}
    await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
    zones = {"node-1": "a", "node-2": "b"} if "two nodes" in recorded["about"] else {"node-1": "a"}
    for name, zone in zones.items():
        made = node(name, zone=zone)
        made["status"] = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
        await it.create(made)
    return namespace


async def play(it: Cluster, recorded: dict[str, Any], *, hurried: bool = True, lasting: bool = True) -> Differences:
    """A wait that a snapshot follows is over as soon as things are as recorded: some states do not last.

    Hurried, a step follows the one before at once; else, when everything has happened that follows from that. Lasting,
    things must still be as recorded some time after the end.
    """
    namespace = await prepare(it, recorded)
    differences: Differences = []
    snapshots = iter(recorded["snapshots"])
    steps = recorded["steps"]
    for number, step in enumerate(steps):
        match step["do"]:
            case "create":
                differences += await _create(it, step, namespace)
                if not hurried:
                    await it.settle()
            case "delete":
                place = namespace if resource(step["kind"]).kind.namespaced else ""
                await it.client.delete(
                    resource(step["kind"]), step["name"], namespace=place, grace=step.get("gracePeriodSeconds")
                )
            case "patch":
                place = namespace if resource(step["kind"]).kind.namespaced else ""
                await _patch(it, step, place)
            case "wait":
                following = next((each["do"] for each in steps[number:] if each["do"] != "wait"), "snapshot")
                if following != "snapshot":
                    await it.run_for(PATIENCE)
            case "note":
                found = await it.client.get(QUOTAS, step["quota"]["metadata"]["name"], namespace=namespace)
                differences += _compare("note", step["quota"]["status"], found.document["status"])
            case "snapshot":
                differences += await _reach(it, next(snapshots), namespace)
    differences += await _reach(it, recorded["final"], namespace)
    if differences or not lasting:
        return differences
    await it.run_for(PATIENCE)
    return await _look(it, recorded["final"], namespace)


async def _reach(it: Cluster, recorded: dict[str, Any], namespace: str) -> Differences:
    """Let time go on until things are as recorded, or patience is at its end."""
    end = it.clock.monotonic() + PATIENCE
    await it.settle()
    while (differences := await _look(it, recorded, namespace)) and await it.pass_time(end):
        await it.settle()
    return differences


async def _create(it: Cluster, step: dict[str, Any], namespace: str) -> Differences:
    """The next step follows at once: what the cluster makes of it happens meanwhile."""
    try:
        await it.client.create(await _with_uids(it, step["manifest"], namespace))
    except Answered as error:
        wanted = step.get("response", {}).get("message", step["code"])
        return _compare("create", (step["code"], wanted), (error.status.code, error.status.message))
    return _compare("create", step["code"], 201)


async def _with_uids(it: Cluster, manifest: dict[str, Any], namespace: str) -> Any:
    """A manifest with the uids that the recorded owners have here."""
    owners = manifest["metadata"].get("ownerReferences", ())
    if not owners:
        return manifest
    ours = []
    for each in owners:
        found = await it.client.get(resource(each["kind"]), each["name"], namespace=namespace)
        ours.append({**each, "uid": metadata_of(found).uid})
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": ours}}


async def _patch(it: Cluster, step: dict[str, Any], namespace: str) -> None:
    kind = resource(step["kind"])
    found = await it.client.get(kind, step["name"], namespace=namespace)
    await it.client.patch(found, step["body"], kind=step["type"], subresource=step["sub"].strip("/"), versioned=False)


async def _look(it: Cluster, recorded: dict[str, Any], namespace: str) -> Differences:
    differences: Differences = []
    for kind, objects in recorded["objects"].items():
        wanted = sorted(map(_alike, objects), key=_name)
        listed = await it.client.list(resource(kind), namespace=namespace if resource(kind).kind.namespaced else "")
        differences += _compare(kind, wanted, sorted((_alike(_document(each)) for each in listed), key=_name))
    told = await it.client.list(EVENTS, namespace=namespace)
    ours = {_event(each.view) for each in told}
    return differences + _compare("events", {tuple(map(_alike, each)) for each in recorded["events"]}, ours)


def _event(told: Any) -> tuple[str, ...]:
    about = told.involved_object
    by = told.source.component
    return tuple(map(_alike, (about.kind, about.name, told.type, told.reason, told.message, by)))


def _compare(what: str, recorded: Any, ours: Any) -> Differences:
    return [] if recorded == ours else [(what, recorded, ours)]


def _document(obj: Any) -> dict[str, Any]:
    return dict(obj.document) if type(obj) is Partial else dict(to_wire(obj))


def _name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _alike(value: Any, *, top: bool = True) -> Any:
    """An object without what differs from run to run."""
    if isinstance(value, dict):
        return dict(_items(value, top))
    if isinstance(value, list | tuple):
        return [_alike(each, top=False) for each in value]
    if isinstance(value, str):
        return _PREEMPTION.sub("", _TIME.sub("<time>", _UID.sub("<uid>", _RANDOM.sub("-<rand>", value))))
    return value


def _items(value: dict[str, Any], top: bool) -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        if (top and name in _DROPPED) or name == "managedFields":
            continue
        yield name, _MADE_ALIKE.get(name) or _alike(each, top=False)
