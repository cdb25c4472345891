"""Recorded and ours, side by side.

In:  the steps of a flow, what the agent did.
Out: differences, as sentences.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.conformance.nodeflows.names import Uids
from tests.conformance.nodeflows.rules import (
    explains_extra_event,
    explains_extra_state,
    explains_missing_event,
    normal_call,
    normal_event,
    normal_state,
)
from tests.conformance.nodeflows.runtime import CriCall
from tests.conformance.nodeflows.scripted import Call

Plain = dict[str, Any]
_DRA = ("NodePrepareResources", "NodeUnprepareResources")


def compare_calls(steps: Sequence[Plain], calls: Sequence[Call], uids: Uids) -> list[str]:
    """Per instance of a driver: methods, contents, service and deadline, in order."""
    recorded: dict[tuple[str, str], list[Plain]] = {}
    for step in without_repeats(steps):
        if step.get("saw") == "driver call" and not step["method"].endswith(".send"):
            call = normal_call(step)
            if call is not None:
                recorded.setdefault((call["driver"], call.get("instance", "")), []).append(_shown_call(call))
    ours: dict[tuple[str, str], list[Plain]] = {}
    for made in calls:
        ours.setdefault((made.driver, made.instance), []).append(_our_call(made, uids))
    problems = []
    failed_starts = sum(1 for step in steps if step.get("saw") == "kubelet process" and step.get("exit_code"))
    for key in recorded.keys() | ours.keys():
        theirs, mine = recorded.get(key, []), ours.get(key, [])
        unhealthy = not any(each["method"].startswith("NodeWatch") for each in theirs)
        problems += _at_most_once(mine, key) if unhealthy else []
        mine = _without_registrations(mine, failed_starts)
        if unhealthy:
            mine = [each for each in mine if each["method"] != "NodeWatchResources"]
        for method in _concurrent(theirs, mine):
            theirs = [each for each in theirs if each["method"] != method]
            mine = [each for each in mine if each["method"] != method]
        if theirs != mine:
            problems.append(f"calls to {'/'.join(filter(None, key))}: recorded {_lines(theirs)}, ours {_lines(mine)}")
    return problems


def _without_registrations(mine: list[Plain], count: int) -> list[Plain]:
    """Where a kubelet did not start, no plugin could register with it; with ours it did."""
    kept = list(mine)
    for _ in range(count):
        for index in range(2, len(kept) - 1):
            pair = kept[index : index + 2]
            if [each["method"] for each in pair] == ["GetInfo", "NotifyRegistrationStatus"]:
                del kept[index : index + 2]
                break
    return kept


def _concurrent(theirs: list[Plain], mine: list[Plain]) -> list[str]:
    """NotifyRegistrationStatus and the start of a health stream come at the same moment, in any order."""
    same = [each for each in theirs if each["method"] == "NodeWatchResources"]
    return ["NodeWatchResources"] if same == [m for m in mine if m["method"] == "NodeWatchResources"] else []


def _at_most_once(mine: list[Plain], key: tuple[str, str]) -> list[str]:
    asked = sum(1 for each in mine if each["method"] == "NodeWatchResources")
    registered = sum(1 for each in mine if each["method"] == "GetInfo")
    return [f"{key[0]} was asked for its health {asked} times"] if asked > max(registered, 1) else []


def without_repeats(steps: Sequence[Plain]) -> Iterator[Plain]:
    """A kubelet that saw two events of one file registers the plugin twice, without it having gone; once is enough."""
    registered: set[tuple[str, str]] = set()
    for step in steps:
        if "do" in step:
            registered.clear()
        about = (step.get("driver", ""), step.get("instance", "")) if step.get("saw") == "driver call" else ("", "")
        if about in registered and step["method"] in ("GetInfo", "NotifyRegistrationStatus"):
            continue
        yield step
        if step.get("method") == "NotifyRegistrationStatus" and step["request"]["plugin_registered"]:
            registered.add(about)


def _shown_call(call: Plain) -> Plain:
    shown = {"method": call["method"], "request": call.get("request")}
    if call["method"] in _DRA:
        shown |= {"service": call["service"], "deadline": call["deadline_s"]}
    return shown


def _our_call(call: Call, uids: Uids) -> Plain:
    shown = {"method": call.method, "request": uids.recorded(call.request)}
    if call.method in _DRA:
        shown |= {"service": call.service, "deadline": call.deadline}
    return shown


def compare_cri(steps: Sequence[Plain], calls: Sequence[CriCall]) -> list[str]:
    """Per pod: methods, attempts, CDI ids, timeouts, in order."""
    problems = []
    rows = [step for step in steps if step.get("saw") == "CRI call"]
    for pod in {row["pod"] for row in rows} | {call.pod for call in calls}:
        theirs = _ordered([_shown_cri(row) for row in rows if row["pod"] == pod])
        mine = _ordered([_our_cri(call) for call in calls if call.pod == pod])
        if theirs != mine:
            problems.append(f"runtime calls of {pod}: recorded {_lines(theirs)}, ours {_lines(mine)}")
    return problems


def _shown_cri(row: Plain) -> Plain:
    shown: Plain = {key: row[key] for key in ("method", "container", "attempt", "timeout", "CDI_devices") if key in row}
    if "CDI_devices" in shown:
        shown["CDI_devices"] = sorted(shown["CDI_devices"])  # between claims and drivers the kubelet has no order
    return shown


def _our_cri(call: CriCall) -> Plain:
    made: Plain = {"method": call.method} | ({"container": call.container} if call.container else {})
    made |= call.about or {}
    if "CDI_devices" in made:
        made["CDI_devices"] = sorted(made["CDI_devices"])
    return made


def _ordered(calls: list[Plain]) -> list[Plain]:
    """Containers that are stopped together are stopped in any order."""
    ordered: list[Plain] = []
    together: list[Plain] = []
    for call in calls:
        if call["method"] == "StopContainer":
            together.append(call)
            continue
        ordered += sorted(together, key=str)
        together = []
        ordered.append(call)
    return ordered + sorted(together, key=str)


def compare_order(steps: Sequence[Plain], merged: Sequence[Call | CriCall], flow: Plain) -> list[str]:
    """With one pod: how calls to drivers and to the runtime follow each other."""
    pods = [each for each in flow["setup"]["manifests"] if each["kind"] == "Pod"]
    if len(pods) != 1:
        return []
    theirs = [
        step["method"]
        for step in steps
        if step.get("saw") == "CRI call" or (step.get("saw") == "driver call" and step["method"] in _DRA)
    ]
    mine = [each.method for each in merged if isinstance(each, CriCall) or each.method in _DRA]
    return [] if theirs == mine else [f"order of calls: recorded {theirs}, ours {mine}"]


def compare_states(flow: Plain, states: dict[str, list[Plain]]) -> list[str]:
    """Recorded states come in their order; a state that only we have must be one that was passed through."""
    problems = []
    recorded: dict[str, list[Plain]] = {}
    normal = normal_of(flow)
    for step in flow["steps"]:
        if step.get("saw") == "pod status":
            recorded.setdefault(step["pod"], []).append(normal(step["status"]))
    for pod, sequence in recorded.items():
        theirs = _distinct(_without_relapse(sequence))
        mine = _distinct([normal(each) for each in states.get(pod, ())])
        problems += [f"states of {pod}: {each}" for each in _align(theirs, mine)]
    return problems


def _without_relapse(states: Sequence[Plain]) -> list[Plain]:
    """A pod that a kubelet turns away may lose all conditions for a moment, before it is told to have failed."""
    kept: list[Plain] = []
    for state in states:
        if not (state["phase"] == "Pending" and not state["conditions"] and any(each["conditions"] for each in kept)):
            kept.append(state)
    return kept


def normal_of(flow: Plain) -> Callable[[Plain], Plain]:
    """How states of this flow's pods are compared."""
    return _without_early_devices if _pods_share_claims(flow) else normal_state


