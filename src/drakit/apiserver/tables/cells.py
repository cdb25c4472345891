"""The cells of a row, kind by kind, in the order of the kind's columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.tables.ages import UNKNOWN, age
from drakit.apiserver.tables.batchcells import BATCH_CELLS
from drakit.apiserver.tables.networkcells import NETWORK_CELLS
from drakit.apiserver.tables.parts import (
    NONE,
    UNSET,
    Cells,
    labels_text,
    named,
    selector_text,
    spec_of,
    status_of,
    template_cells,
)
from drakit.apiserver.tables.podcells import pod_cells
from drakit.apiserver.tables.storagecells import STORAGE_CELLS

_ROLE_LABEL = "node-role.kubernetes.io/"
_MAX_ENDPOINTS = 3


def created_cells(item: Plain, _now: datetime) -> list[Any]:
    """A kind without columns of its own: the name, and when it was created."""
    metadata = item.get("metadata") or {}
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]


def _nothing(_item: Plain, _now: datetime) -> list[Any]:
    return []


def _claim(item: Plain, _now: datetime) -> list[Any]:
    # Upstream's words: a claim may be `deleted,allocated,reserved` at the same time.
    states = ["deleted"] if (item.get("metadata") or {}).get("deletionTimestamp") else []
    status = status_of(item)
    if status.get("allocation") is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [",".join(states)]


def _component(item: Plain, _now: datetime) -> list[Any]:
    healthy: dict[str, Any] = next(iter(item.get("conditions") or ()), {})
    words = {"True": "Healthy", "False": "Unhealthy"}
    return [words.get(healthy.get("status", ""), "Unknown"), healthy.get("message", ""), healthy.get("error", "")]


def _slice(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    return [spec.get("nodeName") or "", spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")]


def _taint_rule(item: Plain, now: datetime) -> list[Any]:
    taint = spec_of(item).get("taint") or {}
    added = taint.get("timeAdded")
    return [taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""), age(added, now) if added else ""]


def _pool_status(item: Plain, now: datetime) -> list[Any]:
    name, driver = (item.get("metadata") or {}).get("name", ""), spec_of(item).get("driver", "")
    status = item.get("status")
    if status is None:
        return [name, driver, *"-----", 0, "Pending", NONE]
    state, since = _pool_state(status)
    pools = status.get("pools") or ()
    count = status.get("poolCount") or 0
    if state == "Complete" and count > len(pools):
        state = f"Complete ({len(pools)}/{count} pools)"
    counts = list("-----") if state == "Failed" else _pool_counts(pools)
    return [name, driver, *counts, count, state, age(since, now) if since else NONE]


def _pool_state(status: Plain) -> tuple[str, str]:
    for each in status.get("conditions") or ():
        if each.get("status") == "True" and each.get("type") in ("Complete", "Failed"):
            done = each["type"] == "Complete"
            return each["type"], each.get("lastTransitionTime") or "" if done else ""
    return "Pending", ""


def _pool_counts(pools: Any) -> list[str]:
    names = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
    sums = [sum(pool.get(name) or 0 for pool in pools) for name in names]
    return [str(each) for each in (*sums, sum(pool.get("validationError") is not None for pool in pools))]


def _pod_group(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    workload = (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    return [policy, workload.get("workloadName") or NONE, _group_state(status_of(item))]


def _group_state(status: Plain) -> str:
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if disruption := conditions.get("DisruptionTarget"):
        return str(disruption.get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _node(item: Plain, _now: datetime) -> list[Any]:
    ready = next((each for each in status_of(item).get("conditions") or () if each.get("type") == "Ready"), None)
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    states += ["SchedulingDisabled"] if spec_of(item).get("unschedulable") else []
    return [",".join(states), ",".join(_roles(item)) or NONE]


def _roles(node: Plain) -> list[str]:
    labels = (node.get("metadata") or {}).get("labels") or {}
    roles = {key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)}
    return sorted(filter(None, roles | {labels.get("kubernetes.io/role", "")}))


def _node_wide(item: Plain, _now: datetime) -> list[Any]:
    info = status_of(item).get("nodeInfo") or {}
    addresses = status_of(item).get("addresses") or ()
    found = [
        next((each.get("address") for each in addresses if each.get("type") == kind), None) or NONE
        for kind in ("InternalIP", "ExternalIP")
    ]
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    rest = [info.get("osImage") or UNKNOWN, kernel, info.get("containerRuntimeVersion") or UNKNOWN]
    return [info.get("kubeletVersion", ""), *found, *rest]


def _event(item: Plain, now: datetime) -> list[Any]:
    """An event of either group: they have different field names."""
    first = age(item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp") or item.get("eventTime"), now)
    stamp = item.get("lastTimestamp") or item.get("deprecatedLastTimestamp")
    last = age(stamp, now) if stamp else first
    count = item.get("count") or item.get("deprecatedCount") or 1
    if series := item.get("series"):
        last, count = age(series.get("lastObservedTime"), now), series.get("count", 0)
    about = item.get("involvedObject") or item.get("regarding") or {}
    target = "/".join(filter(None, (about.get("kind", "").lower(), about.get("name"))))
    message = (item.get("message") or item.get("note") or "").strip()
    name = (item.get("metadata") or {}).get("name", "")
    head = [last, item.get("type", ""), item.get("reason", ""), target, about.get("fieldPath", "")]
    return [*head, _event_source(item), message, first, count, name]


def _event_source(item: Plain) -> str:
    source = item.get("source") or item.get("deprecatedSource") or {}
    component = source.get("component") or item.get("reportingComponent") or item.get("reportingController") or ""
    instance = source.get("host") or item.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _quota(item: Plain, _now: datetime) -> list[Any]:
    status = status_of(item)
    used, hard = status.get("used") or {}, status.get("hard") or {}
    texts: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [", ".join(texts[False]), ", ".join(texts[True])]


def _service(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    ports = ",".join(
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', '')}"
        for port in spec.get("ports") or ()
    )
    address = next(iter(spec.get("clusterIPs") or ()), NONE)
    return [spec.get("type", ""), address, _external(spec, status_of(item)), ports or NONE]


def _external(spec: Plain, status: Plain) -> str:
    given = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
            found = {each.get("ip") or each.get("hostname") or "" for each in ingress}
            return ",".join(sorted(filter(None, found)) + given) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _endpoints(item: Plain, _now: datetime) -> list[Any]:
    found = [text for subset in item.get("subsets") or () for text in _addresses(subset)]
    more = f" + {len(found) - _MAX_ENDPOINTS} more..." if len(found) > _MAX_ENDPOINTS else ""
    return [",".join(found[:_MAX_ENDPOINTS]) + more if item.get("subsets") else NONE]


def _addresses(subset: Plain) -> list[str]:
    addresses = [each.get("ip", "") for each in subset.get("addresses") or ()]
    ports = [each.get("port") for each in subset.get("ports") or ()]
    hosts = [f"[{each}]" if ":" in each else each for each in addresses]
    return [f"{host}:{port}" for port in ports for host in hosts] if ports else addresses


def _replica_set(item: Plain, _now: datetime) -> list[Any]:
    status = status_of(item)
    return [spec_of(item).get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]


def _deployment(item: Plain, _now: datetime) -> list[Any]:
    status = status_of(item)
    ready = f"{status.get('readyReplicas', 0)}/{spec_of(item).get('replicas', 0)}"
    return [ready, status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]


def _daemon_set(item: Plain, _now: datetime) -> list[Any]:
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [status_of(item).get(name, 0) for name in (*names, "numberAvailable")]
    template = (spec_of(item).get("template") or {}).get("spec") or {}
    return [*counts, labels_text(template.get("nodeSelector"))]


def _subjects(item: Plain, _now: datetime) -> list[Any]:
    texts: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for each in item.get("subjects") or ():
        name = each.get("name", "")
        if each.get("kind") == "ServiceAccount" and each.get("namespace"):
            name = f"{each['namespace']}/{name}"
        texts.setdefault(each.get("kind", ""), []).append(name)
    return [", ".join(texts[kind]) for kind in ("User", "Group", "ServiceAccount")]


def _role_ref(item: Plain, _now: datetime) -> list[Any]:
    role = item.get("roleRef") or {}
    return [f"{role.get('kind', '')}/{role.get('name', '')}"]


def _param_kind(item: Plain) -> str:
    kind = spec_of(item).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _policy_binding(item: Plain, _now: datetime) -> list[Any]:
    reference = spec_of(item).get("paramRef") or {}
    shown = UNSET
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference.get("selector") is not None:
        shown = selector_text(reference["selector"])
    return [spec_of(item).get("policyName", ""), shown]


_BINDING = named(_role_ref, wide=_subjects)
_WEBHOOKS = named(lambda item, _: [len(item.get("webhooks") or ())])

CELLS: Mapping[str, Cells] = {
    **BATCH_CELLS,
    **NETWORK_CELLS,
    **STORAGE_CELLS,
    "ConfigMap": named(lambda item, _: [len(item.get("data") or ()) + len(item.get("binaryData") or ())]),
    "ClusterRoleBinding": _BINDING,
    "DaemonSet": named(_daemon_set, wide=template_cells),
    "Deployment": named(_deployment, wide=template_cells),
    "DeviceClass": named(_nothing),
    "DeviceTaintRule": named(_taint_rule),
    "Endpoints": named(_endpoints),
    "Event": _event,
    "ComponentStatus": lambda item, now: [item["metadata"]["name"], *_component(item, now)],
    "Lease": named(lambda item, _: [spec_of(item).get("holderIdentity") or ""]),
    "MutatingAdmissionPolicy": named(lambda item, _: [len(spec_of(item).get("mutations") or ()), _param_kind(item)]),
    "MutatingAdmissionPolicyBinding": named(_policy_binding),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "Namespace": named(lambda item, _: [status_of(item).get("phase", "")]),
    "Node": named(_node, wide=_node_wide),
    "Pod": pod_cells,
    "PodGroup": named(_pod_group),
    "PriorityClass": named(
        lambda item, _: [item.get("value", 0), bool(item.get("globalDefault"))],
        wide=lambda item, _: [item.get("preemptionPolicy") or ""],
    ),
    "ReplicaSet": named(_replica_set, wide=template_cells),
    "ResourceClaim": named(_claim),
    "ResourceClaimTemplate": named(_nothing),
    "ResourcePoolStatusRequest": _pool_status,
    "ResourceQuota": named(_quota),
    "ResourceSlice": named(_slice),
    "RoleBinding": _BINDING,
    "Secret": named(lambda item, _: [item.get("type", ""), len(item.get("data") or ())]),
    "Service": named(_service, wide=lambda item, _: [labels_text(spec_of(item).get("selector"))]),
    "ServiceAccount": named(_nothing),
    "ValidatingAdmissionPolicy": named(
        lambda item, _: [len(spec_of(item).get("validations") or ()), _param_kind(item)]
    ),
    "ValidatingAdmissionPolicyBinding": named(_policy_binding),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "Workload": named(_nothing),
}
