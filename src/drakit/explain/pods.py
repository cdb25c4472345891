"""Why a pod waits, or where it runs and with which devices. Pure.

In:  a cluster, a pod.
Out: an ObjectExplanation. What is said of nodes is what the scheduler's own plugins say of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from drakit.allocator import Allocator, Cause, Reasons
from drakit.api import Pod, ResourceClaim, ResourceClaimTemplate
from drakit.api.podclaims import claim_names
from drakit.explain.answers import (
    FoldedNodes,
    GivenDevice,
    MissingDevice,
    ObjectExplanation,
    RequestFunnel,
    Standing,
    Suggestion,
)
from drakit.explain.cluster import ClusterObjects
from drakit.explain.funnels import Funnels
from drakit.explain.given import given_devices
from drakit.explain.remedies.trials import Trials
from drakit.scheduler.framework import PluginStatus
from drakit.scheduler.rehearsal import Rehearsal, RehearsedPod

_DEVICES = "DynamicResources"
_MAX_EXPLAINED = 500
"""How many nodes are explained device by device; of the others only the message of the scheduler is shown."""


def explained(cluster: ClusterObjects, rehearsal: Rehearsal, pod: Pod, *, suggest: bool = True) -> ObjectExplanation:
    """A pod by itself, in a cluster that `completed` returned and a rehearsal of it.

    Without `suggest` there are no suggestions; to try them takes most of the time.
    """
    devices = tuple(_devices(cluster, pod))
    if pod.is_terminal:
        return _placed(pod, devices, Standing.ENDED, f"has ended ({pod.status.phase})")
    if pod.spec.node_name:
        held = f"with {_counted(len(devices), 'device')}" if devices else "without devices"
        return _placed(pod, devices, Standing.RUNNING, f"is on node {pod.spec.node_name} {held}")
    checked = rehearsal.check(rehearsal.pod(pod.metadata.namespace, pod.metadata.name) or pod)
    if checked.refusal is None:
        where = _listed(checked.fitting)
        verdict = f"fits on {_counted(len(checked.fitting), 'node')} now ({where}) and waits for its scheduler"
        return _placed(pod, devices, Standing.FITS, verdict, checked.fitting)
    return _refused(cluster, rehearsal, checked, devices, suggest=suggest)


def _placed(
    pod: Pod, devices: tuple[GivenDevice, ...], standing: Standing, verdict: str, fitting: tuple[str, ...] = ()
) -> ObjectExplanation:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    return ObjectExplanation(
        kind="Pod", namespace=namespace, name=name, standing=standing, verdict=f"Pod {namespace}/{name} {verdict}.",
        node=pod.spec.node_name, fitting=fitting, devices=devices,
    )  # fmt: skip


def _refused(
    cluster: ClusterObjects,
    rehearsal: Rehearsal,
    checked: RehearsedPod,
    devices: tuple[GivenDevice, ...],
    *,
    suggest: bool,
) -> ObjectExplanation:
    pod, refusal = checked.pod, checked.refusal
    message = refusal.message if refusal is not None else ""
    reasons = dict(_reasons(rehearsal, checked))
    requests, missing = _funnels(cluster, rehearsal, checked, reasons)
    standing = Standing.WAITING if checked.is_gated else Standing.PENDING
    suggestions, hopeless = helped(cluster, rehearsal, [pod]) if suggest else ((), "")
    return ObjectExplanation(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        standing=standing,
        verdict=_verdict(cluster, rehearsal, checked, requests),
        message=message,
        nodes=tuple(_folded(checked.rejections, reasons)),
        requests=requests,
        missing=missing,
        suggestions=suggestions,
        hopeless=hopeless,
        devices=devices,
    )


def helped(cluster: ClusterObjects, rehearsal: Rehearsal, pods: Sequence[Pod]) -> tuple[tuple[Suggestion, ...], str]:
    """What would make the pods fit; or why nothing does."""
    trials = Trials(cluster, rehearsal, pods)
    suggestions = trials.suggestions()
    if suggestions:
        return suggestions, ""
    pod, message = trials.refused()
    return (), _gate(cluster, pod, message.rstrip("."))


def _reasons(rehearsal: Rehearsal, checked: RehearsedPod) -> Iterator[tuple[str, Reasons]]:
    """What the allocator says of each node that the pod could ask for devices."""
    for claims, nodes in checked.asked:
        allocator = Allocator(rehearsal.inventory, claims)
        for node in nodes[:_MAX_EXPLAINED]:
            yield node, allocator.reasons(node)


def _funnels(
    cluster: ClusterObjects, rehearsal: Rehearsal, checked: RehearsedPod, reasons: Mapping[str, Reasons]
) -> tuple[tuple[RequestFunnel, ...], tuple[MissingDevice, ...]]:
    # What other plugins say; devices on these nodes may be fine and still be out of reach.
    others = {
        node: status.message
        for node, status in checked.rejections.items()
        if status.plugin and status.plugin != _DEVICES
    }
    funnels = Funnels(rehearsal.inventory, others)
    for each in reasons.values():
        funnels.add(each)
    claims = [claim for group, _ in checked.asked for claim in group]
    return tuple(funnels.requests(claims)), funnels.missing(cluster)


# Nodes


def _folded(rejections: Mapping[str, PluginStatus], reasons: Mapping[str, Reasons]) -> Iterator[FoldedNodes]:
    """Nodes grouped by the reason of their refusal, the largest group first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for node, status in rejections.items():
        detail = tuple(_detail(reasons[node])) if node in reasons and status.plugin == _DEVICES else ()
        groups[status.message, status.plugin, detail].append(node)
    for (reason, plugin, detail), nodes in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])):
        yield FoldedNodes(reason, plugin, tuple(sorted(nodes)), detail)


