"""Decoded devices, slices, classes, claims and nodes, and an inventory of them, for tests without a server."""

from __future__ import annotations

from typing import Any

from drakit.allocator import Inventory
from drakit.api import DeviceClass, DeviceTaintRule, Node, Pod, ResourceClaim, ResourceSlice, from_plain
from drakit.base.gates import FeatureGates
from tests.builders.documents import claim_document, request_of

Plain = dict[str, Any]
GPU = "gpu.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
ALL_ON = FeatureGates.all_on()


def device(name: str, **fields: Any) -> Plain:
    """`attributes` may give plain values: a list makes a list attribute."""
    attributes = {key: attribute(value) for key, value in fields.pop("attributes", {}).items()}
    return {"name": name, **({"attributes": attributes} if attributes else {}), **fields}


def attribute(value: Any) -> Plain:
    one = value[0] if isinstance(value, list) else value
    kind = "bool" if isinstance(one, bool) else "int" if isinstance(one, int) else "string"
    return {kind + "s" if isinstance(value, list) else kind: value}


def slice_of(*devices: Plain, name: str = "slice", pool: str = "pool", count: int = 1, **spec: Any) -> ResourceSlice:
    where = {} if {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": "node-a"}
    generation = spec.pop("generation", 1)
    told = {"name": pool, "generation": generation, "resourceSliceCount": count}
    body = {"driver": GPU, "pool": told, "devices": list(devices), **where, **spec}
    return from_plain(ResourceSlice, {"metadata": {"name": name}, "spec": body})


def class_of(name: str = "gpu", *selectors: str, config: tuple[Plain, ...] = ()) -> DeviceClass:
    chosen = [{"cel": {"expression": each}} for each in selectors]
    configured = [{"opaque": {"driver": GPU, "parameters": each}} for each in config]
    return from_plain(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": chosen, "config": configured}})


def exactly(name: str = "req", count: int = 1, *selectors: str, **fields: Any) -> Plain:
    return {"name": name, "exactly": _asked(count, selectors, fields)}


def sub(name: str, count: int = 1, *selectors: str, **fields: Any) -> Plain:
    return {"name": name, **_asked(count, selectors, fields)}


def every(name: str = "req", *selectors: str, **fields: Any) -> Plain:
    return exactly(name, 0, *selectors, allocationMode="All", **fields)


def first_of(name: str, *subs: Plain) -> Plain:
    return {"name": name, "firstAvailable": list(subs)}


def _asked(count: int, selectors: tuple[str, ...], fields: Plain) -> Plain:
    asked: Plain = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **fields}
    if selectors:
        asked["selectors"] = [{"cel": {"expression": each}} for each in selectors]
    return asked


def claim_of(*requests: Plain, name: str = "claim", constraints: Any = (), config: Any = ()) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    devices = {"requests": list(requests), "constraints": list(constraints), "config": list(config)}
    return from_plain(ResourceClaim, {"metadata": meta, "spec": {"devices": devices}})


def claim_to_send(name: str, *, namespace: str = "default", **labels: str) -> ResourceClaim:
    """As a client sends it: without what a server fills in."""
    return from_plain(ResourceClaim, claim_document(name, request_of("gpu"), namespace=namespace, labels=labels))


def held(name: str, *devices: str, pool: str = "pool", **fields: Any) -> ResourceClaim:
    """A claim that has these devices already."""
    results = [{"request": "r", "driver": GPU, "pool": pool, "device": each, **fields} for each in devices]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return from_plain(ResourceClaim, {"metadata": meta, "status": {"allocation": {"devices": {"results": results}}}})


def node_of(name: str = "node-a", **labels: str) -> Node:
    return from_plain(Node, {"metadata": {"name": name, "labels": labels}})


def pod_of(*containers: Plain, name: str = "pod", init: Any = (), status: Plain | None = None, **spec: Any) -> Pod:
    made = {"containers": list(containers), "initContainers": list(init), **spec}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return from_plain(Pod, {"metadata": meta, "spec": made, "status": status or {}})


def taint_rule(name: str, selector: Plain | None, **taint: str) -> DeviceTaintRule:
    spec: Plain = {"taint": {"key": "broken", "effect": "NoSchedule", **taint}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return from_plain(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


def inventory_of(*slices: ResourceSlice, used: Any = (), gates: FeatureGates = ALL_ON, classes: Any = ()) -> Inventory:
    inventory = Inventory(gates)
    inventory.put_node(node_of())
    for each in slices:
        inventory.put_slice(each)
    for each in classes or [class_of()]:
        inventory.put_class(each)
    for each in used:
        inventory.put_claim(each)
    return inventory