def _pods_share_claims(flow: Plain) -> bool:
    """Whether two pods name one claim: the one may show what was prepared for the other, or be too early for it."""
    named: list[str] = []
    for manifest in flow["setup"]["manifests"]:
        if manifest["kind"] == "Pod":
            claims = manifest["spec"].get("resourceClaims") or ()
            of_templates = (manifest.get("status") or {}).get("resourceClaimStatuses") or ()
            direct = [each["resourceClaimName"] for each in claims if "resourceClaimName" in each]
            named += {*direct, *(each["resourceClaimName"] for each in of_templates)}
    return len(named) > len(set(named))


def _without_early_devices(state: Plain) -> Plain:
    """Without the devices of containers that never ran."""
    made = normal_state(state)
    for key in ("containerStatuses",):
        for status in made.get(key) or ():
            ended = status["state"].get("terminated") or {}
            if "waiting" in status["state"] or ended.get("reason") == "ContainerStatusUnknown":
                status.pop("allocatedResourcesStatus", None)
    return made


def _align(theirs: list[Plain], mine: list[Plain]) -> list[str]:
    place, before = 0, None
    problems = []
    for index, state in enumerate(mine):
        if place < len(theirs) and state == theirs[place]:
            place += 1
        elif not (_passed_through(mine, index, theirs[place:]) or explains_extra_state(state, before)):
            problems.append(f"only ours: {json.dumps(state)[:700]}")
        before = state
    problems += [f"only recorded: {json.dumps(state)[:700]}" for state in theirs[place:]]
    return problems


