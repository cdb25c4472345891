"""Small random clusters: every feature of the allocator, a handful of devices."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Plain = dict[str, Any]
GPU, NIC = "gpu.example.com", "nic.example.com"
NODE = {"metadata": {"name": "node-a", "labels": {"zone": "z1"}}}
GATES = [
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
]
SELECTORS = [
    "true",
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].?numa.orValue(7) < 2',
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].model == "h100"',
    "device.allowMultipleAllocations == true",
]
ROOT = "resource.kubernetes.io/pcieRoot"
CLASSES = [
    {"metadata": {"name": "any"}, "spec": {}},
    {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}},
]
TAINTS = [
    {"key": "broken", "value": "yes", "effect": "NoSchedule"},
    {"key": "hot", "value": "very", "effect": "NoExecute"},
    {"key": "odd", "effect": "None"},
]
COUNTERS = [{"name": "set", "counters": {"mem": {"value": "8"}, "sm": {"value": "4"}}}]


def sometimes(strategy: st.SearchStrategy[Any], chance: int = 4) -> st.SearchStrategy[Any]:
    """The strategy's values one time in `chance`, otherwise nothing."""
    return st.integers(1, chance).flatmap(lambda drawn: strategy if drawn == chance else st.none())


@st.composite
def attributes(draw: st.DrawFn, *, lists: bool) -> Plain:
    found: Plain = {}
    if draw(st.integers(0, 9)):
        found["model"] = {"string": draw(st.sampled_from(["a100", "h100"]))}
    if (numa := draw(st.integers(0, 3))) < 3:
        found["numa"] = {"int": numa}
    roots = st.sampled_from(["r0", "r1", "r2"])
    if lists and draw(st.booleans()):
        found[ROOT] = {"strings": draw(st.lists(roots, min_size=1, max_size=2, unique=True))}
    elif draw(st.integers(0, 7)):
        found[ROOT] = {"string": draw(roots)}
    return found


@st.composite
def capacities(draw: st.DrawFn) -> Plain:
    memory: Plain = {"value": draw(st.sampled_from(["4", "8"]))}
    policy = draw(st.integers(0, 5))
    if policy == 4:
        memory["requestPolicy"] = {"default": "500m", "validRange": {"min": "500m", "max": "4", "step": "1500m"}}
    elif policy == 5:
        memory["requestPolicy"] = {"default": "-2", "validRange": {"min": "-2", "max": "4"}}
    elif policy == 1:
        memory["requestPolicy"] = {"default": "1", "validRange": {"min": "1", "max": "4", "step": "2"}}
    elif policy == 2:
        memory["requestPolicy"] = {"default": "2", "validValues": ["2", "4"]}
    elif policy == 3:
        memory["requestPolicy"] = {"default": "0", "validRange": {"min": "0"}}
    return {"memory": memory}


@st.composite
def devices(draw: st.DrawFn, name: str, *, lists: bool, counted: bool, per_device: bool) -> Plain:
    device: Plain = {"name": name, "attributes": draw(attributes(lists=lists))}
    shared = draw(st.integers(0, 3)) == 0
    if shared:
        device["allowMultipleAllocations"] = True
    if shared and draw(st.booleans()):
        device["capacity"] = draw(capacities())
    elif draw(st.booleans()):
        device["capacity"] = {"memory": {"value": draw(st.sampled_from(["4", "8"]))}}
    if counted and draw(st.booleans()):
        use = {"mem": {"value": str(draw(st.integers(1, 5)))}, "sm": {"value": str(draw(st.integers(0, 2)))}}
        device["consumesCounters"] = [{"counterSet": "set", "counters": use}]
    if (taints := draw(sometimes(st.lists(st.sampled_from(TAINTS), min_size=1, max_size=2)))) is not None:
        device["taints"] = taints
    if draw(st.integers(0, 9)) == 0:
        device["bindingConditions"] = ["ready"]
    if per_device:
        device |= draw(st.sampled_from([{"nodeName": "node-a"}, {"nodeName": "node-b"}, {"allNodes": True}]))
    return device


