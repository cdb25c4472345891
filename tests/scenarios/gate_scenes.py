"""For each gate: something that uses its feature, and what happens to it while the gate is off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from drakit.client import CLAIMS, CLASSES, POD_GROUPS, PODS, POOL_STATUS_REQUESTS, SLICES, TAINT_RULES, Resource
from tests.builders.documents import CLASS, DRIVER, request_of
from tests.builders.manifests import claim, pod_group
from tests.builders.podmanifests import device_class, node, pod, resource_slice

Plain = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """`objects` are made while the gate is on, and `statuses` written; then the pods `placed` have a node.

    `kept` are fields that stay, also when somebody writes to their object with the gate off; `dropped` are new objects
    and the field that goes from them then, `refused` new objects that are not accepted then. `rivals` are made with the
    gate off, `late` when it is on again; their pods wait or have a node, as told. `lost` are statuses of rivals that
    are written with the gate off, and the field that does not arrive.
    """

    gate: str
    objects: tuple[Plain, ...]
    placed: tuple[str, ...] = ("p",)
    statuses: tuple[tuple[Resource[Any], str, Plain], ...] = ()
    kept: tuple[tuple[Resource[Any], str, str], ...] = ()
    dropped: tuple[tuple[Plain, str], ...] = ()
    refused: tuple[Plain, ...] = ()
    rivals: tuple[Plain, ...] = ()
    late: tuple[Plain, ...] = ()
    lost: tuple[tuple[Resource[Any], str, Plain, str], ...] = ()
    bound_while_off: dict[str, bool] = field(default_factory=dict)
    bound_in_the_end: dict[str, bool] = field(default_factory=dict)


def published(name: str, *devices: Plain, **spec: Any) -> Plain:
    made = resource_slice(name, pool=name)
    made["spec"].update({"devices": list(devices), **spec})
    return made


def claim_for(name: str, *requests: Plain, constraints: Any = (), **request: Any) -> Plain:
    return claim(name, *(requests or [request_of(**request)]), constraints=constraints)


def user(name: str, of: str, **others: Any) -> Plain:
    """A pod whose container uses a claim."""
    made = pod(name, claims=[{"name": "g", "resourceClaimName": of}], **others)
    made["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "g"}]
    return made


def asking(name: str, resource: str) -> Plain:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    return made


def pair(name: str, **request: Any) -> tuple[Plain, Plain]:
    """A claim, and a pod that uses it."""
    return claim_for(f"{name}-claim", **request), user(name, f"{name}-claim")


def _shares(amount: str) -> Plain:
    return {"capacity": {"requests": {"memory": amount}}}


def _shared(name: str) -> Plain:
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}


def _part(name: str, size: str) -> Plain:
    return {"name": name, "consumesCounters": [{"counterSet": "all", "counters": {"memory": {"value": size}}}]}


def _partitioned(name: str) -> tuple[Plain, Plain]:
    counters = published(
        f"{name}-counters", sharedCounters=[{"name": "all", "counters": {"memory": {"value": "10Gi"}}}]
    )
    del counters["spec"]["devices"]
    parts = published(f"{name}-parts", _part("half-0", "5Gi"), _part("half-1", "5Gi"), _part("whole", "10Gi"))
    for each in (counters, parts):
        each["spec"]["pool"] = {"name": name, "generation": 1, "resourceSliceCount": 2}
    return counters, parts


def _tainted(name: str) -> Plain:
    return {"name": name, "taints": [{"key": "broken", "effect": "NoSchedule"}]}


def _rule(name: str, device: str) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": name},
        "spec": {"deviceSelector": {"device": device}, "taint": {"key": "broken", "effect": "NoSchedule"}},
    }  # fmt: skip


def _question(name: str) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourcePoolStatusRequest", "metadata": {"name": name},
        "spec": {"driver": DRIVER},
    }  # fmt: skip


def _backed(name: str) -> Plain:
    made = device_class(name)
    made["spec"]["extendedResourceName"] = f"example.com/{name}"
    return made


def _listed(name: str, *numas: int) -> Plain:
    return {"name": name, "attributes": {"numa": {"ints": list(numas)}}}


def _mapped(name: str) -> Plain:
    return {"name": name, "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "3"}}}


def _binding(name: str) -> Plain:
    return {"name": name, "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}


def _first_available(name: str) -> Plain:
    subs = [{"name": "two", "deviceClassName": CLASS, "count": 2}, {"name": "one", "deviceClassName": CLASS}]
    return claim_for(name, {"name": "r", "firstAvailable": subs})


def _gang(name: str, least: int) -> Plain:
    made = pod_group(name, [])
    made["spec"] = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return made


def _device_status(*conditions: Plain, device: str = "d0") -> Plain:
    return {"devices": [{"driver": DRIVER, "pool": "slice", "device": device, "conditions": list(conditions)}]}


def _extended_status() -> Plain:
    mapping = {"containerName": "ctr", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    return {"extendedResourceClaimStatus": {"resourceClaimName": "some", "requestMappings": [mapping]}}


def _taken(name: str) -> Plain:
    taken = {"resourceClaimName": name, "containers": ["ctr"], "resources": {"cpu": "3"}}
    return {"nodeAllocatableResourceClaimStatuses": [taken]}


def _health() -> Plain:
    sick = {"resourceID": "d0", "health": "Unhealthy", "message": "too hot"}
    seen = {"name": "claim:g", "resources": [sick]}
    running = {"name": "ctr", "ready": False, "restartCount": 0, "image": "img", "imageID": ""}
    return {"containerStatuses": [{**running, "allocatedResourcesStatus": [seen]}]}


BASE = (device_class(), node("node-1"))
PLAIN = resource_slice("slice", "d0", "d1")
READY = {
    "type": "ready", "status": "True", "reason": "Attached", "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}  # fmt: skip
HEALTH = "status.containerStatuses.0.allocatedResourcesStatus"

SCENES = (
    Scene(
        "DRAConsumableCapacity",
        (*BASE, published("slice", _shared("d0")), *pair("p", **_shares("6Gi"))),
        kept=(
            (CLAIMS, "p-claim", "spec.devices.requests.0.exactly.capacity"),
            (CLAIMS, "p-claim", "status.allocation.devices.results.0.consumedCapacity"),
            (CLAIMS, "p-claim", "status.allocation.devices.results.0.shareID"),
            (SLICES, "slice", "spec.devices.0.allowMultipleAllocations"),
        ),
        dropped=(
            (claim_for("new", **_shares("1Gi")), "spec.devices.requests.0.exactly.capacity"),
            (published("new", _shared("d9"), nodeName="elsewhere"), "spec.devices.0.allowMultipleAllocations"),
        ),
        rivals=pair("rival"),
        late=(*pair("large", **_shares("5Gi")), *pair("small", **_shares("4Gi"))),
        bound_while_off={"rival": False},
        bound_in_the_end={"large": False, "small": True},
    ),
    Scene(
        "DRADeviceTaints",
        (*BASE, published("slice", _tainted("d0")), *pair("p", tolerations=[{"operator": "Exists"}])),
        kept=(
            (CLAIMS, "p-claim", "spec.devices.requests.0.exactly.tolerations"),
            (CLAIMS, "p-claim", "status.allocation.devices.results.0.tolerations"),
            (SLICES, "slice", "spec.devices.0.taints"),
        ),
        dropped=((published("new", _tainted("d9"), nodeName="elsewhere"), "spec.devices.0.taints"),),
        rivals=pair("rival"),
        bound_while_off={"rival": False},
        late=(published("more", _tainted("d1")), *pair("late")),
        bound_in_the_end={"rival": False, "late": False},
    ),
    Scene(
        "DRADeviceTaintRules",
        (*BASE, PLAIN, _rule("rule", "d0"), *pair("p")),
        kept=((TAINT_RULES, "rule", "spec.taint"),),
        rivals=pair("rival"),
        bound_while_off={"rival": True},
        late=(resource_slice("more", "d0", pool="more"), *pair("late")),
        bound_in_the_end={"late": False},
    ),
    Scene(
        "DRAExtendedResource",
        (*BASE, PLAIN, _backed("gpu"), asking("p", "example.com/gpu")),
        kept=((CLASSES, "gpu", "spec.extendedResourceName"), (PODS, "p", "status.extendedResourceClaimStatus")),
        dropped=((_backed("new"), "spec.extendedResourceName"),),
        rivals=(asking("rival", "example.com/gpu"),),
        lost=((PODS, "rival", _extended_status(), "status.extendedResourceClaimStatus"),),
        bound_while_off={"rival": False},
        late=(asking("late", "example.com/gpu"),),
        bound_in_the_end={"rival": True, "late": False},
    ),
    Scene(
        "DRAListTypeAttributes",
        (
            *BASE,
            published("slice", _listed("d0", 0, 1), _listed("d1", 2), _listed("d2", 1, 2)),
            claim_for("p-claim", count=2, constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
            user("p", "p-claim"),
        ),
        kept=((SLICES, "slice", "spec.devices.0.attributes.numa.ints"),),
        refused=(published("new", _listed("d9", 0), nodeName="elsewhere"),),
        rivals=pair("rival", count=2),
        bound_while_off={"rival": False},
        late=pair("late"),
        bound_in_the_end={"late": True},
    ),
    Scene(
        "DRANodeAllocatableResources",
        (*BASE, published("slice", *map(_mapped, ("d0", "d1", "d2"))), *pair("p")),
        kept=(
            (SLICES, "slice", "spec.devices.0.nodeAllocatableResourceMappings"),
            (PODS, "p", "status.nodeAllocatableResourceClaimStatuses"),
        ),
        dropped=(
            (published("new", _mapped("d9"), nodeName="elsewhere"), "spec.devices.0.nodeAllocatableResourceMappings"),
        ),
        rivals=(pod("rival", cpu="6"), *pair("uncounted")),
        lost=((PODS, "uncounted", _taken("uncounted-claim"), "status.nodeAllocatableResourceClaimStatuses"),),
        bound_while_off={"rival": True, "uncounted": True},
        late=pair("late"),
        bound_in_the_end={"late": False},
    ),
    Scene(
        "DRAPartitionableDevices",
        (*BASE, *_partitioned("parts"), *pair("p")),
        kept=(
            (SLICES, "parts-counters", "spec.sharedCounters"),
            (SLICES, "parts-parts", "spec.devices.0.consumesCounters"),
        ),
        dropped=((published("new", _part("d9", "1"), nodeName="elsewhere"), "spec.devices.0.consumesCounters"),),
        rivals=(*pair("rival"), *pair("other")),
        bound_while_off={"rival": False, "other": False},
        late=pair("late"),
        bound_in_the_end={"other": True, "rival": False, "late": False},
    ),
    Scene(
        "DRAPrioritizedList",
        (*BASE, PLAIN, _first_available("p-claim"), user("p", "p-claim")),
        kept=((CLAIMS, "p-claim", "spec.devices.requests.0.firstAvailable"),),
        refused=(_first_available("new"),),
        rivals=pair("rival"),
        bound_while_off={"rival": False},
        late=(resource_slice("more", "d0", pool="more"), _first_available("late-claim"), user("late", "late-claim")),
    ),
    Scene(
        "DRAResourceClaimDeviceStatus",
        (*BASE, resource_slice("slice", "d0", "d1", pool="slice"), *pair("p")),
        statuses=((CLAIMS, "p-claim", _device_status()),),
        kept=((CLAIMS, "p-claim", "status.devices"),),
        rivals=pair("rival"),
        lost=((CLAIMS, "rival-claim", _device_status(device="d1"), "status.devices"),),
        bound_while_off={"rival": True},
        late=pair("late"),
        bound_in_the_end={"late": False},
    ),
    Scene(
        "DRADeviceBindingConditions",
        (*BASE, published("slice", _binding("d0")), *pair("p")),
        statuses=((CLAIMS, "p-claim", _device_status(READY)),),
        kept=(
            (CLAIMS, "p-claim", "status.allocation.devices.results.0.bindingConditions"),
            (CLAIMS, "p-claim", "status.allocation.allocationTimestamp"),
            (SLICES, "slice", "spec.devices.0.bindingConditions"),
        ),
        dropped=((published("new", _binding("d9"), nodeName="elsewhere"), "spec.devices.0.bindingConditions"),),
        rivals=pair("rival"),
        bound_while_off={"rival": False},
        late=pair("late"),
        bound_in_the_end={"late": False},
    ),
    Scene(
        "DRAResourcePoolStatus",
        (*BASE, PLAIN, *pair("p"), _question("question")),
        kept=((POOL_STATUS_REQUESTS, "question", "status.pools"),),
        rivals=pair("rival"),
        bound_while_off={"rival": True},
    ),
    Scene(
        "DRAWorkloadResourceClaims",
        (
            *BASE,
            PLAIN,
            pod_group("group", [{"name": "g", "resourceClaimName": "p-claim"}]),
            claim_for("p-claim"),
            user("p", "p-claim", group="group"),
            user("q", "p-claim", group="group"),
        ),
        placed=("p", "q"),
        kept=((POD_GROUPS, "group", "spec.resourceClaims"), (PODS, "p", "spec.schedulingGroup")),
        dropped=((pod_group("new", [{"name": "g", "resourceClaimName": "x"}]), "spec.resourceClaims"),),
        rivals=(*pair("rival"), *pair("other")),
        bound_while_off={"rival": True, "other": False},
    ),
    Scene(
        "GenericWorkload",
        (*BASE, PLAIN, pod_group("group", []), claim_for("p-claim"), user("p", "p-claim", group="group")),
        kept=((POD_GROUPS, "group", "spec.schedulingPolicy"), (PODS, "p", "spec.schedulingGroup")),
        dropped=((pod("new", group="group", node="node-1"), "spec.schedulingGroup"),),
        rivals=pair("rival"),
        bound_while_off={"rival": True},
    ),
    Scene(
        "GangScheduling",
        (
            *BASE,
            PLAIN,
            _gang("group", 2),
            claim_for("p-claim"),
            claim_for("q-claim"),
            user("p", "p-claim", group="group"),
            user("q", "q-claim", group="group"),
        ),
        placed=("p", "q"),
        kept=((POD_GROUPS, "group", "spec.schedulingPolicy.gang"),),
        rivals=pair("rival"),
        bound_while_off={"rival": False},
    ),
    Scene(
        "ResourceHealthStatus",
        (*BASE, PLAIN, *pair("p")),
        statuses=((PODS, "p", _health()),),
        kept=((PODS, "p", HEALTH),),
        rivals=pair("rival"),
        lost=((PODS, "rival", _health(), HEALTH),),
        bound_while_off={"rival": True},
    ),
    Scene(
        "ResourceHealthStatusMessage",
        (*BASE, PLAIN, *pair("p")),
        statuses=((PODS, "p", _health()),),
        kept=((PODS, "p", f"{HEALTH}.0.resources.0.message"),),
        rivals=pair("rival"),
        lost=((PODS, "rival", _health(), f"{HEALTH}.0.resources.0.message"),),
        bound_while_off={"rival": True},
    ),
    *(
        Scene(
            gate,
            (*BASE, PLAIN, *pair("p")),
            rivals=pair("rival"),
            bound_while_off={"rival": True},
            late=pair("late"),
            bound_in_the_end={"late": False},
        )
        for gate in ("DRAResourceClaimGranularStatusAuthorization", "DRASchedulerFilterTimeout")
    ),
)
