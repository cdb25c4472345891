"""Where drakit differs from the recorded kubelet on purpose, by rule, with the reason.

Each rule looks at contents: none knows a flow, and none passes a flow over. What no rule explains is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Plain = dict[str, Any]
Event = tuple[str, str, str, str, str]
"""Object, type, reason, message, field path."""

_PASSING = r"is not registered$|transport: Error while dialing"
_WAITS = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True, slots=True)
class Rule:
    """A deliberate difference. What a rule has no function for, it leaves alone."""

    title: str
    why: str
    state: Callable[[Plain], Plain] | None = None
    """Both sides' pod states, with what differs taken out."""
    extra_state: Callable[[Plain, Plain | None], bool] | None = None
    """Whether a state that only we have is explained, given the one before it."""
    missing_event: Callable[[Event], bool] | None = None
    """Whether an event that only the kubelet has is explained."""
    extra_event: Callable[[Event], bool] | None = None
    event: Callable[[Event], Event] | None = None
    call: Callable[[Plain], Plain | None] | None = None
    """A recorded call as we make it; none for one that we do not make."""


def _without_causes(state: Plain) -> Plain:
    def cleared(status: Plain) -> Plain:
        waiting = (status["state"] or {}).get("waiting")
        if waiting and waiting.get("reason") in _WAITS:
            return {**status, "state": {"waiting": {"reason": waiting["reason"]}}}
        return status

    return _with_containers(state, cleared)


def _with_containers(state: Plain, change: Callable[[Plain], Plain]) -> Plain:
    keys = ("initContainerStatuses", "containerStatuses")
    return {**state, **{key: [change(each) for each in state[key]] for key in keys if key in state}}


def _sorted_health(state: Plain) -> Plain:
    def ordered(status: Plain) -> Plain:
        if "allocatedResourcesStatus" not in status:
            return status
        entries = [
            {**each, "resources": sorted(each["resources"], key=lambda resource: str(resource["resourceID"]))}
            for each in status["allocatedResourcesStatus"]
        ]
        return {**status, "allocatedResourcesStatus": sorted(entries, key=lambda entry: str(entry["name"]))}

    return _with_containers(state, ordered)


def _without_health(state: Plain) -> Plain:
    def cleared(status: Plain) -> Plain:
        entries = [
            {**each, "resources": [{"resourceID": resource["resourceID"]} for resource in each["resources"]]}
            for each in status.get("allocatedResourcesStatus") or ()
        ]
        return {**status, "allocatedResourcesStatus": entries}

    return _with_containers(state, cleared)


def _without_devices(state: Plain) -> Plain:
    return _with_containers(state, lambda status: {k: v for k, v in status.items() if k != "allocatedResourcesStatus"})


def _has_devices(state: Plain) -> bool:
    return any("allocatedResourcesStatus" in status for status in state.get("containerStatuses") or ())


def _health_only(state: Plain, before: Plain | None) -> bool:
    return before is not None and _without_health(state) == _without_health(before)


def _devices_lost(state: Plain, before: Plain | None) -> bool:
    same = before is not None and _without_devices(state) == _without_devices(before)
    return same and before is not None and _has_devices(state) != _has_devices(before)


def _once(call: Plain) -> Plain:
    claims = (call.get("request") or {}).get("claims")
    if not claims:
        return call
    distinct = [claim for index, claim in enumerate(claims) if claim not in claims[:index]]
    return {**call, "request": {"claims": distinct}}


def _unless_unimplemented(call: Plain) -> Plain | None:
    unimplemented = call["method"] == "NodeWatchResources" and (call.get("answer") or {}).get("grpc") == "UNIMPLEMENTED"
    return None if unimplemented else call


def _one_image_event(event: Event) -> Event:
    about, type_, reason, message, path = event
    if reason == "Pulled":
        message = re.sub(r'.*image "([^"]*)".*', r"image \1 is there", message)
    return about, type_, reason, message, path


def _turned_away(state: Plain) -> Plain:
    told = str(state.get("message", "")).startswith("Pod was rejected: ")
    if not told and (state.get("phase") != "Failed" or state.get("containerStatuses")):
        return state
    # The kubelet holds the phase back for a while.
    return {**state, "phase": "Failed", "conditions": [], "containerStatuses": []}