@st.composite
def pools(draw: st.DrawFn, number: int, *, lists: bool) -> list[Plain]:
    driver = draw(st.sampled_from([GPU, GPU, NIC]))
    counted = draw(st.integers(0, 2)) == 0
    count = draw(st.integers(1, 2))
    told = count + counted + draw(st.sampled_from([0] * 9 + [1]))
    pool = {"name": f"pool-{number}", "generation": 1, "resourceSliceCount": told}
    slices = []
    for index in range(count):
        where = draw(st.sampled_from(WHERE))
        per_device = "perDeviceNodeSelection" in where
        names = [f"dev-{index}-{position}" for position in range(draw(st.integers(0, 3)))]
        if draw(st.integers(0, 19)) == 0:
            names.append("dev-0-0")
        listed = [draw(devices(name, lists=lists, counted=counted, per_device=per_device)) for name in names]
        spec = {"driver": driver, "pool": dict(pool), "devices": listed, **where}
        slices.append({"metadata": {"name": f"slice-{number}-{index}"}, "spec": spec})
    if counted:
        spec = {"driver": driver, "pool": dict(pool), "nodeName": "node-a", "sharedCounters": COUNTERS}
        slices.append({"metadata": {"name": f"slice-{number}-counters"}, "spec": spec})
    return slices


WHERE: list[Plain] = [
    {"nodeName": "node-a"},
    {"nodeName": "node-a"},
    {"nodeName": "node-a"},
    {"nodeName": "node-b"},
    {"allNodes": True},
    {
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
        }
    },
    {"perDeviceNodeSelection": True},
]


@st.composite
def wants(draw: st.DrawFn) -> Plain:
    """What a request and a sub-request have in common."""
    spec: Plain = {"deviceClassName": draw(st.sampled_from(["any", "any", "gpu"])), "allocationMode": "ExactCount"}
    if draw(st.integers(0, 7)) == 0:
        spec["allocationMode"] = "All"
    else:
        spec["count"] = draw(st.integers(1, 3))
    if (chosen := draw(sometimes(st.sampled_from(SELECTORS), 3))) is not None:
        spec["selectors"] = [{"cel": {"expression": chosen}}]
    if (amount := draw(sometimes(st.sampled_from(["1", "2", "3", "5", "1200m", "-1"]), 5))) is not None:
        name = draw(st.sampled_from(["memory", "memory", f"{GPU}/memory"]))
        spec["capacity"] = {"requests": {name: amount}}
    if draw(st.integers(0, 3)) == 0:
        spec["tolerations"] = [draw(st.sampled_from([{"operator": "Exists"}, {"key": "hot", "value": "very"}]))]
    return spec


@st.composite
def requests(draw: st.DrawFn, number: int) -> Plain:
    name = f"req-{number}"
    if draw(st.integers(0, 3)) == 0:
        subs = [{"name": f"sub-{each}", **draw(wants())} for each in range(draw(st.integers(1, 2)))]
        return {"name": name, "firstAvailable": subs}
    spec = draw(wants())
    if draw(st.integers(0, 7)) == 0:
        spec["adminAccess"] = True
    return {"name": name, "exactly": spec}


@st.composite
def claims(draw: st.DrawFn, number: int) -> Plain:
    asked: Plain = {"requests": [draw(requests(each)) for each in range(draw(st.integers(1, 3)))]}
    kinds = st.sampled_from(["matchAttribute", "distinctAttribute"])
    names = st.sampled_from([ROOT, f"{GPU}/numa", f"{GPU}/model"])
    constraints = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        constraint: Plain = {draw(kinds): draw(names)}
        if draw(st.booleans()):
            constraint["requests"] = [draw(st.sampled_from(["req-0", "req-1", "req-0/sub-0"]))]
        constraints.append(constraint)
    if constraints:
        asked["constraints"] = constraints
    meta = {"name": f"claim-{number}", "namespace": "default", "uid": f"uid-{number}"}
    return {"metadata": meta, "spec": {"devices": asked}}


@st.composite
def holders(draw: st.DrawFn, number: int, device: tuple[str, str, str]) -> Plain:
    """An allocated claim that holds a device, or a share of it."""
    result: Plain = dict(zip(("driver", "pool", "device"), device, strict=True)) | {"request": "r"}
    how = draw(st.integers(0, 3))
    if how == 1:
        result["adminAccess"] = True
    elif how >= 2:
        result["shareID"] = f"share-{number}"
    if how == 3:
        result["consumedCapacity"] = {
            draw(st.sampled_from(["memory", f"{GPU}/memory"])): draw(st.sampled_from(["0", "1", "2", "4", "-3"]))
        }
    meta = {"name": f"old-{number}", "namespace": "default", "uid": f"old-{number}"}
    return {"metadata": meta, "spec": {}, "status": {"allocation": {"devices": {"results": [result]}}}}


