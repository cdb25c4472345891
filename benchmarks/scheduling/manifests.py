"""The objects of which the workloads are made. Parameters are those of Kubernetes' own scheduler benchmark."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]

DRIVER = "test-driver.cdi.k8s.io"
CLASS = "test-class"
TEMPLATE = "test-claim-template"
_GROUP = "resource.k8s.io/v1"
EVERYWHERE = {"matchExpressions": [{"key": "node-with-dra", "operator": "In", "values": ["true"]}]}


def node(number: int) -> Plain:
    """A node that never says that it is ready: nobody misses its heartbeats when a run takes long."""
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": {"node-with-dra": "true"}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def namespace(name: str) -> Plain:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def local_slice(number: int, devices: int) -> Plain:
    """The devices of one node: nothing but names."""
    pool = {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1}
    named = [{"name": f"instance-{each}"} for each in range(devices)]
    where = f"node-{number}"
    return _object("ResourceSlice", f"{where}-slice", driver=DRIVER, nodeName=where, pool=pool, devices=named)


def wide_slice(number: int, name: str = "", **content: Any) -> Plain:
    """Of a pool that every node can reach."""
    pool = {"name": f"resourceslice-{number}", "generation": 1, "resourceSliceCount": 2 if name else 1}
    where = {"nodeSelectorTerms": [EVERYWHERE]}
    return _object(
        "ResourceSlice", f"resourceslice-{name}{number}", driver=DRIVER, nodeSelector=where, pool=pool, **content
    )


def card_slice(number: int, name: str, **content: Any) -> Plain:
    """One of the two slices of a card that is in a node."""
    where = f"node-{number}"
    pool = {"name": where, "generation": 1, "resourceSliceCount": 2}
    return _object("ResourceSlice", f"{where}-{name}", driver=DRIVER, nodeName=where, pool=pool, **content)


def device_class(name: str = CLASS, *, expression: str = f'device.driver == "{DRIVER}"', resource: str = "") -> Plain:
    named = {"extendedResourceName": resource} if resource else {}
    return _object("DeviceClass", name, selectors=[{"cel": {"expression": expression}}], **named)


def claim(number: int, place: str) -> Plain:
    made = _object("ResourceClaim", f"test-claim-{number}", devices={"requests": [exactly("req-0")]})
    made["metadata"]["namespace"] = place
    return made


def template(place: str, *requests: Plain) -> Plain:
    made = _object("ResourceClaimTemplate", TEMPLATE, spec={"devices": {"requests": list(requests)}})
    made["metadata"]["namespace"] = place
    return made


def exactly(name: str, **more: Any) -> Plain:
    return {"name": name, "exactly": {"deviceClassName": CLASS, **more}}


def taint_rule() -> Plain:
    """A taint on all devices of the driver."""
    taint = {"key": "example.com/taint", "value": "tainted", "effect": "NoSchedule"}
    made = _object("DeviceTaintRule", "taint-all-devices", deviceSelector={"driver": DRIVER}, taint=taint)
    made["apiVersion"] = "resource.k8s.io/v1alpha3"
    return made


def pod(name: str, place: str, **resources: Any) -> Plain:
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": place},
        "spec": {"containers": [container]},
    }


def pod_of_template(name: str, place: str) -> Plain:
    made = pod(name, place, claims=[{"name": "resource"}])
    made["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimTemplateName": TEMPLATE}]
    return made


def pod_of_claim(name: str, place: str, claimed: str) -> Plain:
    made = pod(name, place, claims=[{"name": "resource"}])
    made["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimName": claimed}]
    return made


def _object(kind: str, name: str, **spec: Any) -> Plain:
    return {"apiVersion": _GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}
