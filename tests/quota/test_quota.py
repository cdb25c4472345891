"""What objects count against quotas."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import DeviceClass, Pod, ResourceClaim, ResourceQuota, from_plain
from drakit.base.quantity import Quantity
from drakit.quota import class_names, covers, excess, increase, owner_name, tracked, unknown, unspecified, usage
from tests.builders.objects import claim_of, pod_of

CLASS = from_plain(
    DeviceClass, {"metadata": {"name": "mygpuclass"}, "spec": {"extendedResourceName": "example.com/gpu"}}
)
UNNAMED = from_plain(DeviceClass, {"metadata": {"name": "mygpuclass"}})
DEVICES = "mygpuclass.deviceclass.resource.k8s.io/devices"
EXPLICIT = "requests.example.com/gpu"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/mygpuclass"


def classes(name: str) -> DeviceClass | None:
    return CLASS if name == CLASS.metadata.name else None


def claim_for(*requests: dict[str, Any]) -> ResourceClaim:
    return claim_of(*({"name": f"r{index}", **request} for index, request in enumerate(requests)))


def exactly(count: int = 1, device_class: str = "mygpuclass") -> dict[str, Any]:
    return {"exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}


def asking_pod(requests: Any = None, limits: Any = None, *, phase: str = "") -> Pod:
    container = {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return pod_of(container, status={"phase": phase})


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> ResourceQuota:
    status = {"hard": hard, "used": used or dict.fromkeys(hard, "0")}
    return from_plain(ResourceQuota, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}, "status": status})


def counted(obj: Any, owner: Pod | None = None) -> dict[str, int]:
    plural, group = ("pods", "") if isinstance(obj, Pod) else ("resourceclaims", "resource.k8s.io")
    return {name: amount.value for name, amount in usage(plural, group, obj, classes, owner=owner).items()}


def test_the_worked_example_of_extended_resources_comes_out_as_5_4_4() -> None:
    by_plugin = asking_pod(requests={"example.com/gpu": "1"})
    explicit = asking_pod(requests={"example.com/gpu": "1"})
    implicit = asking_pod(requests={"deviceclass.resource.kubernetes.io/mygpuclass": "1"})
    everything = [
        counted(by_plugin),
        counted(explicit),
        counted(claim_for(exactly()), owner=explicit),
        counted(implicit),
        counted(claim_for(exactly()), owner=implicit),
        counted(claim_for(exactly())),
        counted(claim_for(exactly())),
    ]
    totals = [sum(each.get(name, 0) for each in everything) for name in (EXPLICIT, IMPLICIT, DEVICES)]
    assert totals == [5, 4, 4]


def test_all_counts_as_the_most_that_a_claim_can_have() -> None:
    everything = {"exactly": {"deviceClassName": "mygpuclass", "allocationMode": "All"}}
    assert counted(claim_for(everything))[DEVICES] == 32


def test_a_prioritized_list_counts_its_largest_alternative_per_class() -> None:
    alternatives = [
        {"name": "x", "deviceClassName": "mygpuclass", "count": 1},
        {"name": "y", "deviceClassName": "mygpuclass", "count": 3},
        {"name": "z", "deviceClassName": "other", "count": 8},
    ]
    amounts = counted(claim_for({"firstAvailable": alternatives}, exactly(2)))
    assert (amounts[DEVICES], amounts["other.deviceclass.resource.k8s.io/devices"]) == (5, 8)


def test_no_quota_on_an_implicit_name_is_about_claims_of_a_class_that_is_not_there() -> None:
    amounts = counted(claim_for(exactly(2, "other")))
    assert amounts == {
        "count/resourceclaims.resource.k8s.io": 1,
        "other.deviceclass.resource.k8s.io/devices": 2,
        "requests.deviceclass.resource.kubernetes.io/other": 2,
    }
    claims = ("resourceclaims", "resource.k8s.io")
    assert not tracked("requests.deviceclass.resource.kubernetes.io/other", *claims, [CLASS])


def test_a_pod_counts_what_it_asks_for_until_it_has_ended() -> None:
    asked = {"cpu": "2", "example.com/gpu": "1"}, {"cpu": "3"}
    assert counted(asking_pod(*asked)) == {
        "count/pods": 1, "pods": 1, "cpu": 2, "requests.cpu": 2, "limits.cpu": 3, EXPLICIT: 1,
    }  # fmt: skip
    assert counted(asking_pod(*asked, phase="Succeeded")) == {"count/pods": 1}


def test_an_excess_names_what_is_over_and_nothing_else() -> None:
    limited = quota({DEVICES: "3", "count/resourceclaims.resource.k8s.io": "9"}, {DEVICES: "2"})
    added = {DEVICES: Quantity.of(2), "count/resourceclaims.resource.k8s.io": Quantity.of(1)}
    assert str(excess(limited, added)) == (
        f"exceeded quota: q, requested: {DEVICES}=2, used: {DEVICES}=2, limited: {DEVICES}=3"
    )
    assert excess(limited, {DEVICES: Quantity.of(1)}) is None


def test_nothing_is_enforced_before_the_status_is_known() -> None:
    fresh = from_plain(ResourceQuota, {"metadata": {"name": "q"}, "spec": {"hard": {DEVICES: "0"}}})
    assert excess(fresh, {DEVICES: Quantity.of(1)}) is None


def test_only_an_increase_is_charged() -> None:
    one, two = Quantity.of(1), Quantity.of(2)
    assert increase({"a": two, "b": one, "c": one}, {"a": one, "b": one, "d": one}) == {"a": one, "c": one}


@pytest.mark.parametrize(
    ("scopes", "best_effort", "expected"),
    [
        (["BestEffort"], True, True),
        (["BestEffort"], False, False),
        (["NotBestEffort"], False, True),
        (["NotTerminating", "NotBestEffort"], False, True),
        (["Terminating"], True, False),
        (["Unheard"], True, False),
    ],
)
def test_scopes_choose_pods(scopes: list[str], best_effort: bool, expected: bool) -> None:
    candidate = asking_pod() if best_effort else asking_pod(requests={"cpu": "1"})
    assert covers(quota({"pods": "1"}, scopes=scopes), candidate) is expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ["high"], True), ("NotIn", ["high"], False), ("Exists", [], True), ("DoesNotExist", [], False)],
)
def test_a_scope_selector_chooses_by_priority_class(operator: str, values: list[str], expected: bool) -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}
    important = from_plain(Pod, {"spec": {"priorityClassName": "high"}})
    assert covers(quota({"pods": "1"}, scopeSelector=selector), important) is expected


def test_a_quota_with_scopes_is_not_about_claims() -> None:
    assert not covers(quota({"pods": "1"}, scopes=["BestEffort"]), claim_for(exactly()))
    assert covers(quota({DEVICES: "1"}), claim_for(exactly()))


def test_a_pod_must_say_what_the_quota_limits() -> None:
    limited = quota({"cpu": "4", "limits.memory": "1Gi", EXPLICIT: "1"})
    assert unspecified(limited, asking_pod()) == "failed quota: q: must specify cpu for: c; limits.memory for: c"
    assert unspecified(limited, asking_pod(requests={"cpu": "1"}, limits={"memory": "1Mi"})) == ""
    assert unspecified(limited, claim_for(exactly())) == ""


def test_names_that_a_resource_can_count_against() -> None:
    claims = ("resourceclaims", "resource.k8s.io")
    assert tracked(DEVICES, *claims)
    assert tracked(EXPLICIT, *claims, [CLASS])
    assert tracked(IMPLICIT, *claims, [CLASS])
    assert not tracked(EXPLICIT, *claims)
    assert not tracked(IMPLICIT, *claims, [UNNAMED])
    assert tracked("count/resourceclaims.resource.k8s.io", *claims)
    assert not tracked("requests.cpu", *claims)
    assert tracked("requests.cpu", "pods", "")
    assert tracked("secrets", "secrets", "")
    assert not tracked("pods", "secrets", "")


def test_usage_that_nobody_has_counted_yet_is_told() -> None:
    half = quota({DEVICES: "1", IMPLICIT: "1"}, {DEVICES: "0"})
    assert unknown(half, [IMPLICIT, DEVICES]) == f"status unknown for quota: q, resources: {DEVICES},{IMPLICIT}"
    assert unknown(half, [DEVICES]) == ""


def test_the_classes_of_a_claim_are_those_of_all_its_alternatives() -> None:
    alternatives = [{"name": "x", "deviceClassName": "a"}, {"name": "y", "deviceClassName": "b"}]
    assert class_names(claim_for({"firstAvailable": alternatives}, exactly(1, "c"))) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("annotation", "kind", "expected"),
    [("true", "Pod", ("p", "u")), ("false", "Pod", ("", "")), ("true", "Node", ("", ""))],
)
def test_a_claim_says_for_which_pod_it_was_made(annotation: str, kind: str, expected: tuple[str, str]) -> None:
    owner = {"apiVersion": "v1", "kind": kind, "name": "p", "uid": "u", "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": annotation}
    metadata = {"name": "c", "annotations": annotations, "ownerReferences": [owner]}
    assert owner_name(from_plain(ResourceClaim, {"metadata": metadata})) == expected
