"""Clusters and pods drawn from a seed: every capability that the simulator knows, in small numbers.

In:  a source of random numbers.
Out: devices for a node, objects for a server. Pods say in an annotation what they need, for the judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from drakit.api import CounterSet, Device, from_plain
from drakit.api.objects.plain import Plain
from drakit.driverkit import DevicePool

GPU, MIG, NIC, FABRIC, CPU = "gpu.sim", "mig.sim", "nic.sim", "fabric.sim", "cpu.sim"
LASTING = "sim.example.com/lasting"
"""A taint that devices have from the beginning to the end: no scheduler can have missed it."""
NEEDS = "sim.drakit.dev/needs"
RUNS_FOR = "drakit.dev/runs-for"
STOPS_AFTER = "drakit.dev/stops-after"
EXTENDED = "sim.example.com/gpu"
BANDWIDTH = 10
CARD = 4
CPUS = 32
"""Processors of a node."""
TEAM = "team"
"""A namespace that users delete and make again."""
AFTER = "sim.drakit.dev/after"
"""How many seconds after the object before it one is made."""
NOTES = "sim.drakit.dev/note-"
"""Annotations that users add, each with a name of its own."""
KINDS = (
    "one", "two", "model", "first", "match", "match", "shared", "part", "part", "capacity", "capacity", "binding",
    "extended", "tolerant", "gang", "gang", "cpu", "cpu", "group", "group",
)  # fmt: skip

Need = Mapping[str, Any]
_GANG = 2
_PER_POD = 6


def devices_of(node: str, random: Random) -> dict[str, list[DevicePool]]:
    """What the drivers of a node publish."""
    models = [random.choice("ab") for _ in range(random.randint(1, 3))]
    tainted = random.choice((None, None, 0, len(models) - 1))
    gpus = tuple(_gpu(number, model, tainted=number == tainted) for number, model in enumerate(models))
    found = {GPU: [DevicePool(devices=gpus)]}
    if random.random() < 0.6:
        found[MIG] = [_card()]
    if random.random() < 0.6:
        found[NIC] = [DevicePool(devices=(_nic(),))]
    if random.random() < 0.4:
        found[FABRIC] = [DevicePool(devices=(_fabric(node),))]
    if random.random() < 0.4:
        found[CPU] = [DevicePool(devices=(_socket(),))]
    return found


def _gpu(number: int, model: str, *, tainted: bool) -> Device:
    taints = [{"key": LASTING, "effect": "NoSchedule"}] if tainted else []
    return from_plain(Device, {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}, "taints": taints})


def _socket() -> Device:
    """Processors of the node, which pods can also have without a claim."""
    policy = {"validRange": {"min": "1", "step": "1"}, "default": "1"}
    capacity = {"cpu": {"value": str(CPUS), "requestPolicy": policy}}
    mappings = {"cpu": {"capacityKey": "cpu"}}
    return from_plain(
        Device,
        {"name": "socket-0", "allowMultipleAllocations": True, "capacity": capacity,
         "nodeAllocatableResourceMappings": mappings},
    )  # fmt: skip


def _nic() -> Device:
    policy = {"validRange": {"min": "1", "step": "1"}, "default": "1"}
    capacity = {"bandwidth": {"value": str(BANDWIDTH), "requestPolicy": policy}}
    return from_plain(Device, {"name": "nic-0", "allowMultipleAllocations": True, "capacity": capacity})


def _fabric(node: str) -> Device:
    return from_plain(
        Device,
        {"name": f"port-{node}", "bindingConditions": ["sim.example.com/ready"], "bindsToNode": True,
         "bindingFailureConditions": ["sim.example.com/failed"]},
    )  # fmt: skip


def _card() -> DevicePool:
    """A card of four slices, which can be had whole, in halves and in quarters."""
    parts = [("whole-0", 4), ("half-0", 2), ("half-1", 2), *((f"quarter-{each}", 1) for each in range(4))]
    devices = [
        {"name": name, "attributes": {"size": {"int": size}},
         "consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": str(size)}}}]}
        for name, size in parts
    ]  # fmt: skip
    counters = from_plain(CounterSet, {"name": "card", "counters": {"slices": {"value": str(CARD)}}})
    return DevicePool(devices=tuple(from_plain(Device, each) for each in devices), shared_counters=(counters,))


def classes() -> list[Plain]:
    found = [_class(driver.partition(".")[0], driver) for driver in (GPU, MIG, NIC, FABRIC, CPU)]
    found[0]["spec"]["extendedResourceName"] = EXTENDED
    return found


def _class(name: str, driver: str) -> Plain:
    expression = f'device.driver == "{driver}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def quota(claims: int) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "claims", "namespace": "default"},
        "spec": {"hard": {"count/resourceclaims.resource.k8s.io": str(claims)}},
    }


def priority_class(name: str, value: int) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def namespace(name: str) -> Plain:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def pod_objects(number: int, kind: str, random: Random, where: str = "default") -> list[Plain]:
    """A pod in a namespace with what it needs: its claim or template first."""
    objects = _pod_objects(f"pod-{number}", kind, random)
    for each in objects:
        each["metadata"]["namespace"] = where
    return objects


def _pod_objects(name: str, kind: str, random: Random) -> list[Plain]:
    if kind == "extended":
        return [_pod(name, [], random, extended=True)]
    spec, needs = _request(kind, random)
    if kind == "shared":
        pods = [_pod(f"{name}-{each}", needs, random, claim=name) for each in "abc"]
        for each in pods[1:]:  # one of a claim's pods may come when another goes
            each["metadata"]["annotations"][AFTER] = str(random.choice((0, 1, 5, 20)))
        return [_claim(name, spec), *pods]
    if kind == "gang":
        pods = [_pod(f"{name}-{each}", needs, random, template=name, group=name) for each in range(_GANG)]
        return [_template(name, spec), _pod_group(name, {"gang": {"minCount": _GANG}}), *pods]
    if kind == "group":
        return _sharing_group(name, spec, needs, random)
    return [_template(name, spec), _pod(name, needs, random, template=name, cpus=_PER_POD if kind == "cpu" else 0)]


def _sharing_group(name: str, spec: Plain, needs: Sequence[Need], random: Random) -> list[Plain]:
    """A group whose pods share one claim, which is the group's: of a template, or by its name."""
    policy: Plain = random.choice(({"basic": {}}, {"gang": {"minCount": _GANG}}))
    named = random.random() < 0.3
    claim, template = (name, "") if named else ("", name)
    pods = [_pod(f"{name}-{each}", needs, random, claim=claim, template=template, group=name) for each in range(_GANG)]
    made = _claim(name, spec) if named else _template(name, spec)
    return [made, _pod_group(name, policy, pods[0]["spec"]["resourceClaims"]), *pods]


