"""What devices there are, who holds them, what is left."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import Node, Partial, Pod
from drakit.api.codec.documents import decode_plain
from drakit.base.gates import FeatureGates
from drakit.explain import ClusterObjects, DeviceRow, DeviceState, device_rows, totals

Plain = dict[str, Any]
DRIVER = "gpu.example.com"


def resource(kind: str, name: str, spec: Plain, **rest: Any) -> Any:
    metadata = {"name": name, "uid": f"uid-{name}", **rest.pop("metadata", {})}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec, **rest}
    return decode_plain(document).object


def pool(devices: list[Plain], *, name: str = "node-a", **spec: Any) -> Any:
    about = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return resource(
        "ResourceSlice", f"{name}-gpus", {"driver": DRIVER, "nodeName": name, "pool": about, "devices": devices, **spec}
    )


def allocated_claim(name: str, *results: Plain, pods: tuple[str, ...] = ()) -> Any:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    given = [{"request": "gpu", "driver": DRIVER, "pool": "node-a", **each} for each in results]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    status = {"allocation": {"devices": {"results": given}}, "reservedFor": reserved}
    spec = {"devices": {"requests": [request]}}
    return resource("ResourceClaim", name, spec, status=status, metadata={"namespace": "ml"})


def listed_node(name: str) -> Partial[Node]:
    return Partial.of(Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


def rows(*objects: Any) -> dict[str, DeviceRow]:
    return {row.device: row for row in device_rows(ClusterObjects(objects, gates=FeatureGates.all_on()))}


def test_a_device_is_free_until_a_claim_has_it_and_then_names_its_holders() -> None:
    found = rows(
        listed_node("node-a"),
        pool([{"name": "gpu-0"}, {"name": "gpu-1"}]),
        allocated_claim("train", {"device": "gpu-1"}, pods=("p",)),
    )
    assert found["gpu-0"].state is DeviceState.FREE
    assert found["gpu-0"].holders == ()
    assert (found["gpu-1"].state, found["gpu-1"].node, found["gpu-1"].nodes) == (DeviceState.USED, "node-a", 1)
    [holder] = found["gpu-1"].holders
    assert (holder.namespace, holder.claim, holder.request, holder.pods) == ("ml", "train", "gpu", ("p",))


def test_shares_take_their_part_and_the_last_one_makes_the_device_used() -> None:
    nic = {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10G"}}}

    def share(name: str, amount: str) -> Any:
        return allocated_claim(
            name, {"device": "nic", "shareID": f"{name}-id", "consumedCapacity": {"bandwidth": amount}}
        )

    one = rows(pool([nic]), share("a", "4G"))["nic"]
    assert (one.state, one.capacity["bandwidth"].left) == (DeviceState.SHARED, "6G")
    both = rows(pool([nic]), share("a", "4G"), share("b", "6G"))["nic"]
    assert (both.state, both.capacity["bandwidth"].left) == (DeviceState.USED, "0")
    assert [each.claim for each in both.holders] == ["a", "b"]
    assert both.holders[0].consumed == {"bandwidth": "4G"}


def part(name: str, memory: str) -> Plain:
    return {"name": name, "consumesCounters": [{"counterSet": "card-0", "counters": {"memory": {"value": memory}}}]}


CARD = {"sharedCounters": [{"name": "card-0", "counters": {"memory": {"value": "80Gi"}}}]}


def partitioned(*objects: Any) -> dict[str, DeviceRow]:
    about = {"name": "node-a", "generation": 1, "resourceSliceCount": 2}
    counters = resource("ResourceSlice", "counters", {"driver": DRIVER, "nodeName": "node-a", "pool": about, **CARD})
    parts = [part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi")]
    devices = resource(
        "ResourceSlice", "parts", {"driver": DRIVER, "nodeName": "node-a", "pool": about, "devices": parts}
    )
    return rows(counters, devices, *objects)


def test_a_partition_whose_sibling_holds_the_counters_is_blocked() -> None:
    found = partitioned(allocated_claim("small", {"device": "half-0"}))
    assert {name: row.state.value for name, row in found.items()} == {
        "whole": "blocked", "half-0": "used", "half-1": "free",
    }  # fmt: skip
    assert found["whole"].counters["card-0/memory"].left == "40Gi"


def test_partitions_of_one_card_are_counted_once() -> None:
    free = totals(partitioned().values())
    assert (free.devices, free.cards, free.free, free.used) == (3, 1, 1, 0)
    used = totals(partitioned(allocated_claim("small", {"device": "half-0"})).values())
    assert (used.cards, used.free, used.used) == (1, 0, 1)


def test_taints_of_slices_and_of_rules_are_told_and_keep_a_device_from_being_free() -> None:
    taint = {"key": "broken", "effect": "NoExecute"}
    rule_spec = {
        "deviceSelector": {"device": "gpu-1"},
        "taint": {"key": "repair", "value": "now", "effect": "NoSchedule"},
    }
    document = {
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "r"},
        "spec": rule_spec,
    }  # fmt: skip
    rule = decode_plain(document).object
    found = rows(pool([{"name": "gpu-0", "taints": [taint]}, {"name": "gpu-1"}, {"name": "gpu-2"}]), rule)
    assert found["gpu-0"].taints == ("broken:NoExecute",)
    assert found["gpu-1"].taints == ("repair=now:NoSchedule",)
    assert [row.state.value for row in found.values()] == ["tainted", "tainted", "free"]


def test_admin_access_is_shown_and_leaves_a_device_free() -> None:
    found = rows(pool([{"name": "gpu-0"}]), allocated_claim("debug", {"device": "gpu-0", "adminAccess": True}))["gpu-0"]
    assert found.state is DeviceState.FREE
    assert [(each.claim, each.admin) for each in found.holders] == [("debug", True)]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = pool([{"name": "old"}]), pool([{"name": "new"}], name="node-a")
    import msgspec

    newer = msgspec.structs.replace(new.spec.pool, generation=2)
    new = msgspec.structs.replace(
        new,
        metadata=msgspec.structs.replace(new.metadata, name="second"),
        spec=msgspec.structs.replace(new.spec, pool=newer),
    )
    assert list(rows(old, new)) == ["new"]


def test_classes_are_those_whose_selectors_accept_the_device() -> None:
    fits = resource("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})
    other = resource("DeviceClass", "nic", {"selectors": [{"cel": {"expression": 'device.driver == "nic"'}}]})
    assert rows(pool([{"name": "gpu-0"}]), fits, other)["gpu-0"].classes == ("gpu",)


@pytest.mark.parametrize(("health", "healthy"), [("Unhealthy", False), ("Healthy", True), ("Unknown", True)])
def test_health_is_read_off_the_pods_that_use_a_device(health: str, healthy: bool) -> None:
    status = {
        "containerStatuses": [
            {
                "name": "c",
                "allocatedResourcesStatus": [
                    {"name": "claim:g/gpu", "resources": [{"resourceID": "vendor.com/gpu=x", "health": health}]}
                ],
            }
        ]
    }
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"},
        "spec": {"resourceClaims": [{"name": "g", "resourceClaimName": "train"}], "containers": []}, "status": status,
    }  # fmt: skip
    pod = Partial.of(Pod, document)
    assert (
        rows(pool([{"name": "gpu-0"}]), allocated_claim("train", {"device": "gpu-0"}), pod)["gpu-0"].healthy is healthy
    )


def test_objects_can_be_added_replaced_and_removed_without_touching_the_cluster() -> None:
    before = ClusterObjects([listed_node("node-a"), pool([{"name": "gpu-0"}])], gates=FeatureGates.all_on())
    after = before.with_changes(add=[pool([{"name": "gpu-9"}])], remove=[listed_node("node-a")])
    assert [row.device for row in device_rows(before)] == ["gpu-0"]
    assert [row.device for row in device_rows(after)] == ["gpu-9"]
    assert list(after.all(Node)) == []
