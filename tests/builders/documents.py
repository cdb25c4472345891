"""Documents of pods, claims, classes, slices and nodes: the one place that knows how they are built.

`manifests` has them with the defaults of scenarios; rooms' tests may have defaults of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Plain = dict[str, Any]
RESOURCE = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
CLASS = "gpu.example.com"


def document(kind: str, name: str, spec: Plain | None = None, *, api: str = RESOURCE, **metadata: Any) -> Plain:
    made: Plain = {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}}
    return made if spec is None else {**made, "spec": spec}


def request_of(name: str = "r", device_class: str = CLASS, *, expression: str = "", **exactly: Any) -> Plain:
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly, **selectors}}


def claim_document(name: str, *requests: Plain, constraints: Iterable[Plain] = (), **metadata: Any) -> Plain:
    """Without requests, one device of the usual class."""
    devices: Plain = {"requests": list(requests) or [request_of()]}
    if constraints := list(constraints):
        devices["constraints"] = constraints
    return document("ResourceClaim", name, {"devices": devices}, **metadata)


def class_document(name: str = CLASS, *expressions: str, fields: Plain | None = None, **metadata: Any) -> Plain:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return document("DeviceClass", name, {"selectors": selectors, **(fields or {})}, **metadata)


def slice_document(
    name: str,
    *devices: str | Plain,
    driver: str = DRIVER,
    node: str = "node-a",
    pool: str = "pool",
    generation: int = 1,
    count: int = 1,
) -> Plain:
    """A slice of one node's pool; a device is its name or all of it."""
    listed = [{"name": each} if isinstance(each, str) else each for each in devices]
    place = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return document("ResourceSlice", name, {"driver": driver, "nodeName": node, "pool": place, "devices": listed})


def pod_document(name: str, spec: Plain | None = None, *, image: str = "img", **metadata: Any) -> Plain:
    """One container, unless the spec says otherwise."""
    return document(
        "Pod", name, {"containers": [{"name": "ctr", "image": image}], **(spec or {})}, api="v1", **metadata
    )


def node_document(name: str, **labels: str) -> Plain:
    return document("Node", name, api="v1", labels=labels)
