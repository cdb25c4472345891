"""The judge sees what is wrong, from stored documents alone; and says nothing of what is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drakit.api import Device, DeviceTaint
from drakit.driverkit import DevicePool
from drakit.simulate.hardware import Hardware
from drakit.simulate.rules.judge import Judge
from drakit.simulate.rules.liveness import unfinished
from drakit.simulate.workload import CPU, LASTING
from drakit.store.records import Record, StoreEvent

PREFIX = "/registry/resource.k8s.io"


class Bench:
    """A judge that is told of documents as a store would."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.judge = Judge(self.said.append)
        self._revision = 0

    def put(self, key: str, document: dict[str, Any] | None) -> None:
        self._revision += 1
        record = None if document is None else Record(key, json.dumps(document).encode(), 1, self._revision)
        self.judge.stored(StoreEvent(self._revision, key, record, None))

    def claim(
        self, name: str, *devices: dict[str, Any], users: tuple[str, ...] = (), spec: dict[str, Any] | None = None
    ) -> None:
        status: dict[str, Any] = {"reservedFor": [{"uid": each, "resource": "pods", "name": each} for each in users]}
        if devices:
            status["allocation"] = {"devices": {"results": list(devices)}}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        self.put(
            f"{PREFIX}/resourceclaims/default/{name}", {"metadata": metadata, "spec": spec or {}, "status": status}
        )

    def pod(self, name: str, claim: str = "", *, node: str = "", group: str = "", cpus: int = 0) -> None:
        spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpus)}}}]}
        if claim:
            spec["resourceClaims"] = [{"name": "c", "resourceClaimName": claim}]
        if node:
            spec["nodeName"] = node
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        metadata = {"name": name, "namespace": "default", "uid": name}
        self.put(f"/registry/core/pods/default/{name}", {"metadata": metadata, "spec": spec, "status": {}})

    def running_pod(self, name: str, claim: str) -> None:
        document = {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"nodeName": "n", "resourceClaims": [{"name": "c", "resourceClaimName": claim}]},
            "status": {"phase": "Running"},
        }
        self.put(f"/registry/core/pods/default/{name}", document)

    def publish(self, devices: list[dict[str, Any]], counters: list[dict[str, Any]]) -> None:
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "pool": pool, "nodeName": "n", "devices": devices, "sharedCounters": counters}
        self.put(f"{PREFIX}/resourceslices/s", {"metadata": {"name": "s"}, "spec": spec})


def held(device: str, **more: Any) -> dict[str, Any]:
    return {"driver": "d", "pool": "n", "device": device, "request": "r", **more}


def test_a_device_that_is_held_twice_is_seen() -> None:
    bench = Bench()
    bench.claim("a", held("x"), users=("p",))
    assert bench.said == []
    bench.claim("b", held("x"), users=("q",))
    assert bench.said == ["device d/n/x is held by default/a and default/b"]


def test_admin_access_is_no_use() -> None:
    bench = Bench()
    bench.claim("a", held("x"), users=("p",))
    bench.claim("b", held("x", adminAccess=True), users=("q",))
    assert bench.said == []


