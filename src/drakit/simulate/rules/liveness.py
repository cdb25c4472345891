"""What must have come to pass once the faults have stopped: nothing is left to do, and nothing was left behind.

In:  the judge's view of the store, and the devices themselves.
Out: what is still not so, in words. A naive search says whether a pod that waits could run: it tries everything.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.simulate.rules.choices import cpus_taken, gangs, members
from drakit.simulate.rules.judge import ENDED, Judge, Place, group_of
from drakit.simulate.workload import CPUS, EXTENDED, GPU, NEEDS

_TOLD = {
    "taints": "taints", "consumes_counters": "consumesCounters", "binding_conditions": "bindingConditions",
    "capacity": "capacity",
}  # fmt: skip
"""Fields of a device that come and go with gates and faults, here and in JSON."""


def unfinished(judge: Judge) -> list[str]:
    """Empty when all is well."""
    return [*_pods(judge), *_torn_gangs(judge), *_claims(judge), *_devices(judge), *_slices(judge)]


def _pods(judge: Judge) -> Iterator[str]:
    for pod in judge.objects["pods"].values():
        status, metadata = pod.get("status") or {}, pod["metadata"]
        name = metadata["name"]
        if metadata.get("deletionTimestamp"):
            yield f"pod {name} is being deleted and does not go"
        elif status.get("phase") in ENDED or status.get("phase") == "Running":
            continue
        elif pod["spec"].get("nodeName"):
            if not _waits_for_restart(status):
                yield f"pod {name} is on {pod['spec']['nodeName']} and does not run"
        elif group := group_of(pod):
            if _gang_fits(judge, group):
                yield f"gang {group} is pending and fits"
        elif (node := _place(judge, pod)) is not None:
            yield f"pod {name} is pending and fits on {node}"


def _gang_fits(judge: Judge, group: str) -> bool:
    """Whether there is a device for each pod of a gang that waits, and the gang is complete."""
    there = members(judge, group)
    pending = [each for each in there if not each["spec"].get("nodeName")]
    if len(there) < gangs(judge).get(group, len(there) + 1) or any(None in judge.claims_of(each) for each in pending):
        return False
    held = {place for _, place, _ in judge.uses()}
    devices = [each for node in sorted(judge.machines) for each in _published(judge, node)]
    need = {"driver": GPU}
    free = [place for place, device in devices if place[0] == GPU and place not in held and _suits(device, need)]
    return len(free) >= len(pending)


def _torn_gangs(judge: Judge) -> Iterator[str]:
    """Gangs of which some pods have a node and others none; not those that a user has deleted from."""
    for group, least in gangs(judge).items():
        there = members(judge, group)
        bound = sum(1 for each in there if each["spec"].get("nodeName"))
        if group not in judge.scattered and len(there) >= least and 0 < bound < least:
            yield f"{bound} pods of gang {group} are bound, and it needs {least}"


def _waits_for_restart(status: Plain) -> bool:
    return any(
        (each.get("state") or {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
        for each in status.get("containerStatuses") or ()
    )


def _claims(judge: Judge) -> Iterator[str]:
    living = {
        each["metadata"]["uid"]
        for each in judge.objects["pods"].values()
        if (each.get("status") or {}).get("phase") not in ENDED
    }
    for claim in judge.objects["resourceclaims"].values():
        status, name = claim.get("status") or {}, claim["metadata"]["name"]
        users = {each["uid"] for each in status.get("reservedFor") or ()}
        if users - living:
            yield f"claim {name} is reserved for a pod that has ended"
        if status.get("allocation") and not users:
            yield f"claim {name} is allocated and nobody has reserved it"
        if claim["metadata"].get("deletionTimestamp") and not users & living:
            yield f"claim {name} is being deleted and does not go"


def _devices(judge: Judge) -> Iterator[str]:
    """Devices are prepared for claims that living pods of their node have, and for no others."""
    reserved = {
        each["metadata"]["uid"]
        for each in judge.objects["resourceclaims"].values()
        if (each.get("status") or {}).get("reservedFor")
    }
    for name, machine in judge.machines.items():
        for hardware in machine.hardware.values():
            for (_, device), users in hardware.in_use.items():
                for uid in users.keys() - reserved:
                    yield f"device {device} of {name} is prepared for claim {uid}, which nobody has"


def _slices(judge: Judge) -> Iterator[str]:
    """The slices say what is there: every device, with its taints, counters and binding conditions."""
    for name, machine in judge.machines.items():
        published = dict(_published(judge, name))
        for hardware in machine.hardware.values():
            for pool in hardware.published():
                for device in pool.devices:
                    said = published.get((hardware.driver, pool.name, device.name))
                    if said is None:
                        yield f"{device.name} of {name} is not published"
                    elif any(bool(getattr(device, own)) != bool(said.get(wire)) for own, wire in _TOLD.items()):
                        yield f"{device.name} of {name} is not published as it is"


# The naive search


def _place(judge: Judge, pod: Plain) -> str | None:
    """A node on which the pod fits, tried device by device; None when there is none, or its claims are not there."""
    if pod["spec"].get("schedulingGates"):
        return None
    claims = list(judge.claims_of(pod))
    if any(each is None or (each.get("status") or {}).get("allocation") for each in claims):
        return None
    needs = json.loads(pod["metadata"]["annotations"][NEEDS])
    if not claims:
        if EXTENDED not in json.dumps(pod["spec"]["containers"]):
            return None
        if judge.quota is not None and len(judge.objects["resourceclaims"]) >= judge.quota:
            return None  # the claim that the scheduler would make for it may not be made
        needs = [{"driver": GPU, "count": 1}]
    for node in sorted(judge.machines):
        if _fits(judge, node, needs):
            return node
    return None


def _fits(judge: Judge, node: str, needs: Sequence[Mapping[str, Any]]) -> bool:
    if sum(each.get("cpus", 0) for each in needs) + cpus_taken(judge, node) > CPUS:
        return False
    return all(_fits_one(judge, node, each) for each in needs)


def _fits_one(judge: Judge, node: str, need: Mapping[str, Any]) -> bool:
    published = {place: device for place, device in _published(judge, node) if place[0] == need["driver"]}
    if "bandwidth" in need:
        return any(_room(judge, place, device) >= need["bandwidth"] for place, device in published.items())
    held = {place for _, place, _ in judge.uses()}
    free = {place: device for place, device in published.items() if place not in held and _suits(device, need)}
    return any(_together(judge, chosen, free, need) for chosen in itertools.combinations(sorted(free), need["count"]))


def _published(judge: Judge, node: str) -> Iterator[tuple[Place, Plain]]:
    """The devices of a node, of pools whose slices of the newest generation are all there."""
    slices = [each["spec"] for each in judge.objects["resourceslices"].values() if each["spec"].get("nodeName") == node]
    for pool in {(each["driver"], each["pool"]["name"]) for each in slices}:
        mine = [each for each in slices if (each["driver"], each["pool"]["name"]) == pool]
        newest = max(each["pool"]["generation"] for each in mine)
        current = [each for each in mine if each["pool"]["generation"] == newest]
        if len(current) == current[0]["pool"]["resourceSliceCount"]:
            for each in current:
                for device in each.get("devices") or ():
                    yield (*pool, device["name"]), device


def _suits(device: Plain, need: Mapping[str, Any]) -> bool:
    attributes = device.get("attributes") or {}
    if device.get("taints") and not need.get("tolerates"):
        return False
    if "model" in need and attributes["model"]["string"] != need["model"]:
        return False
    return "size" not in need or attributes["size"]["int"] == need["size"]


def _together(judge: Judge, chosen: Sequence[Place], free: Mapping[Place, Plain], need: Mapping[str, Any]) -> bool:
    if need.get("same") and len({free[each]["attributes"][need["same"]]["string"] for each in chosen}) > 1:
        return False
    taken: Counter[tuple[str, str, str, str]] = Counter()
    for place in [*chosen, *(place for _, place, _ in judge.uses())]:
        for each in judge.devices.get(place, {}).get("consumesCounters", ()):
            for name, counter in each["counters"].items():
                taken[place[0], place[1], each["counterSet"], name] += int(counter["value"])
    return all(amount <= judge.counters.get(key, 0) for key, amount in taken.items())


def _room(judge: Judge, place: Place, device: Plain) -> int:
    total = sum(int(each["value"]) for each in (device.get("capacity") or {}).values())
    used = [each.get("consumedCapacity") or {} for _, where, each in judge.uses() if where == place]
    return total - sum(int(amount) for each in used for amount in each.values())
