"""Answers the questions of the page with `explain`, in threads beside the event loop.

In:  a live view, and what was asked.
Out: plain data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api import Partial, Pod, ResourceClaim, to_wire
from drakit.api.codec.documents import parse_documents
from drakit.api.podclaims import claim_names
from drakit.api.text.yamldump import dump_yaml
from drakit.base.errors import NotFound, UsageError
from drakit.client import (
    CLAIMS,
    CLASSES,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Resource,
)
from drakit.dashboard.cells import device_details, pending_pods
from drakit.dashboard.flow import pod_flow
from drakit.dashboard.live import LiveView
from drakit.explain import (
    ClusterObjects,
    SelectorLab,
    WhatIf,
    explain_claim,
    explain_pod,
    explain_podgroup,
    what_if,
)

Answer = Mapping[str, Any]
_KINDS: dict[str, Resource[Any]] = {
    "Pod": PODS,
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": TEMPLATES,
    "ResourceSlice": SLICES,
    "DeviceClass": CLASSES,
    "DeviceTaintRule": TAINT_RULES,
    "Node": NODES,
    "PodGroup": POD_GROUPS,
}
_EXPLAIN = {"Pod": explain_pod, "ResourceClaim": explain_claim, "PodGroup": explain_podgroup}
TEMPLATE = "template"
GONE = "Deleted"
_MOST_PENDING = 50
_MOST_PODS = 2000
_MOST_YAML = 200_000


async def pending(live: LiveView) -> Answer:
    """Pods without a node, each explained; of very many, the oldest."""
    return await asyncio.to_thread(_pending, await live.cluster())


def _pending(cluster: ClusterObjects) -> Answer:
    pods = sorted(pending_pods(cluster), key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    found = []
    for pod in pods[:_MOST_PENDING]:
        name, namespace = pod.metadata.name, pod.metadata.namespace
        answer: dict[str, Any] = msgspec.to_builtins(explain_pod(cluster, name, namespace, suggest=False))
        found.append({**answer, "created": pod.metadata.creation_timestamp or ""})
    return {"pods": found, "count": len(pods)}


async def explanation(live: LiveView, kind: str, namespace: str, name: str) -> Answer:
    function = _EXPLAIN.get(kind)
    if function is None:
        raise UsageError(f'cannot explain a "{kind}": it is Pod, ResourceClaim or PodGroup')
    found = await asyncio.to_thread(function, await live.cluster(), name, namespace)
    answer: Answer = msgspec.to_builtins(found)
    return answer


async def device(live: LiveView, key: str) -> Answer:
    cells = await live.cells()
    found = device_details(await live.cluster(), cells.rows, key)
    if found is None:
        raise NotFound(f'device "{key}": no ResourceSlice has it')
    return found


async def selection(live: LiveView, expression: str) -> Answer:
    """The keys of the devices that match, or where the expression is wrong."""
    return await asyncio.to_thread(_selection, await live.cluster(), expression)


def _selection(cluster: ClusterObjects, expression: str) -> Answer:
    found = SelectorLab(cluster).attempt(expression)
    errors = [each.error for each in found.devices if each.error]
    return {
        "faults": msgspec.to_builtins(found.faults),
        # Pools may have slashes in their names, drivers and devices have none.
        "keys": [_key(each.device) for each in found.devices if each.matches],
        "errors": len(errors),
        "error": errors[0] if errors else "",
    }


def _key(name: str) -> str:
    driver, _, rest = name.partition("/")
    pool, _, last = rest.rpartition("/")
    return f"{driver} {pool} {last}"


async def what_would_be(live: LiveView, question: WhatIf) -> Answer:
    answer: Answer = msgspec.to_builtins(await asyncio.to_thread(what_if, await live.cluster(), question))
    return answer


def question_of(data: bytes) -> WhatIf:
    """A `WhatIf`, whose `yaml` holds further objects to put, and whose `templateYaml` the kind of node `template`.

    Raise UsageError.
    """
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
        text = document.pop("yaml", "") or ""
        put = [*document.pop("put", ()), *_documents(str(text))]
        template = _documents(str(document.pop("templateYaml", "") or ""))
        templates = {**document.pop("templates", {}), **({TEMPLATE: template} if template else {})}
        return msgspec.convert({**document, "put": put, "templates": templates}, WhatIf)
    except msgspec.DecodeError as error:
        raise UsageError(f"the question cannot be read: {error}") from None


def _documents(text: str) -> list[Any]:
    found: list[Any] = []
    for each in parse_documents(text, source="YAML") if text.strip() else ():
        if isinstance(each, dict) and str(each.get("kind", "")).endswith("List"):
            found += each.get("items") or []
        elif each is not None:
            found.append(each)
    return found


async def pods(live: LiveView) -> Answer:
    """Pods that are there, and those that were deleted while the page was open: the newest first."""
    found = [_row(pod) for pod in (await live.cluster()).all(Pod)]
    there = {(each["namespace"], each["name"]) for each in found}
    for each in live.gone.all(PODS):
        pod = each.seen.view
        if (pod.metadata.namespace, pod.metadata.name) not in there:
            found.append({**_row(pod), "phase": GONE, "deleted": each.at})
    found.sort(key=lambda each: (str(each["created"]), str(each["name"])), reverse=True)
    return {"pods": found[:_MOST_PODS], "count": len(found)}


def _row(pod: Pod) -> dict[str, Any]:
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "phase": pod.status.phase or "Pending",
        "node": pod.spec.node_name or "",
        "created": pod.metadata.creation_timestamp or "",
        "claims": sum(1 for _ in pod.spec.resource_claims),
    }


async def flow(live: LiveView, namespace: str, name: str) -> Answer:
    """A pod's life; of one that is gone, as it was last seen while the page was open."""
    pod, gone = live.document(PODS, name, namespace), live.gone.find(PODS, name, namespace)
    deleted = gone.at if pod is None and gone is not None else ""
    if pod is None:
        if gone is None:
            raise NotFound(
                f'pods "{name}" not found in namespace {namespace}: it is not there, or went before you looked'
            )
        pod = gone.seen
    cluster = await live.cluster()
    names = [each for each in dict.fromkeys(claim_names(pod.view).values()) if each]
    claims = [each for each in (_claim(live, cluster, one, namespace) for one in names) if each is not None]
    steps = pod_flow(pod.document, claims, live.released, deleted=deleted)
    return {
        "namespace": namespace,
        "name": name,
        "deleted": deleted,
        "steps": msgspec.to_builtins(steps),
        "now": live.client.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _claim(live: LiveView, cluster: ClusterObjects, name: str, namespace: str) -> ResourceClaim | None:
    found, gone = cluster.find(ResourceClaim, name, namespace), live.gone.find(CLAIMS, name, namespace)
    seen: ResourceClaim | None = gone.seen if gone is not None else None
    return found if found is not None else seen


async def one_object(live: LiveView, kind: str, namespace: str, name: str) -> Answer:
    """YAML, conditions and events of one object, as it was last seen; `deleted` says when it was seen to be gone."""
    resource = _KINDS.get(kind)
    found = live.document(resource, name, namespace) if resource is not None else None
    gone = live.gone.find(resource, name, namespace) if resource is not None and found is None else None
    found = gone.seen if gone is not None else found
    if found is None:
        raise NotFound(f'{kind} "{name}" not found' + (f" in namespace {namespace}" if namespace else ""))
    document = _shown(dict(found.document) if isinstance(found, Partial) else to_wire(found))
    text = await asyncio.to_thread(dump_yaml, document)
    cut = len(text) > _MOST_YAML
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "deleted": gone.at if gone is not None else "",
        "yaml": text[:_MOST_YAML],
        "cut": len(text) if cut else 0,
        "conditions": list((document.get("status") or {}).get("conditions") or ()),
        "events": _events(live, str((document.get("metadata") or {}).get("uid") or "")),
    }


def _shown(document: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def _events(live: LiveView, uid: str) -> list[Answer]:
    found = [each for each in live.events() if uid and (each.involved_object.uid or "") == uid]
    told: list[Answer] = [
        {
            "type": each.type,
            "reason": each.reason,
            "message": each.message,
            "at": each.last_timestamp or each.event_time or each.metadata.creation_timestamp or "",
            "count": each.count or 1,
        }
        for each in found
    ]
    return sorted(told, key=lambda each: str(each["at"]))[-100:]
