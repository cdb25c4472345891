"""The life of a pod as steps with times, and the object behind each step. Pure.

In:  a pod's document, its claims, when claims were seen to be given back and the pod to be gone.
Out: steps in the order of a pod's life; one that has not happened yet has no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from drakit.api import ResourceClaim


class FlowStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """`seconds` since the previous step with a time. `kind`, `namespace` and `name` are the object behind the step."""

    step: str
    at: str = ""
    seconds: float | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""
    note: str = ""


def pod_flow(
    pod: Mapping[str, Any], claims: Sequence[ResourceClaim], released: Mapping[str, str], *, deleted: str = ""
) -> list[FlowStep]:
    steps = [*_steps(pod, claims, released)]
    if deleted:
        # Claims may be given back before or after: steps stand in the order in which they happened.
        at = next((n for n, each in enumerate(steps) if each.step == "released" and each.at > deleted), len(steps))
        steps.insert(at, FlowStep("deleted", deleted))
    found: list[FlowStep] = []
    before = ""
    for each in steps:
        seconds = _between(before, each.at) if before and each.at else None
        found.append(msgspec.structs.replace(each, seconds=seconds))
        before = each.at or before
    return found


def _steps(pod: Mapping[str, Any], claims: Sequence[ResourceClaim], released: Mapping[str, str]) -> Iterator[FlowStep]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = (pod.get("spec") or {}).get("nodeName") or ""
    scheduled = _condition(status, "PodScheduled")
    of_pod = {"kind": "Pod", "namespace": metadata.get("namespace", ""), "name": metadata.get("name", "")}
    # Steps come in the order of a pod's life, those that have not happened too: their time is empty, and the page
    # greys them.
    yield FlowStep("created", metadata.get("creationTimestamp") or "", **of_pod)
    for claim in claims:
        yield _of_claim("claim", claim, claim.metadata.creation_timestamp or "")
    for claim in claims:
        allocation = claim.status.allocation
        devices = [f"{each.pool}/{each.device}" for each in allocation.devices.results] if allocation else []
        at = (allocation.allocation_timestamp if allocation else None) or ""
        yield _of_claim("allocated", claim, at, ", ".join(devices))
    yield FlowStep("scheduled", scheduled, **of_pod, note=node)
    yield FlowStep("bound", scheduled if node else "", kind="Node" if node else "", name=node)
    if claims:
        yield FlowStep("prepared", _condition(status, "PodReadyToStartContainers"), **of_pod)
    yield FlowStep("running", _first(_states(status, "running", "startedAt", "terminated", "startedAt")), **of_pod)
    ended = (status.get("phase") or "") in ("Succeeded", "Failed")
    finished = _last(_states(status, "terminated", "finishedAt")) if ended else ""
    yield FlowStep("ended", finished, **of_pod, note=status.get("phase", "") if ended else "")
    for claim in claims:
        yield _of_claim("released", claim, released.get(claim.metadata.uid, ""))


def _of_claim(step: str, claim: ResourceClaim, at: str, note: str = "") -> FlowStep:
    return FlowStep(
        step, at, kind="ResourceClaim", namespace=claim.metadata.namespace, name=claim.metadata.name, note=note
    )


def _condition(status: Mapping[str, Any], kind: str) -> str:
    for each in status.get("conditions") or ():
        if each.get("type") == kind and each.get("status") == "True":
            return str(each.get("lastTransitionTime") or "")
    return ""


def _states(status: Mapping[str, Any], *pairs: str) -> Iterator[str]:
    """`pairs` are states and fields by turns. For each container, the time of the first of these states that it has."""
    for container in status.get("containerStatuses") or ():
        # A restarted container has both: its current state wins over its last one.
        states = {**(container.get("lastState") or {}), **(container.get("state") or {})}
        for name, field in zip(pairs[::2], pairs[1::2], strict=True):
            at = (states.get(name) or {}).get(field)
            if at:
                yield str(at)
                break


def _first(times: Iterable[str]) -> str:
    return min(times, default="")


def _last(times: Iterable[str]) -> str:
    return max(times, default="")


def _between(before: str, after: str) -> float | None:
    try:
        return max((_time(after) - _time(before)).total_seconds(), 0.0)
    except ValueError:
        return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