def _request(kind: str, random: Random) -> tuple[Plain, list[Need]]:
    exactly: Plain = {"deviceClassName": "gpu"}
    need: dict[str, Any] = {"driver": GPU, "count": 1}
    constraints: list[Plain] = []
    if kind in ("two", "match"):
        exactly["count"] = need["count"] = 2
    if kind == "match":
        constraints = [{"requests": ["dev"], "matchAttribute": f"{GPU}/model"}]
        need["same"] = "model"
    if kind == "model":
        need["model"] = random.choice("ab")
        exactly["selectors"] = [_selector(f'device.attributes["{GPU}"].model == "{need["model"]}"')]
    if kind == "part":
        size = random.choice((1, 1, 2, 4))
        exactly = {"deviceClassName": "mig", "selectors": [_selector(f'device.attributes["{MIG}"].size == {size}')]}
        need = {"driver": MIG, "count": 1, "size": size}
    if kind == "capacity":
        amount = random.choice((2, 3, 5, 8))
        exactly = {"deviceClassName": "nic", "capacity": {"requests": {"bandwidth": str(amount)}}}
        need = {"driver": NIC, "count": 1, "bandwidth": amount}
    if kind == "cpu":
        amount = random.choice((4, 10, 16))
        exactly = {"deviceClassName": "cpu", "capacity": {"requests": {"cpu": str(amount)}}}
        need = {"driver": CPU, "count": 1, "bandwidth": amount, "cpus": amount + _PER_POD}
    if kind == "binding":
        exactly = {"deviceClassName": "fabric"}
        need = {"driver": FABRIC, "count": 1}
    if kind == "tolerant":
        exactly["tolerations"] = [{"operator": "Exists"}]
        need["tolerates"] = True
    request: Plain = {"name": "dev", "exactly": exactly}
    if kind == "first":
        request = {"name": "dev", "firstAvailable": [_alternative(each) for each in "ab"]}
    return {"devices": {"requests": [request], "constraints": constraints}}, [need]


def _alternative(model: str) -> Plain:
    selector = _selector(f'device.attributes["{GPU}"].model == "{model}"')
    return {"name": model, "deviceClassName": "gpu", "selectors": [selector]}


def _selector(expression: str) -> Plain:
    return {"cel": {"expression": expression}}


def _claim(name: str, spec: Plain) -> Plain:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def _pod_group(name: str, policy: Plain, claims: Sequence[Plain] = ()) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **({"resourceClaims": list(claims)} if claims else {})},
    }


def _template(name: str, spec: Plain) -> Plain:
    metadata = {"name": name, "namespace": "default"}
    inner = {"spec": spec}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": inner}


def _pod(
    name: str,
    needs: Sequence[Need],
    random: Random,
    *,
    claim: str = "",
    template: str = "",
    extended: bool = False,
    group: str = "",
    cpus: int = 0,
) -> Plain:
    annotations = {NEEDS: json.dumps(needs)}
    if random.random() < 0.6:
        annotations[RUNS_FOR] = f"{random.choice((1, 5, 20, 60, 200))}s"
    if random.random() < 0.3:
        annotations[STOPS_AFTER] = f"{random.choice((1, 5, 20))}s"
    resources: Plain = {"limits": {EXTENDED: "1"}} if extended else {"claims": [{"name": "dev"}]}
    if cpus:
        resources["requests"] = {"cpu": str(cpus)}
    entry = {"name": "dev", **({"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template})}
    spec: Plain = {
        "restartPolicy": random.choice(("Never", "Never", "Always")),
        "terminationGracePeriodSeconds": 10,
        "containers": [{"name": "main", "image": "sim", "resources": resources}],
        **({} if extended else {"resourceClaims": [entry]}),
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    elif random.random() < 0.2:
        spec["priorityClassName"] = "high"
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
