"""What must hold of a choice when it is made: devices that were allocated, a pod that was bound.

In:  a claim that has just got its devices, a pod that has just got its node, as plain JSON.
Out: what is wrong with it, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from drakit.api.objects.plain import Plain
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
    if "DRADeviceTaints" in judge.loose:
        return
    for result, device in zip(results, found, strict=True):
        lasting = any(each["key"] == LASTING for each in device.get("taints") or ())
        if lasting and not result.get("tolerations") and not result.get("adminAccess"):
            yield f"claim {name} got {result['device']}, which is tainted"


def bound_too_early(pod: Plain, judge: Judge) -> Iterator[str]:
    """A pod whose devices are not ready to be bound, or whose gang is not complete."""
    name = pod["metadata"]["name"]
    for claim in judge.claims_of(pod) if "DRADeviceBindingConditions" not in judge.loose else ():
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


def overcommitted(node: str, judge: Judge) -> Iterator[str]:
    """A node whose processors are given away twice: by pods, and by devices that are parts of the node."""
    taken = cpus_taken(judge, node)
    if taken > CPUS:
        yield f"{taken} of the {CPUS} processors of {node} are taken"


def cpus_taken(judge: Judge, node: str) -> int:
    pods = [each for each in judge.objects["pods"].values() if each["spec"].get("nodeName") == node]
    living = [each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    asked = sum(
        int((container.get("resources") or {}).get("requests", {}).get("cpu", 0))
        for each in living
        for container in each["spec"].get("containers") or ()
    )
    uids = {each["metadata"]["uid"] for each in living}
    return asked + sum(_cpus_of(claim, uids) for claim in judge.objects["resourceclaims"].values())


def _cpus_of(claim: Plain, pods: set[str]) -> int:
    """What a claim takes of the node of these pods, if they have it."""
    status = claim.get("status") or {}
    if not pods & {each["uid"] for each in status.get("reservedFor") or ()}:
        return 0
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return sum(int((each.get("consumedCapacity") or {}).get("cpu", 0)) for each in results if each["driver"] == CPU)
