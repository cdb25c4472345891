"""What must hold of a choice when it is made: devices that were allocated, a pod that was bound.

In:  a claim that has just got its devices, a pod that has just got its node, as plain JSON.
Out: what is wrong with it, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from drakit.api.objects.plain import Plain
from drakit.simulate.rules.promises import BINDING, SHARES, TAINTS
from drakit.simulate.workload import CPU, CPUS, LASTING

if TYPE_CHECKING:
    from drakit.simulate.rules.judge import Judge


def wrong_devices(claim: Plain, judge: Judge) -> Iterator[str]:
    """Devices that do not keep to the claim's constraints, or are tainted in a way that it does not tolerate."""
    name = claim["metadata"]["name"]
    results = claim["status"]["allocation"]["devices"].get("results") or ()
    found = [judge.devices.get((each["driver"], each["pool"], each["device"]), {}) for each in results]
    for constraint in (claim.get("spec") or {}).get("devices", {}).get("constraints") or ():
        attribute = constraint.get("matchAttribute", "").partition("/")[2]
        if attribute and len({str(each.get("attributes", {}).get(attribute)) for each in found}) > 1:
            yield f"the devices of claim {name} do not have the same {attribute}"
    for result, device in zip(results, found, strict=True):
        place = result["driver"], result["pool"], result["device"]
        lasting = any(each["key"] == LASTING for each in device.get("taints") or ())
        tolerated = result.get("tolerations") or result.get("adminAccess")
        if lasting and not tolerated and judge.gates.asked(TAINTS, place):
            yield f"claim {name} got {result['device']}, which is tainted"


def wrong_users(claim: Plain, judge: Judge) -> Iterator[str]:
    """A claim of a group that is reserved for one of its pods."""
    users = {each["uid"] for each in (claim.get("status") or {}).get("reservedFor") or () if each["resource"] == "pods"}
    name = claim["metadata"]["name"]
    for pod in judge.objects["pods"].values() if users else ():
        if pod["metadata"]["uid"] in users and name in group_claims(pod, judge).values():
            yield f"claim {name} is its group's, and is reserved for pod {pod['metadata']['name']}"


def group_claims(pod: Plain, judge: Judge) -> dict[str, str]:
    """The claims that a pod shares with its group, by entry; none for an entry whose claim is not made yet."""
    group = judge.group(pod)
    if group is None:
        return {}
    statuses = (group.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {each["name"]: each.get("resourceClaimName") for each in statuses}
    mine = pod["spec"].get("resourceClaims") or ()
    shared = [each for each in group["spec"].get("resourceClaims") or () if each in mine]
    return {each["name"]: each.get("resourceClaimName") or made.get(each["name"]) or "" for each in shared}


def bound_too_early(pod: Plain, judge: Judge) -> Iterator[str]:
    """A pod whose devices are not ready to be bound, or whose gang is not complete."""
    name = pod["metadata"]["name"]
    for claim in judge.claims_of(pod) if judge.gates.asked(BINDING) else ():
        status = (claim or {}).get("status") or {}
        for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ():
            said = [each for each in status.get("devices") or () if each["device"] == result["device"]]
            true = {
                each["type"] for device in said for each in device.get("conditions") or () if each["status"] == "True"
            }
            if not true.issuperset(result.get("bindingConditions") or ()):
                yield f"pod {name} is bound, and {result['device']} is not ready"
    yield from _gang_too_small(pod, judge)


def _gang_too_small(pod: Plain, judge: Judge) -> Iterator[str]:
    group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if not group or group in judge.scattered:
        return
    least = gangs(judge).get(group, 0)
    there = len(members(judge, group))
    if there < least:
        yield f"a pod of gang {group} is bound, and only {there} of {least} are there"


def gangs(judge: Judge) -> dict[str, int]:
    """How many pods each gang needs at least."""
    return {
        each["metadata"]["name"]: each["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for each in judge.objects["podgroups"].values()
        if "gang" in each["spec"]["schedulingPolicy"]
    }


def members(judge: Judge, group: str) -> list[Plain]:
    pods = judge.objects["pods"].values()
    return [each for each in pods if (each["spec"].get("schedulingGroup") or {}).get("podGroupName") == group]


def overcommitted(pod: Plain, judge: Judge, *, bound: bool) -> Iterator[str]:
    """A node whose processors are given away twice: by pods, and by devices that are parts of the node.

    A scheduler may give a share that a server without the gate of shares makes the whole. Where that could be, wholes
    count for a pod that has just been bound, once everybody has the gate again.
    """
    node = pod["spec"]["nodeName"]
    whole = judge.gates.always(SHARES) or (bound and _cpus_asked(pod) > 0 and judge.gates.asked(SHARES))
    taken = cpus_taken(judge, node, whole=CPUS if whole else 0)
    if taken > CPUS:
        yield f"{taken} of the {CPUS} processors of {node} are taken"


def cpus_taken(judge: Judge, node: str, *, whole: int = CPUS) -> int:
    """`whole` is what a claim counts for that has all processors."""
    pods = [each for each in judge.objects["pods"].values() if each["spec"].get("nodeName") == node]
    living = [each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    uids = {each["metadata"]["uid"] for each in living}
    given = sum(_cpus_of(claim, uids, whole) for claim in judge.objects["resourceclaims"].values())
    return given + sum(map(_cpus_asked, living))


def _cpus_asked(pod: Plain) -> int:
    containers = pod["spec"].get("containers") or ()
    return sum(int((each.get("resources") or {}).get("requests", {}).get("cpu", 0)) for each in containers)


def _cpus_of(claim: Plain, pods: set[str], whole: int) -> int:
    """What a claim takes of the node of these pods, if they have it."""
    status = claim.get("status") or {}
    if not pods & {each["uid"] for each in status.get("reservedFor") or ()}:
        return 0
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    shares = [each for each in results if each["driver"] == CPU]
    return sum(
        int((each.get("consumedCapacity") or {}).get("cpu", 0)) if each.get("shareID") else whole for each in shares
    )
