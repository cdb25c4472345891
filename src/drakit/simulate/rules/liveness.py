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
from drakit.simulate.rules.choices import cpus_taken, gangs, group_claims, members
from drakit.simulate.rules.devices import CounterKey, counters_of
from drakit.simulate.rules.judge import ENDED, Judge, group_of
from drakit.simulate.rules.promises import Place
from drakit.simulate.workload import CPUS, EXTENDED, GPU, NEEDS

_TOLD = {
    "taints": "taints", "consumes_counters": "consumesCounters", "binding_conditions": "bindingConditions",
    "capacity": "capacity", "allow_multiple_allocations": "allowMultipleAllocations",
}  # fmt: skip
"""Fields of a device that come and go with gates and faults, here and in JSON."""


def unfinished(judge: Judge) -> list[str]:
    """Empty when all is well."""
    return [
        *_pods(judge), *_torn_gangs(judge), *_claims(judge), *_owned_claims(judge), *_devices(judge), *_slices(judge),
        *(f"namespace {each} is being deleted and does not go" for each in judge.namespaces.ending()),
    ]  # fmt: skip


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
        elif (group := group_of(pod)) and group in gangs(judge):
            if _gang_fits(judge, group):
                yield f"gang {group} is pending and fits"
        elif (node := _place(judge, pod)) is not None:
            yield f"pod {name} is pending and fits on {node}"


def _gang_fits(judge: Judge, group: str) -> bool:
    """Whether there is a device for each pod of a gang that waits, and the gang is complete."""
    there = members(judge, group)
    pending = [each for each in there if not each["spec"].get("nodeName")]
    claims = [claim for each in pending for claim in judge.claims_of(each)]
    if len(there) < gangs(judge)[group] or not all(map(_is_usable, claims)):
        return False
    wanted = {claim["metadata"]["name"] for claim in claims if claim is not None and not _results(claim)}
    held = {place for _, place, _ in judge.uses()}
    devices = [each for node in sorted(judge.machines) for each in _published(judge, node)]
    need = {"driver": GPU}
    free = [place for place, device in devices if place[0] == GPU and place not in held and _suits(device, need)]
    return len(free) >= len(wanted)


def _is_usable(claim: Plain | None) -> bool:
    return claim is not None and not claim["metadata"].get("deletionTimestamp")


def _results(claim: Plain) -> Sequence[Plain]:
    """The devices that a claim has."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


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
    living = {each["metadata"]["uid"] for each in (*_living(judge), *judge.objects["podgroups"].values())}
    for claim in judge.objects["resourceclaims"].values():
        status, name = claim.get("status") or {}, claim["metadata"]["name"]
        users = {each["uid"] for each in status.get("reservedFor") or ()}
        if users - living:
            yield f"claim {name} is reserved for a pod that has ended, or a group that is gone"
        if status.get("allocation") and not users:
            yield f"claim {name} is allocated and nobody has reserved it"
        if claim["metadata"].get("deletionTimestamp") and not users & living:
            yield f"claim {name} is being deleted and does not go"


def _living(judge: Judge) -> list[Plain]:
    """Pods that have not ended."""
    pods = judge.objects["pods"].values()
    return [each for each in pods if (each.get("status") or {}).get("phase") not in ENDED]


def _owned_claims(judge: Judge) -> Iterator[str]:
    """Claims that were made for a pod or a group go with it; pods of a group use the group's."""
    living = {each["metadata"]["uid"] for each in (*_living(judge), *judge.objects["podgroups"].values())}
    for claim in judge.objects["resourceclaims"].values():
        owners = [each for each in claim["metadata"].get("ownerReferences") or () if each.get("controller")]
        if any(each["kind"] in ("Pod", "PodGroup") and each["uid"] not in living for each in owners):
            yield f"claim {claim['metadata']['name']} was made for {owners[0]['name']}, which has ended or is gone"
    for pod in _living(judge):
        made = {
            each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses") or ()
        }
        for entry, name in group_claims(pod, judge).items():
            if name and made.get(entry, name) != name:
                yield f"pod {pod['metadata']['name']} has claim {made[entry]}, and its group has {name}"


def _devices(judge: Judge) -> Iterator[str]:
    """Devices are prepared for claims that living pods of their node have, and for no others."""
    for name, machine in judge.machines.items():
        pods = [each for each in _living(judge) if each["spec"].get("nodeName") == name]
        used = {claim["metadata"]["uid"] for each in pods for claim in judge.claims_of(each) if claim is not None}
        for hardware in machine.hardware.values():
            for (_, device), users in hardware.in_use.items():
                for uid in sorted(users.keys() - used):
                    yield f"device {device} of {name} is prepared for claim {uid}, which no pod there has"


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
    if pod["spec"].get("schedulingGates") or (group_of(pod) and judge.group(pod) is None):
        return None
    claims = list(judge.claims_of(pod))
    if not all(map(_is_usable, claims)):
        return None
    needs = json.loads(pod["metadata"]["annotations"][NEEDS])
    if any(_results(each) for each in claims if each is not None):
        return _node_of(judge, claims, needs)
    if not claims:
        if EXTENDED not in json.dumps(pod["spec"]["containers"]):
            return None
        limited = judge.quota is not None and pod["metadata"]["namespace"] == "default"
        if limited and judge.claims_in("default") >= (judge.quota or 0):
            return None  # the claim that the scheduler would make for it may not be made
        needs = [{"driver": GPU, "count": 1}]
    for node in sorted(judge.machines):
        if _fits(judge, node, needs):
            return node
    return None


def _node_of(judge: Judge, claims: Sequence[Plain | None], needs: Sequence[Mapping[str, Any]]) -> str | None:
    """The node where a pod's claim has its devices already, if there are processors for the pod."""
    pools = {each["pool"] for claim in claims if claim is not None for each in _results(claim)}
    there = [node for node in sorted(judge.machines) if pools == {node}]
    asked = sum(each.get("cpus", 0) for each in needs)
    return next((node for node in there if not asked or asked + cpus_taken(judge, node) <= CPUS), None)


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
    taken: Counter[CounterKey] = Counter()
    for place in [*chosen, *(place for _, place, _ in judge.uses())]:
        for key, amount in counters_of(place, judge.devices.get(place, {})):
            taken[key] += amount
    return all(amount <= judge.counters.get(key, 0) for key, amount in taken.items())


def _room(judge: Judge, place: Place, device: Plain) -> int:
    """What is left of a device: nothing where somebody has it whole."""
    used = [each for _, where, each in judge.uses() if where == place]
    if not all(each.get("shareID") for each in used):
        return 0
    total = sum(int(each["value"]) for each in (device.get("capacity") or {}).values())
    return total - sum(int(amount) for each in used for amount in (each.get("consumedCapacity") or {}).values())
