"""Clusters as hypothesis draws them, with something that is asked about: a pod, or a gang.

Every feature that can keep a pod waiting is drawn: no nodes or devices at all, classes that match nothing or are
missing, counts, selectors that fail, tolerations, prioritized lists, constraints, partitions of cards, shared capacity,
extended resources, taints of devices and nodes, rules, cordons, a node that is full, gates, a claim that is missing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.builders.documents import DRIVER, Plain, class_document, document, slice_document
from tests.builders.manifests import by_name, device_class, pod_group
from tests.builders.podmanifests import node, pod

MODEL = f'device.attributes["{DRIVER}"].model == "{{}}"'
EXTENDED = "example.com/gpu"
SELECTORS = ("", "", "", MODEL.format("a"), MODEL.format("c"), "device.attributes.x.y")


class DrawnCluster(msgspec.Struct, frozen=True):
    """What there is, pods that come first, and what is asked about: claims, perhaps a group, pods."""

    there: list[Plain]
    first: list[Plain]
    asked: list[Plain]
    group: str = ""

    @property
    def pods(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.asked if each["kind"] == "Pod"]


def one_in(number: int) -> st.SearchStrategy[bool]:
    """Rarely true. Shrinks to False."""
    return st.integers(0, number - 1).map(lambda drawn: drawn == number - 1)


@st.composite
def drawn_devices(draw: st.DrawFn) -> list[Plain]:
    found: list[Plain] = []
    for number in range(draw(st.integers(1, 3))):
        model, numa = draw(st.sampled_from(["a", "b"])), draw(st.integers(0, 1))
        device: Plain = {"name": f"d{number}", "attributes": {"model": {"string": model}, "numa": {"int": numa}}}
        if draw(one_in(4)):
            device["taints"] = [{"key": "worn", "effect": "NoSchedule"}]
        if draw(one_in(4)):
            device |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
        found.append(device)
    return found


def drawn_card(name: str) -> list[Plain]:
    """A card with partitions: the whole of it, or one or both halves."""
    counters = {"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]}
    shared = slice_document(f"{name}-counters", node=name, pool=name, count=2)
    shared["spec"] = {key: value for key, value in shared["spec"].items() if key != "devices"} | counters
    devices = [
        {
            "name": part,
            "attributes": {"model": {"string": model}, "numa": {"int": 0}},
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": size}}}],
        }
        for part, model, size in (("whole", "a", "40Gi"), ("half-0", "b", "20Gi"), ("half-1", "b", "20Gi"))
    ]
    return [shared, slice_document(f"{name}-parts", *devices, node=name, pool=name, count=2)]


@st.composite
def drawn_node(draw: st.DrawFn, name: str) -> list[Plain]:
    spec: Any = draw(st.sampled_from([None, None, None, None, "cordoned", "tainted"]))
    made: dict[str, Plain] = {
        "cordoned": {"unschedulable": True},
        "tainted": {"taints": [{"key": "batch", "value": "only", "effect": "NoSchedule"}]},
    }
    found = [node(name, room={"cpu": "2", "pods": "4"}, spec=made.get(spec))]
    kind = draw(st.sampled_from(["devices", "devices", "card", "bare"]))
    if kind == "devices":
        found.append(slice_document(f"{name}-devices", *draw(drawn_devices()), node=name, pool=name))
    if kind == "card":
        found += drawn_card(name)
    return found


@st.composite
def _asked(draw: st.DrawFn) -> Plain:
    """What a request, or an alternative of one, asks for."""
    found: Plain = {"deviceClassName": draw(st.sampled_from([DRIVER, DRIVER, DRIVER, "other", "absent"]))}
    found |= {"allocationMode": "All"} if draw(one_in(6)) else {"count": draw(st.integers(1, 3))}
    if draw(one_in(5)):
        found["capacity"] = {"requests": {"memory": "6Gi"}}
    text = draw(st.sampled_from(SELECTORS))
    if text:
        found["selectors"] = [{"cel": {"expression": text}}]
    if draw(one_in(5)):
        found["tolerations"] = [{"key": "worn", "operator": "Exists"}]
    return found


@st.composite
def drawn_claim(draw: st.DrawFn, name: str) -> Plain:
    requests: list[Plain] = []
    for number in range(draw(st.integers(1, 2))):
        if draw(one_in(4)):
            subs = [{"name": f"s{at}", **draw(_asked())} for at in range(draw(st.integers(1, 3)))]
            requests.append({"name": f"r{number}", "firstAvailable": subs})
        else:
            requests.append({"name": f"r{number}", "exactly": draw(_asked())})
    devices: Plain = {"requests": requests}
    constraint = draw(st.sampled_from([None, None, None, "matchAttribute", "distinctAttribute"]))
    if constraint:
        devices["constraints"] = [{constraint: f"{DRIVER}/numa"}]
    return document("ResourceClaim", name, {"devices": devices}, namespace="default")


@st.composite
def drawn_pod(draw: st.DrawFn, name: str, *, group: str = "") -> list[Plain]:
    """A pod that is asked about, with its claim or an extended resource; the claim may be missing."""
    spec: Plain = draw(
        st.sampled_from([{}, {}, {}, {"nodeSelector": {"zone": "z"}}, {"schedulingGates": [{"name": "x"}]}])
    )
    cpu = draw(st.sampled_from(["", "", "1", "2", "64"]))
    if draw(one_in(5)):
        made = pod(name, cpu=cpu, spec=dict(spec), group=group)
        resources = made["spec"]["containers"][0].setdefault("resources", {})
        amounts = {EXTENDED: str(draw(st.integers(1, 3)))}
        resources["requests"] = {**resources.get("requests", {}), **amounts}
        resources["limits"] = amounts
        return [made]
    made = pod(name, cpu=cpu, spec=dict(spec), claims=[by_name(name)], group=group)
    return [made] if draw(one_in(12)) else [draw(drawn_claim(name)), made]


@st.composite
def drawn_gang(draw: st.DrawFn) -> list[Plain]:
    group = pod_group("gang", [])
    del group["spec"]["resourceClaims"]
    group["spec"]["schedulingPolicy"] = {"gang": {"minCount": draw(st.integers(1, 3))}}
    number = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return [group, *(each for at in range(number) for each in draw(drawn_pod(f"asked-{at}", group="gang")))]
    # Mostly the pods of a gang are alike.
    like = msgspec.json.encode(draw(drawn_pod("asked-0", group="gang"))).decode()
    copies = [msgspec.json.decode(like.replace("asked-0", f"asked-{at}")) for at in range(number)]
    return [group, *(each for copy in copies for each in copy)]


@st.composite
def drawn_clusters(draw: st.DrawFn) -> DrawnCluster:
    extended = class_document("extended", fields={"extendedResourceName": EXTENDED})
    there: list[Plain] = [device_class(), class_document("other", MODEL.format("b")), extended]
    for number in range(draw(st.integers(0, 3))):
        there += draw(drawn_node(f"node-{number}"))
    if draw(one_in(4)):
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "repair", "effect": "NoSchedule"}}
        there.append(document("DeviceTaintRule", "repair", rule, api="resource.k8s.io/v1beta2"))
    first: list[Plain] = []
    for number in range(draw(st.integers(0, 3))):
        name = f"first-{number}"
        first.append(draw(drawn_claim(name)))
        first.append(pod(name, cpu=draw(st.sampled_from(["", "1"])), claims=[by_name(name)]))
    if draw(one_in(3)):
        return DrawnCluster(there, first, draw(drawn_gang()), "gang")
    return DrawnCluster(there, first, draw(drawn_pod("asked")))
