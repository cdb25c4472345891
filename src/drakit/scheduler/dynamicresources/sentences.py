"""One more sentence about a pod that fits nowhere: which claim, which request, and the most frequent reason.

In:  an attempt that was refused.
Out: a sentence behind kube-scheduler's, with the command that tells more. Empty where neither devices lack nor take
     too much of a node.

It is worked out within a moment: a few nodes are looked at, no search is made, and selectors that take long are not
waited for. Whoever makes claims says what a selector costs, and this is done on the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from drakit.allocator import Cause, Reasons, RequestReasons
from drakit.base.clock import Clock
from drakit.scheduler.dynamicresources.extended.special import is_in_memory
from drakit.scheduler.dynamicresources.nodeallocatable.charges import Taker, takers
from drakit.scheduler.dynamicresources.nodeallocatable.fit import INSUFFICIENT
from drakit.scheduler.dynamicresources.state.context import NAME
from drakit.scheduler.dynamicresources.state.needs import PodNeeds
from drakit.scheduler.framework import CycleState, Nodes, PluginStatus, Rejections

_MAX_NODES = 8
_MOMENT = 0.01
"""Seconds for all nodes."""
_WORDS = {
    Cause.IN_USE: "in use",
    Cause.SELECTOR: "not selected",
    Cause.SELECTOR_ERROR: "a selector fails on",
    Cause.TAINT: "tainted",
    Cause.CONSTRAINT: "against a constraint",
    Cause.COUNTER: "without enough counters left",
    Cause.CAPACITY: "without enough capacity left",
}


def told_more(nodes: Nodes, clock: Clock, state: CycleState, rejections: Rejections) -> str:
    """The sentence, or nothing."""
    found = list(_reasons(nodes, clock, state, rejections))
    lacking = _lacking(found) or _too_much(nodes, state, rejections)
    if not found and not lacking:
        return ""
    pod = state.pod.metadata
    command = f"drakit explain pod {pod.name} -n {pod.namespace}"
    return f"{lacking}: see {command}." if lacking else f"See {command}."


def _reasons(nodes: Nodes, clock: Clock, state: CycleState, rejections: Rejections) -> Iterator[Reasons]:
    ends = clock.monotonic() + _MOMENT
    needs: PodNeeds = state.get(NAME) or PodNeeds()
    refused = [name for name, status in rejections.items() if status.plugin == NAME][:_MAX_NODES]
    infos = [info for info in map(nodes.get, refused) if info is not None]
    groups = needs.extended.groups(needs, infos, {}) if needs.extended else [(needs.variant, infos)]
    for variant, alike in groups:
        if variant.allocator is not None:
            for info in alike:
                found = variant.allocator.reasons_until(lambda: clock.monotonic() >= ends, info.name)
                if found is None:
                    return
                yield found


def _lacking(found: list[Reasons]) -> str:
    """The first request that no node has enough devices for; else nothing."""
    requests: dict[tuple[str, str], list[RequestReasons]] = {}
    for reasons in found:
        for claim in reasons.claims:
            for request in claim.requests:
                requests.setdefault((claim.claim, request.request), []).append(request)
    for key, told in requests.items():
        wanted = told[0].wanted or 1
        if all(len(each.usable) < wanted for each in told):
            return _sentence(*key, told)
    return ""


def _too_much(nodes: Nodes, state: CycleState, rejections: Rejections) -> str:
    """The claim and device that take what the first node lacks; nothing when a node lacks nothing that devices take."""
    needs: PodNeeds = state.get(NAME) or PodNeeds()
    for node, status in rejections.items():
        info = nodes.get(node)
        if status.plugin == NAME and info is not None:
            told = blamed_device(node, status, partial(takers, needs, info))
            if told:
                return told
    return ""


def blamed_device(node: str, status: PluginStatus, taking: Callable[[str], Iterable[Taker]]) -> str:
    """A sentence on the first device that takes a resource of which the node has too little; or nothing."""
    lacking = [each.removeprefix(INSUFFICIENT) for each in status.reasons if each.startswith(INSUFFICIENT)]
    for resource in lacking:
        for use, device in taking(resource):
            name = f"{device.driver}/{device.pool}/{device.device}"
            told = "for extended resources" if is_in_memory(use.claim) else use.claim.metadata.name
            return f"Claim {told}: device {name} takes {resource} of {node}, which has too little"
    return ""


def _sentence(claim: str, request: str, told: list[RequestReasons]) -> str:
    counts: Counter[Cause] = Counter()
    devices = 0
    for each in told:
        devices += each.considered
        for refusal in each.refusals:
            # That a device is of another class is no news to whoever asked.
            if refusal.cause is Cause.SELECTOR and _is_of_class(refusal.detail):
                devices -= len(refusal.devices)
            else:
                counts[refusal.cause] += len(refusal.devices)
    name = claim.rpartition("/")[2]
    if not devices:
        return f"Claim {name}, request {request}: no node has a device of its class"
    wanted = "all" if told[0].wanted is None else told[0].wanted
    head = f"Claim {name}, request {request}, wants {wanted} on one node"
    if not counts:
        return f"{head}: no node has so many"
    [(cause, number)] = counts.most_common(1)
    return f"{head}: {number} of {devices} devices of its class are {_WORDS.get(cause, cause.value)}"


def _is_of_class(detail: str) -> bool:
    """The allocator tells whose selector it was: `selector #0 of class gpu is false: …`."""
    return " of class " in detail.partition(":")[0]