def _passed_through(mine: list[Plain], index: int, ahead: list[Plain]) -> bool:
    """The kubelet writes statuses beside its work: one that is overtaken by the next is never seen.

    It must lead to a recorded state in one or two steps of ours, and be one on the way up: a sandbox, an init
    container or a first start that was over before anybody looked.
    """
    return any(state in ahead[:1] for state in mine[index + 1 : index + 4]) and _is_on_the_way(mine[index])


def _is_on_the_way(state: Plain) -> bool:
    statuses = [*(state.get("initContainerStatuses") or ()), *(state.get("containerStatuses") or ())]
    moving = any(not status["ready"] for status in statuses)
    return state["phase"] in ("Pending", "Running") and moving


def _distinct(states: Iterable[Plain]) -> list[Plain]:
    kept: list[Plain] = []
    for state in states:
        if not kept or kept[-1] != state:
            kept.append(state)
    return kept


def compare_events(steps: Sequence[Plain], events: Iterable[tuple[str, str, str, str, str]]) -> list[str]:
    recorded = {
        normal_event((s["object"], s["type"], s["reason"], s["message"], s.get("fieldPath", "")))
        for s in steps
        if s.get("saw") == "event"
    }
    ours = {normal_event(each) for each in events if each[0].startswith("Pod/")}
    problems = [f"event only recorded: {e}" for e in sorted(recorded - ours) if not explains_missing_event(e)]
    extra = [e for e in sorted(ours - recorded) if not explains_extra_event(e) and not _came_too_late(e, steps)]
    return problems + [f"event only ours: {e}" for e in extra]


def _came_too_late(event: tuple[str, str, str, str, str], steps: Sequence[Plain]) -> bool:
    """The recording ended before the event of a call that it has: nothing was done or seen after that call."""
    about, _, reason, _, path = event
    method = {"Pulled": "CreateContainer", "Created": "CreateContainer", "Started": "StartContainer"}.get(reason)
    last = max((index for index, step in enumerate(steps) if "do" in step), default=-1)
    return any(
        step.get("saw") == "CRI call"
        and (step["method"], f"Pod/{step['pod']}") == (method, about)
        and f"{{{step['container']}}}" in path
        for step in steps[last + 1 :]
    )


