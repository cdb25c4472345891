"""Short ways to write devices, slices, classes and claims in tests."""

from __future__ import annotations

from typing import Any

from drakit.allocator import Allocated, Allocation, Inventory, allocate
from drakit.api import DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice, from_plain
from drakit.base.gates import FeatureGates

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


def claim(*requests: Plain, name: str = "claim", constraints: Any = (), config: Any = ()) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    devices = {"requests": list(requests), "constraints": list(constraints), "config": list(config)}
    return from_plain(ResourceClaim, {"metadata": meta, "spec": {"devices": devices}})


def held(name: str, *devices: str, pool: str = "pool", **fields: Any) -> ResourceClaim:
    """A claim that has these devices already."""
    results = [{"request": "r", "driver": GPU, "pool": pool, "device": each, **fields} for each in devices]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return from_plain(ResourceClaim, {"metadata": meta, "status": {"allocation": {"devices": {"results": results}}}})


def node(name: str = "node-a", **labels: str) -> Node:
    return from_plain(Node, {"metadata": {"name": name, "labels": labels}})


def rule(name: str, selector: Plain | None, **taint: str) -> DeviceTaintRule:
    spec: Plain = {"taint": {"key": "broken", "effect": "NoSchedule", **taint}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return from_plain(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


def cluster(*slices: ResourceSlice, used: Any = (), gates: FeatureGates = ALL_ON, classes: Any = ()) -> Inventory:
    inventory = Inventory(gates)
    inventory.put_node(node())
    for each in slices:
        inventory.put_slice(each)
    for each in classes or [class_of()]:
        inventory.put_class(each)
    for each in used:
        inventory.put_claim(each)
    return inventory


def run(inventory: Inventory, *claims: ResourceClaim, node: str = "node-a", explain: bool = False) -> Allocation:
    return allocate(inventory, node, claims, new_uid=lambda: "share", explain=explain)


def names(got: Allocation) -> list[str] | None:
    """The devices of all claims in order; None when there is no allocation."""
    if not isinstance(got, Allocated):
        return None
    return [each.device for allocation in got.allocations for each in allocation.devices.results]


def picked(inventory: Inventory, *claims: ResourceClaim, node: str = "node-a") -> list[str] | None:
    return names(run(inventory, *claims, node=node))


def gates_without(*names: str) -> FeatureGates:
    return FeatureGates.only(ALL_ON.on - set(names))