@st.composite
def clusters(draw: st.DrawFn) -> Plain:
    """A case in the form of the recorded ones, without an answer."""
    lists = draw(st.booleans())
    slices = [each for number in range(draw(st.integers(1, 3))) for each in draw(pools(number, lists=lists))]
    known = [
        (each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"])
        for each in slices
        for device in each["spec"].get("devices", [])
    ]
    used = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
    return {
        "featureGates": [*GATES, "DRAListTypeAttributes"] if lists else GATES,
        "node": NODE,
        "slices": draw(st.permutations(slices)),
        "classes": CLASSES,
        "allocatedClaims": [draw(holders(number, device)) for number, device in enumerate(used)],
        "claims": [draw(claims(number)) for number in range(draw(st.integers(1, 2)))],
    }


@st.composite
def crowded_clusters(draw: st.DrawFn) -> Plain:
    """Many devices alike and hardly enough of them: much to try, little to find."""
    kinds = [draw(attributes(lists=False)) for _ in range(draw(st.integers(1, 3)))]
    counted = draw(st.booleans())
    listed = []
    for position in range(draw(st.integers(3, 7))):
        device: Plain = {"name": f"dev-{position}", "attributes": draw(st.sampled_from(kinds))}
        if counted:
            use = {"mem": {"value": draw(st.sampled_from(["2", "3"]))}, "sm": {"value": "1"}}
            device["consumesCounters"] = [{"counterSet": "set", "counters": use}]
        if draw(st.integers(0, 4)) == 0:
            device["allowMultipleAllocations"] = True
            device["capacity"] = {"memory": {"value": "4", "requestPolicy": {"default": "2"}}}
        listed.append(device)
    pool = {"name": "pool-0", "generation": 1, "resourceSliceCount": 1 + counted}
    here = {"driver": GPU, "pool": pool, "nodeName": "node-a"}
    slices = [{"metadata": {"name": "slice-0"}, "spec": {**here, "devices": listed}}]
    if counted:
        slices.append({"metadata": {"name": "slice-1"}, "spec": {**here, "sharedCounters": COUNTERS}})
    used = [(GPU, "pool-0", each["name"]) for each in listed if draw(st.integers(0, 5)) == 0]
    return {
        "featureGates": GATES,
        "node": NODE,
        "slices": slices,
        "classes": CLASSES,
        "allocatedClaims": [draw(holders(number, device)) for number, device in enumerate(used)],
        "claims": [draw(claims(number)) for number in range(draw(st.integers(1, 2)))],
    }


@st.composite
def carved_clusters(draw: st.DrawFn) -> Plain:
    """A few cards alike, each cut into parts that exclude each other."""
    cards = draw(st.integers(2, 4))
    sizes = draw(st.lists(st.sampled_from(["4", "3", "2", "2"]), min_size=1, max_size=3))
    sets = [{"name": f"card-{card}", "counters": {"mem": {"value": "4"}}} for card in range(cards)]
    listed: list[Plain] = [
        {
            "name": f"card-{card}-{part}",
            "attributes": {"numa": {"int": int(size)}, ROOT: {"string": f"r{draw(st.integers(0, 5)) // 5}"}},
            "consumesCounters": [{"counterSet": f"card-{card}", "counters": {"mem": {"value": size}}}],
        }
        for card in range(cards)
        for part, size in enumerate(sizes)
    ]
    here = {"driver": GPU, "pool": {"name": "pool-0", "generation": 1, "resourceSliceCount": 2}, "nodeName": "node-a"}
    slices = [
        {"metadata": {"name": "slice-0"}, "spec": {**here, "devices": listed}},
        {"metadata": {"name": "slice-1"}, "spec": {**here, "sharedCounters": sets}},
    ]
    used = [(GPU, "pool-0", each["name"]) for each in listed if draw(st.integers(0, 9)) == 0]
    return {
        "featureGates": GATES,
        "node": NODE,
        "slices": slices,
        "classes": CLASSES,
        "allocatedClaims": [draw(holders(number, device)) for number, device in enumerate(used)],
        "claims": [draw(claims(number)) for number in range(draw(st.integers(1, 2)))],
    }