def test_a_counter_that_is_overdrawn_is_seen() -> None:
    bench = Bench()
    part = {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": "3"}}}]}
    card = {"name": "card", "counters": {"slices": {"value": "4"}}}
    bench.publish([{"name": "x", **part}, {"name": "y", **part}], [card])
    bench.claim("a", held("x"), users=("p",))
    bench.claim("b", held("y"), users=("q",))
    assert bench.said == ["6 of 4 of counter d/n/card/slices are taken"]


def test_a_capacity_that_is_overdrawn_is_seen() -> None:
    bench = Bench()
    bench.publish([{"name": "x", "capacity": {"bandwidth": {"value": "10"}}}], [])
    for name in ("a", "b"):
        bench.claim(name, held("x", shareID=name, consumedCapacity={"bandwidth": "6"}), users=(name,))
    assert bench.said == ["12 of 10 of the capacity of d/n/x are taken"]


def test_an_allocation_that_changes_while_it_is_reserved_is_seen() -> None:
    bench = Bench()
    bench.claim("a", held("x"), users=("p",))
    bench.claim("a", held("y"), users=("p",))
    assert bench.said == ["the allocation of default/a changed while it was reserved"]


def test_a_pod_that_runs_without_its_reservation_is_seen() -> None:
    bench = Bench()
    bench.claim("a", held("x"), users=("other",))
    bench.running_pod("p", "a")
    assert bench.said == ["pod default/p runs, and its claim is not allocated and reserved for it"]


def test_a_quota_that_is_exceeded_is_seen() -> None:
    bench = Bench()
    bench.judge.quota = 1
    bench.claim("a")
    bench.claim("b")
    assert bench.said == ["2 claims, and the quota is 1"]


def test_a_revision_that_comes_twice_is_seen() -> None:
    bench = Bench()
    bench.claim("a")
    bench._revision = 0
    bench.claim("b")
    assert bench.said == ["revision 1 was given again"]


def test_counters_of_a_device_that_was_withdrawn_are_nobodys() -> None:
    bench = Bench()
    part = {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": "3"}}}]}
    card = {"name": "card", "counters": {"slices": {"value": "4"}}}
    bench.publish([{"name": "x", **part}, {"name": "y", **part}], [card])
    bench.claim("a", held("x"), users=("p",))
    bench.publish([{"name": "y", **part}], [card])
    bench.claim("b", held("y"), users=("q",))
    assert bench.said == []


def test_devices_that_do_not_match_are_seen() -> None:
    bench = Bench()
    bench.publish([{"name": name, "attributes": {"model": {"string": name}}} for name in "xy"], [])
    spec = {"devices": {"constraints": [{"matchAttribute": "d/model"}]}}
    bench.claim("a", users=(), spec=spec)
    bench.claim("a", held("x"), held("y"), users=("p",), spec=spec)
    assert bench.said == ["the devices of claim a do not have the same model"]


def test_a_device_with_a_taint_that_nobody_tolerates_is_seen() -> None:
    bench = Bench()
    bench.publish([{"name": "x", "taints": [{"key": LASTING, "effect": "NoSchedule"}]}], [])
    bench.claim("a", held("x", tolerations=[{"operator": "Exists"}]), users=("p",))
    assert bench.said == []
    bench.claim("b", held("x", adminAccess=True), users=("p",))
    bench.claim("a", users=())
    bench.claim("c", held("x"), users=("q",))
    assert bench.said == ["claim c got x, which is tainted"]


def test_a_pod_that_is_bound_before_its_device_is_ready_is_seen() -> None:
    bench = Bench()
    bench.claim("a", held("x", bindingConditions=["ready"]), users=("p",))
    bench.pod("p", "a")
    bench.pod("p", "a", node="n")
    assert bench.said == ["pod p is bound, and x is not ready"]


def test_a_gang_of_which_too_few_are_there_is_seen() -> None:
    bench = Bench()
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    bench.put("/registry/scheduling.k8s.io/podgroups/default/g", {"metadata": {"name": "g"}, "spec": spec})
    bench.pod("p", group="g")
    bench.pod("p", group="g", node="n")
    assert bench.said == ["a pod of gang g is bound, and only 1 of 2 are there"]


def test_a_gang_that_stays_bound_in_part_is_seen() -> None:
    bench = Bench()
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    bench.put("/registry/scheduling.k8s.io/podgroups/default/g", {"metadata": {"name": "g"}, "spec": spec})
    for name in "pq":
        bench.pod(name, group="g")
    bench.pod("p", group="g", node="n")
    assert "1 pods of gang g are bound, and it needs 2" in unfinished(bench.judge)
    bench.pod("q", group="g", node="n")
    assert not any("gang" in each for each in unfinished(bench.judge))


@pytest.mark.parametrize(
    ("published", "said"),
    [
        ([{"name": "x", "taints": [{"key": "k"}]}], []),
        ([{"name": "x"}], ["x of n is not published as it is"]),
        ([{"name": "y"}], ["x of n is not published"]),
    ],
)
def test_slices_that_do_not_say_what_is_there_are_seen(published: list[dict[str, Any]], said: list[str]) -> None:
    bench, machine = Bench(), Empty()
    taint = DeviceTaint(key="k", effect="NoSchedule")
    machine.hardware["d"] = Hardware("d", [DevicePool(name="n", devices=(Device(name="x", taints=(taint,)),))])
    bench.judge.machines["n"] = machine  # type: ignore[assignment]
    bench.publish(published, [])
    assert unfinished(bench.judge) == said


def test_what_a_gate_is_for_is_not_asked_of_a_run_in_which_it_was_off() -> None:
    bench = Bench()
    bench.judge.loose.add("DRADeviceTaints")
    bench.publish([{"name": "x", "taints": [{"key": LASTING, "effect": "NoSchedule"}]}], [])
    bench.claim("a", held("x"), users=("p",))
    assert bench.said == []


def test_processors_that_are_given_away_twice_are_seen() -> None:
    bench = Bench()
    share = {"driver": CPU, "shareID": "s", "consumedCapacity": {"cpu": "30"}}
    bench.put(f"{PREFIX}/resourceslices/c", {"metadata": {"name": "c"}, "spec": {
        "driver": CPU, "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n",
        "devices": [{"name": "x", "capacity": {"cpu": {"value": "32"}}}]}})  # fmt: skip
    bench.claim("a", {**held("x"), **share}, users=("p",))
    bench.pod("p", "a", cpus=2)
    bench.pod("p", "a", cpus=2, node="n")
    assert bench.said == []
    bench.pod("q", cpus=1, node="n")
    assert bench.said == ["33 of the 32 processors of n are taken"]


@pytest.mark.parametrize(("users", "said"), [((), "is allocated and nobody"), (("gone",), "for a pod that has ended")])
def test_a_claim_that_is_never_released_is_seen(users: tuple[str, ...], said: str) -> None:
    bench = Bench()
    bench.claim("a", held("x"), users=users)
    assert any(said in each for each in unfinished(bench.judge))


def test_a_pod_that_fits_and_waits_is_seen() -> None:
    bench = Bench()
    bench.judge.machines["n"] = None  # type: ignore[assignment]
    bench.publish([{"name": "x"}], [])
    bench.claim("a")
    document = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "p",
            "annotations": {"sim.drakit.dev/needs": json.dumps([{"driver": "d", "count": 1}])},
        },
        "spec": {"containers": [], "resourceClaims": [{"name": "c", "resourceClaimName": "a"}]},
        "status": {"phase": "Pending"},
    }
    bench.put("/registry/core/pods/default/p", document)
    del bench.judge.machines["n"]
    assert unfinished(bench.judge) == []
    bench.judge.machines["n"] = Empty()  # type: ignore[assignment]
    assert unfinished(bench.judge) == ["pod p is pending and fits on n"]
    bench.claim("b", held("x"), users=("p",))
    assert not any("fits" in each for each in unfinished(bench.judge))


class Empty:
    """A machine without devices of its own."""

    def __init__(self) -> None:
        self.hardware: dict[str, Any] = {}