def compare_pod_resources(recorded: Plain, ours: Plain, flow: Plain, t: float) -> list[str]:
    """The same pods, containers and claims; devices of the requests that a container names, with their own CDI ids."""
    theirs_pods = [
        *recorded["List"],
        *([recorded["Get"]["pod_resources"]] if "pod_resources" in recorded["Get"] else []),
    ]
    our_pods = [*ours["List"], *([ours["Get"]["pod_resources"]] if "pod_resources" in ours["Get"] else [])]
    problems = []
    if recorded["Get"].get("message") != ours["Get"].get("message"):
        problems.append(f"at {t}: PodResources Get: recorded {recorded['Get']}, ours {ours['Get']}")
    theirs, mine = ([_containers(pod) for pod in pods] for pods in (theirs_pods, our_pods))
    if [list(each) for each in theirs] != [list(each) for each in mine]:
        return [*problems, f"at {t}: PodResources: recorded {theirs_pods}, ours {our_pods}"]
    for their_pod, my_pod in zip(theirs, mine, strict=True):
        for key, their_claims in their_pod.items():
            named = _requests(flow, key[1], key[2])
            problems += [f"at {t}: PodResources {key}: {each}" for each in _claims(their_claims, my_pod[key], named)]
    return problems


def _containers(pod: Plain) -> dict[tuple[str, str, str], dict[str, list[Plain]]]:
    return {
        (pod["namespace"], pod["name"], container["name"]): {
            each["claim_name"]: each.get("claim_resources", []) for each in container.get("dynamic_resources", ())
        }
        for container in pod.get("containers", ())
    }


def _requests(flow: Plain, pod: str, container: str) -> bool:
    """Whether the container names requests, rather than whole claims."""
    for manifest in flow["setup"]["manifests"]:
        if manifest["kind"] == "Pod" and manifest["metadata"]["name"] == pod:
            for each in (*manifest["spec"].get("initContainers", ()), *manifest["spec"]["containers"]):
                if each["name"] == container:
                    resources = each.get("resources") or {}
                    claims = resources.get("claims") or ()
                    return any("request" in claim for claim in claims) or bool(resources.get("limits"))
    return False


def _claims(theirs: dict[str, list[Plain]], mine: dict[str, list[Plain]], named: bool) -> list[str]:
    if theirs.keys() != mine.keys():
        return [f"claims: recorded {list(theirs)}, ours {list(mine)}"]
    problems = []
    for claim, devices in theirs.items():
        known = {_device_key(each): each for each in devices}
        for each in mine[claim]:
            there = known.get(_device_key(each))
            if there is None or not _is_end(each.get("cdi_devices", []), there.get("cdi_devices", [])):
                problems.append(f"device {each} of claim {claim}: recorded {there}")
        if not named and {_device_key(each) for each in mine[claim]} != known.keys():
            problems.append(f"claim {claim}: recorded {devices}, ours {mine[claim]}")
    return problems


def _device_key(device: Plain) -> tuple[Any, ...]:
    return tuple(device.get(key) for key in ("driver_name", "pool_name", "device_name", "share_id"))


def _is_end(mine: list[Plain], theirs: list[Plain]) -> bool:
    """A kubelet lists the ids of all devices so far; a device's own are the last ones."""
    return not mine or theirs[-len(mine) :] == mine


def compare_metrics(step: Plain, samples: Iterable[tuple[str, dict[str, str], float]]) -> list[str]:
    """Counts are equal; failed calls may be more, as we try again sooner."""
    ours = {(name, tuple(sorted(labels.items()))): value for name, labels, value in samples}
    problems = []
    for line in step["metrics"]:
        name, labels, value = parse_line(line)
        found = ours.get((name, tuple(sorted(labels.items()))))
        retried = labels.get("grpc_status_code", "OK") != "OK"
        if found is None or (found < value if retried else found != value):
            problems.append(f"at {step['t']}: metrics: recorded {line}, ours {found}")
    return problems


def parse_line(line: str) -> tuple[str, dict[str, str], float]:
    name, _, rest = line.partition("{")
    inside, _, value = rest.rpartition("} ")
    if not rest:
        name, _, value = line.rpartition(" ")
        return name, {}, float(value)
    labels = dict(part.split("=", 1) for part in _split(inside))
    return name, {key: text.strip('"') for key, text in labels.items()}, float(value)


def _split(inside: str) -> list[str]:
    parts, quoted, current = [], False, ""
    for character in inside:
        quoted ^= character == '"'
        if character == "," and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _lines(calls: list[Plain]) -> str:
    return "\n    " + "\n    ".join(json.dumps(call) for call in calls)
