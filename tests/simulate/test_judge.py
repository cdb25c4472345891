"""The judge sees what is wrong, from stored documents alone; and says nothing of what is right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from drakit.api import Device, DeviceTaint
from drakit.driverkit import DevicePool
from drakit.simulate.hardware import Hardware
from drakit.simulate.rules.judge import Judge
from drakit.simulate.rules.liveness import unfinished
from drakit.simulate.workload import CPU, LASTING, NEEDS
from drakit.store.records import Record, StoreEvent

PREFIX = "/registry/resource.k8s.io"


class Bench:
    """A judge that is told of documents as a store would."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.time = 0.0
        self.judge = Judge(self.said.append, lambda: self.time)
        self._revision = 0
        self.namespace("default")

    def put(self, key: str, document: dict[str, Any] | None) -> None:
        self._revision += 1
        record = None if document is None else Record(key, json.dumps(document).encode(), 1, self._revision)
        self.judge.stored(StoreEvent(self._revision, key, record, None))

    def namespace(self, name: str, **metadata: Any) -> None:
        self.put(f"/registry/core/namespaces/{name}", {"metadata": {"name": name, **metadata}})

    def quota(self, claims: int, *, counts: bool) -> None:
        """A quota of claims; it counts once its status says what is hard."""
        self.judge.quota = claims
        status = {"hard": {"count/resourceclaims.resource.k8s.io": str(claims)}} if counts else {}
        self.put("/registry/core/resourcequotas/default/claims", {"metadata": {"name": "claims"}, "status": status})

    def group(self, name: str, *, least: int = 0, claims: Sequence[dict[str, Any]] = (), made: str = "") -> None:
        metadata = {"name": name, "namespace": "default", "uid": name}
        policy = {"gang": {"minCount": least}} if least else {"basic": {}}
        status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": made}]} if made else {}
        spec = {"schedulingPolicy": policy, "resourceClaims": list(claims)}
        document = {"metadata": metadata, "spec": spec, "status": status}
        self.put(f"/registry/scheduling.k8s.io/podgroups/default/{name}", document)

    def claim(
        self,
        name: str,
        *devices: dict[str, Any],
        users: tuple[str, ...] = (),
        spec: dict[str, Any] | None = None,
        owner: str = "",
    ) -> None:
        status: dict[str, Any] = {"reservedFor": [{"uid": each, "resource": "pods", "name": each} for each in users]}
        if devices:
            status["allocation"] = {"devices": {"results": list(devices)}}
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        if owner:
            metadata["ownerReferences"] = [{"kind": "PodGroup", "name": owner, "uid": owner, "controller": True}]
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
        metadata = {"name": name, "namespace": "default", "uid": name, "annotations": {NEEDS: "[]"}}
        self.put(f"/registry/core/pods/default/{name}", {"metadata": metadata, "spec": spec, "status": {}})

    def running_pod(self, name: str, claim: str, *, group: str = "") -> None:
        spec: dict[str, Any] = {"nodeName": "n", "resourceClaims": [{"name": "c", "resourceClaimName": claim}]}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        document = {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": spec,
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
    bench.quota(1, counts=True)
    bench.claim("a")
    bench.claim("b")
    assert bench.said == ["2 claims, and the quota is 1"]


def test_claims_from_before_a_quota_counts_may_stay_and_more_may_not_come_later() -> None:
    bench = Bench()
    bench.quota(1, counts=False)
    bench.claim("a")
    bench.claim("b")
    bench.quota(1, counts=True)
    bench.claim("b", users=("p",))
    assert bench.said == []
    bench.put(f"{PREFIX}/resourceclaims/default/b", None)
    bench.claim("c")
    assert bench.said == ["2 claims, and the quota is 1"]


def test_a_revision_that_comes_twice_is_seen() -> None:
    bench = Bench()
    bench.claim("a")
    bench._revision = 1
    bench.claim("b")
    assert bench.said == ["revision 2 was given again"]


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
    bench.group("g", least=2)
    bench.pod("p", group="g")
    bench.pod("p", group="g", node="n")
    assert bench.said == ["a pod of gang g is bound, and only 1 of 2 are there"]


def test_a_gang_that_stays_bound_in_part_is_seen() -> None:
    bench = Bench()
    bench.group("g", least=2)
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


def test_what_a_gate_is_for_is_not_asked_while_somebody_has_it_off() -> None:
    bench = Bench()
    bench.publish([{"name": "x", "taints": [{"key": LASTING, "effect": "NoSchedule"}]}], [])
    for name in gates_go_off_and_come_back(bench, "DRADeviceTaints"):
        bench.claim(name, held("x"), users=("p",))
        bench.claim(name, users=())
    assert bench.said == []
    bench.time += 11
    bench.claim("late", held("x"), users=("p",))
    assert bench.said == ["claim late got x, which is tainted"]


def gates_go_off_and_come_back(bench: Bench, gate: str) -> Iterator[str]:
    """At each moment at which not everybody has the gate."""
    bench.judge.gates.change((gate,), ("server", "scheduler/1"))
    yield "off"
    bench.judge.gates.change((), ("server", "scheduler/1"))
    yield "changed"
    bench.judge.gates.started("server")
    yield "server"
    bench.judge.gates.started("scheduler/1")
    yield "scheduler"


def test_a_taint_that_came_back_is_asked_of_schedulers_that_have_begun_since() -> None:
    bench = Bench()
    list(gates_go_off_and_come_back(bench, "DRADeviceTaints"))
    bench.time += 11
    bench.publish([{"name": "x"}], [])
    bench.publish([{"name": "x", "taints": [{"key": LASTING, "effect": "NoSchedule"}]}], [])
    bench.claim("a", held("x"), users=("p",))
    bench.claim("a", users=())
    assert bench.said == []
    bench.time += 1
    bench.judge.gates.started("scheduler/1")
    bench.claim("a", held("x"), users=("p",))
    assert bench.said == ["claim a got x, which is tainted"]


def test_a_taint_that_came_back_is_asked_of_everybody_when_all_is_calm() -> None:
    bench = Bench()
    list(gates_go_off_and_come_back(bench, "DRADeviceTaints"))
    bench.publish([{"name": "x"}], [])
    bench.publish([{"name": "x", "taints": [{"key": LASTING, "effect": "NoSchedule"}]}], [])
    bench.judge.gates.calm()
    bench.time += 61
    bench.claim("a", held("x"), users=("p",))
    assert bench.said == ["claim a got x, which is tainted"]


def test_binding_conditions_are_asked_again_when_everybody_has_their_gate() -> None:
    bench = Bench()
    bench.claim("a", held("x", bindingConditions=["ready"]), users=("p",))
    for name in gates_go_off_and_come_back(bench, "DRADeviceBindingConditions"):
        bench.pod(name, "a")
        bench.pod(name, "a", node="n")
    assert bench.said == []
    bench.time += 11
    bench.pod("p", "a")
    bench.pod("p", "a", node="n")
    assert bench.said == ["pod p is bound, and x is not ready"]


def test_a_counter_overdrawn_without_its_gate_is_asked_of_those_who_come_after() -> None:
    bench = Bench()
    part = {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": "3"}}}]}
    card = {"name": "card", "counters": {"slices": {"value": "4"}}}
    bench.publish([{"name": name, **part} for name in "xyz"], [card])
    bench.claim("a", held("x"), users=("p",))
    for name in gates_go_off_and_come_back(bench, "DRAPartitionableDevices"):
        bench.claim(name, held("y"), users=("q",))
        bench.claim(name, users=())
    bench.claim("b", held("y"), users=("q",))
    bench.time += 11
    bench.claim("a", held("x"), users=("p", "r"))
    assert bench.said == []
    bench.claim("c", held("z"), users=("s",))
    assert bench.said == ["9 of 4 of counter d/n/card/slices are taken"]


def test_a_capacity_overdrawn_without_its_gate_is_asked_of_those_who_come_after() -> None:
    bench = Bench()
    bench.publish([{"name": "x", "capacity": {"bandwidth": {"value": "10"}}}], [])
    share = {"consumedCapacity": {"bandwidth": "6"}}
    bench.claim("a", held("x", shareID="a", **share), users=("p",))
    list(gates_go_off_and_come_back(bench, "DRAConsumableCapacity"))
    bench.claim("b", held("x", shareID="b", **share), users=("q",))
    bench.time += 11
    bench.claim("b", held("x", shareID="b", **share), users=("q", "r"))
    assert bench.said == []
    bench.claim("c", held("x", shareID="c", **share), users=("s",))
    assert bench.said == ["18 of 10 of the capacity of d/n/x are taken"]


def test_a_device_that_one_has_alone_and_another_has_a_share_of_is_seen() -> None:
    bench = Bench()
    bench.claim("a", held("x", shareID="a"), users=("p",))
    bench.claim("b", held("x"), users=("q",))
    assert bench.said == ["device d/n/x is held by default/b alone, and default/a has a share"]


def test_a_share_that_a_server_without_the_gate_made_the_whole_is_seen_where_the_server_has_a_guard() -> None:
    bench = Bench()
    bench.judge.guarded = False
    bench.claim("a", held("x", shareID="a"), users=("p",))
    for name in gates_go_off_and_come_back(bench, "DRAConsumableCapacity"):
        bench.claim(name, held("x"), users=("q",))
        bench.claim(name, users=())
    assert bench.said == []
    bench.time += 11
    bench.claim("b", held("x"), users=("q",))
    assert bench.said == ["device d/n/x is held by default/b alone, and default/a has a share"]


def test_a_note_that_is_overwritten_is_seen() -> None:
    bench = Bench()
    document: dict[str, Any] = {"metadata": {"name": "n", "uid": "u", "annotations": {"mine": ""}}}
    bench.put("/registry/core/nodes/n", document)
    bench.judge.note_taken("u", "mine")
    assert bench.said == []
    bench.put("/registry/core/nodes/n", {"metadata": {"name": "n", "uid": "u"}})
    assert bench.said == ["mine of n was acknowledged, and somebody has overwritten it"]
    bench.put("/registry/core/nodes/n", {"metadata": {"name": "n", "uid": "another"}})
    assert len(bench.said) == 1


def test_a_note_that_was_overwritten_before_its_author_heard_is_seen() -> None:
    bench = Bench()
    bench.put("/registry/core/nodes/n", {"metadata": {"name": "n", "uid": "u"}})
    bench.judge.note_taken("u", "mine")
    assert bench.said == ["mine of n was acknowledged, and somebody has overwritten it"]


def test_what_is_made_in_a_namespace_that_ends_is_seen() -> None:
    bench = Bench()
    bench.namespace("team")
    bench.put(f"{PREFIX}/resourceclaimtemplates/team/a", {})
    bench.namespace("team", deletionTimestamp="now")
    bench.put(f"{PREFIX}/resourceclaimtemplates/team/a", {})
    assert bench.said == []
    assert unfinished(bench.judge) == ["namespace team is being deleted and does not go"]
    bench.put("/registry/core/events/team/e", {})
    assert bench.said == ["/registry/core/events/team/e is made in namespace team, which is being deleted"]


def test_what_is_left_of_a_namespace_that_is_gone_is_seen() -> None:
    bench = Bench()
    bench.namespace("team")
    bench.put("/registry/core/events/team/e", {})
    bench.put("/registry/core/namespaces/team", None)
    bench.put("/registry/core/events/team/f", {})
    assert bench.said == [
        "namespace team is gone, and /registry/core/events/team/e is there",
        "/registry/core/events/team/f is made in namespace team, which is not there",
    ]
    assert unfinished(bench.judge) == []


ENTRY = {"name": "c", "resourceClaimName": "a"}


def test_a_claim_of_a_group_that_is_reserved_for_a_pod_is_seen() -> None:
    bench = Bench()
    bench.group("g", claims=[ENTRY])
    bench.pod("p", "a", group="g")
    bench.claim("a", held("x"), users=("g",))
    assert bench.said == []
    bench.claim("a", held("x"), users=("g", "p"))
    assert bench.said == ["claim a is its group's, and is reserved for pod p"]


def test_a_pod_may_run_with_what_is_reserved_for_its_group() -> None:
    bench = Bench()
    bench.group("g", claims=[ENTRY])
    bench.claim("a", held("x"), users=("g",))
    bench.running_pod("p", "a", group="g")
    assert bench.said == []
    bench.running_pod("q", "a", group="another")
    assert bench.said == ["pod default/q runs, and its claim is not allocated and reserved for it"]


def test_a_claim_whose_group_is_gone_is_seen() -> None:
    bench = Bench()
    bench.group("g", claims=[ENTRY])
    bench.claim("a", held("x"), users=("g",), owner="g")
    assert unfinished(bench.judge) == []
    bench.put("/registry/scheduling.k8s.io/podgroups/default/g", None)
    assert unfinished(bench.judge) == [
        "claim a is reserved for a pod that has ended, or a group that is gone",
        "claim a was made for g, which has ended or is gone",
    ]


def test_a_pod_that_has_another_claim_than_its_group_is_seen() -> None:
    bench = Bench()
    entry = {"name": "c", "resourceClaimTemplateName": "t"}
    bench.group("g", claims=[entry], made="a")
    for name, claim in (("p", "a"), ("q", "b")):
        metadata = {"name": name, "namespace": "default", "uid": name}
        status = {"phase": "Running", "resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim}]}
        spec = {"resourceClaims": [entry], "schedulingGroup": {"podGroupName": "g"}}
        bench.put(f"/registry/core/pods/default/{name}", {"metadata": metadata, "spec": spec, "status": status})
    assert unfinished(bench.judge) == ["pod q has claim b, and its group has a"]


def test_a_pod_of_a_group_that_waits_for_a_claim_with_devices_is_seen() -> None:
    bench = Bench()
    bench.judge.machines["n"] = Empty()  # type: ignore[assignment]
    bench.group("g", claims=[ENTRY])
    bench.claim("a", held("x"), users=("g",))
    bench.pod("p", "a", group="g")
    assert unfinished(bench.judge) == ["pod p is pending and fits on n"]
    bench.put("/registry/scheduling.k8s.io/podgroups/default/g", None)
    assert not any("fits" in each for each in unfinished(bench.judge))


def test_a_device_that_is_prepared_for_a_claim_that_no_pod_has_is_seen() -> None:
    bench, machine = Bench(), Empty()
    machine.hardware["d"] = hardware = Hardware("d", [])
    bench.judge.machines["n"] = machine  # type: ignore[assignment]
    hardware.in_use["n", "x"] = {"uid-a": None}  # type: ignore[dict-item]
    bench.group("g", claims=[ENTRY])
    bench.claim("a", held("x"), users=("g",))
    bench.running_pod("p", "a", group="g")
    assert unfinished(bench.judge) == []
    bench.put("/registry/core/pods/default/p", None)
    assert unfinished(bench.judge) == ["device x of n is prepared for claim uid-a, which no pod there has"]


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