RULES: tuple[Rule, ...] = (
    Rule(
        "the cause is shown with the container",
        "a container that waits tells why, in its message; a kubelet tells it in the event alone",
        state=_without_causes,
    ),
    Rule(
        "health has no order between drivers",
        "a kubelet goes through drivers and claims in random order; drakit keeps the order of the allocation",
        state=_sorted_health,
    ),
    Rule(
        "a health timeout is noticed when it is due, and an equal report brings the health back",
        "a kubelet notices at its next resync, and takes an equal report for no change",
        extra_state=_health_only,
    ),
    Rule(
        "a damaged checkpoint is set aside and made anew",
        "a kubelet does not start; until a driver is asked again the devices of a rebuilt claim are not known",
        extra_state=_devices_lost,
    ),
    Rule(
        "a failed unprepare makes an event",
        "a kubelet only logs it, and the pod hangs without a visible reason",
        extra_event=lambda event: event[2] == "FailedUnprepareDynamicResources",
    ),
    Rule(
        "a broken connection is made again when a call comes",
        "a kubelet's calls fail until gRPC's own reconnect backoff is over, with the dial error of before",
        missing_event=lambda event: "transport: Error while dialing" in event[3],
    ),
    Rule(
        "failures are retried within seconds",
        "a kubelet waits 60 to 90 s: it does not see a driver that is away for less, and a backoff is over by then",
        extra_event=lambda event: (
            event[2] == "BackOff"
            or (event[2] == "FailedPrepareDynamicResources" and bool(re.search(_PASSING, event[3])))
        ),
    ),
    Rule(
        "the server knows at once which claims a node may read",
        "the recorded server's node authorizer lags behind a binding, and refuses the first read",
        missing_event=lambda event: "no relationship found between node" in event[3],
    ),
    Rule(
        "a claim under two names in one pod is sent once",
        "a kubelet sends it twice, takes the one answer for a skipped claim, and never starts or ends the pod",
        call=_once,
    ),
    Rule(
        "a driver without the health service is not asked again",
        "a kubelet asks every 5 s for ever",
        call=_unless_unimplemented,
    ),
    Rule(
        "whether an image had to be pulled depends on the machine",
        "recordings were made on machines with and without the image",
        event=_one_image_event,
        missing_event=lambda event: event[2] == "Pulling",
    ),
    Rule(
        "a pod that is turned away keeps what the scheduler wrote",
        "a kubelet drops the PodScheduled condition, and tells the phase a moment later",
        state=_turned_away,
    ),
)


@dataclass(frozen=True, slots=True)
class Ending:
    """From here on the recording shows what we do not do; what must hold for us instead is checked."""

    title: str
    why: str
    begins: Callable[[Plain, Sequence[Plain], Plain], bool]
    """Whether a step, after those before it, is where the two part; the flow comes third."""
    event: str = ""
    """An event that must have been told by then, as a pattern of its message; empty for none."""
    phase: str = ""
    """The phase that the pod comes to; empty for none."""


def _sent_twice(step: Plain, before: Sequence[Plain], flow: Plain) -> bool:
    del before, flow
    claims = (step.get("request") or {}).get("claims") or []
    return step.get("method") == "NodePrepareResources" and any(c in claims[:i] for i, c in enumerate(claims))


def _crash(step: Plain, before: Sequence[Plain], flow: Plain) -> bool:
    del before, flow
    return step.get("saw") == "kubelet process ended" and any("panic" in line for line in step.get("log") or ())


def _runs_without_resource(step: Plain, before: Sequence[Plain], flow: Plain) -> bool:
    """Whether the kubelet goes on with a pod that asks for an extended resource that nobody provides."""
    if step.get("saw") not in ("CRI call", "pod status") or len(step.get("status", {}).get("conditions", "many")) < 2:
        return False
    pod = next(
        (m for m in flow["setup"]["manifests"] if (m["kind"], m["metadata"]["name"]) == ("Pod", step["pod"])), None
    )
    if pod is None or "extendedResourceClaimStatus" in (pod.get("status") or {}):
        return False
    rows = [row for row in (*before, step) if row.get("saw") == "pod status" and row["pod"] == step["pod"]]
    if any("extendedResourceClaimStatus" in row["status"] for row in rows):
        return False
    containers = (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
    asked = {name for each in containers for name in (each.get("resources") or {}).get("limits") or ()}
    return any("/" in name and not name.startswith("kubernetes.io/") for name in asked)


ENDINGS: tuple[Ending, ...] = (
    Ending(
        "a claim under two names in one pod is sent once",
        "the kubelet's pod never starts; ours runs, and goes when it is deleted",
        _sent_twice,
        phase="Running",
    ),
    Ending(
        "a template claim of somebody else is refused",
        "the kubelet crashes, and again at each start while the pod is there",
        _crash,
        event=r"was not created for Pod .* \(Pod is not owner\)",
    ),
    Ending(
        "an extended resource that the node does not have and no claim provides is refused",
        "the kubelet admits the pod, which then runs without the device that it asked for",
        _runs_without_resource,
        event=r"Node didn't have enough resource: .*, capacity: 0",
        phase="Failed",
    ),
)


def normal_state(state: Plain) -> Plain:
    for rule in RULES:
        if rule.state is not None:
            state = rule.state(state)
    return state


def normal_event(event: Event) -> Event:
    for rule in RULES:
        if rule.event is not None:
            event = rule.event(event)
    return event


def normal_call(call: Plain) -> Plain | None:
    changed: Plain | None = call
    for rule in RULES:
        if rule.call is not None and changed is not None:
            changed = rule.call(changed)
    return changed


def explains_extra_state(state: Plain, before: Plain | None) -> bool:
    return any(rule.extra_state(state, before) for rule in RULES if rule.extra_state is not None)


def explains_missing_event(event: Event) -> bool:
    return any(rule.missing_event(event) for rule in RULES if rule.missing_event is not None)


def explains_extra_event(event: Event) -> bool:
    return any(rule.extra_event(event) for rule in RULES if rule.extra_event is not None)


def titles() -> Iterator[tuple[str, str]]:
    yield from ((rule.title, rule.why) for rule in RULES)
    yield from ((ending.title, ending.why) for ending in ENDINGS)
