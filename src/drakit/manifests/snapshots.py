"""Snapshots of `drakit snapshot`, with decisions that the scheduler had not written to the server yet. Pure.

In:  a document of kind Snapshot.
Out: its objects, with the decisions in them: an allocation in flight is the claim's, a pod that is being bound is on
     its node. So a replay sees what the scheduler saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

API_VERSION = "drakit/v1"
KIND = "Snapshot"


def is_snapshot(document: Any) -> bool:
    return isinstance(document, dict) and (document.get("apiVersion"), document.get("kind")) == (API_VERSION, KIND)


def snapshot_items(document: Mapping[str, Any]) -> Iterator[Any]:
    """The items, in their order. Malformed ones are passed on: whoever reads the objects reports them."""
    items, state = document.get("items"), document.get("scheduler")
    state = state if isinstance(state, dict) else {}
    flights = _by_uid(state.get("inFlight"))
    assumed = _by_uid(state.get("assumedPods"))
    for item in items if isinstance(items, list) else ():
        metadata = item.get("metadata") if isinstance(item, dict) else None
        uid = metadata.get("uid", "") if isinstance(metadata, dict) else ""
        # The scheduler counted with these before the server knew: a replay that leaves them out decides otherwise.
        if uid in flights and item.get("kind") == "ResourceClaim" and not _allocation(item):
            yield {**item, "status": {**(item.get("status") or {}), "allocation": flights[uid].get("allocation")}}
        elif uid in assumed and item.get("kind") == "Pod":
            yield {**item, "spec": {**(item.get("spec") or {}), "nodeName": assumed[uid].get("nodeName", "")}}
        else:
            yield item


def _allocation(claim: Mapping[str, Any]) -> Any:
    return (claim.get("status") or {}).get("allocation")


def _by_uid(entries: Any) -> dict[str, Any]:
    found = entries if isinstance(entries, list) else []
    return {each["uid"]: each for each in found if isinstance(each, dict) and each.get("uid")}