def _detail(reasons: Reasons) -> Iterator[str]:
    """A line per request. It counts devices and names none, so that nodes of one kind have equal lines."""
    for trouble in reasons.pools:
        yield f"a pool is {trouble.problem}: {trouble.reason}"
    for claim in reasons.claims:
        for request in claim.requests:
            usable = len(request.taken) + len(request.usable)
            counts: Counter[str] = Counter()
            for refusal in request.refusals:
                counts["in use" if refusal.cause is Cause.IN_USE else refusal.detail] += len(refusal.devices)
            wanted = "all" if request.wanted is None else request.wanted
            told = "".join(f"; {number} {why}" for why, number in counts.items())
            head = f"{claim.claim}, request {request.request}: {wanted} wanted"
            yield f"{head}, {usable} of {request.considered} usable{told}"


# The sentence


def _verdict(
    cluster: ClusterObjects, rehearsal: Rehearsal, checked: RehearsedPod, requests: Iterable[RequestFunnel]
) -> str:
    pod, message = checked.pod, checked.refusal.message.rstrip(".") if checked.refusal else ""
    head = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    # A gated pod is not in the queue: no node was tried, and none can be blamed.
    if checked.is_gated:
        return f"{head} is not tried yet: {_gate(cluster, pod, message)}."
    nodes = len(rehearsal.nodes)
    if not nodes:
        return f"{head} fits nowhere: the cluster has no node."
    start = f"{head} fits on none of {_counted(nodes, 'node')}"
    lacking = next((each for each in requests if each.wanted is not None and each.best < each.wanted), None)
    if lacking is None:
        return f"{start}: {message.partition(': ')[2] or message}."
    return f"{start}: {lack(lacking)}."


def lack(request: RequestFunnel) -> str:
    """One sentence: what a request wants, what the best node has, and the most frequent reason for refusals."""
    most = max((each for each in request.refused if each.stage != "class"), key=lambda each: each.count, default=None)
    why = f"; {most.count} of {request.stages[1].left} {_why(most.stage, most.reason)}" if most is not None else ""
    best = f"{request.best_node} has the most, {request.best}" if request.best else "no node has one"
    wanted = _counted(request.wanted or 0, "device")
    asked = f"claim {request.claim}, request {request.request} wants {wanted} of class {request.device_class}"
    return f"{asked}, and {best}{why}"


def _why(stage: str, reason: str) -> str:
    return "are in use" if stage == "free" else f"are refused: {reason}"


def _gate(cluster: ClusterObjects, pod: Pod, message: str) -> str:
    """Why a pod is kept out of the queue, and the cause of that if it is known."""
    if "not created yet" in message:
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_template_name
            if name and cluster.find(ResourceClaimTemplate, name, pod.metadata.namespace) is None:
                return f"{message}; ResourceClaimTemplate {name} does not exist"
        return f"{message}; the claim controller has not made it"
    if pod.spec.scheduling_gates:
        return f"it has the scheduling gates {', '.join(each.name for each in pod.spec.scheduling_gates)}"
    return message


def _devices(cluster: ClusterObjects, pod: Pod) -> Iterator[GivenDevice]:
    for name in dict.fromkeys(claim_names(pod).values()):
        claim = cluster.find(ResourceClaim, name, pod.metadata.namespace)
        if claim is not None:
            yield from given_devices(claim)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
