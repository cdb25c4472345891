"""Fields of features that are off."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import to_plain
from drakit.base.gates import FeatureGates
from drakit.validation import drop_deallocated_devices, drop_disabled_fields, validate_create
from tests.validation.objects import (
    allocation_of,
    defaulted_claim,
    defaulted_class,
    defaulted_pod,
    device_slice,
    made,
    with_status,
)

EVERYTHING = FeatureGates.all_on()

TOLERATING = {"deviceClassName": "gpu", "tolerations": [{"operator": "Exists"}]}
PLAIN = {"deviceClassName": "gpu"}
COUNTERS = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
POLICY = {"m": {"value": "2", "requestPolicy": {"default": "1"}}}
NODES: list[dict[str, Any]] = [{"nodeName": "n"}, {"allNodes": True}, {"nodeSelector": {"nodeSelectorTerms": []}}]
RULES: list[tuple[str, Any, Any]] = [
    (
        "DRAPrioritizedList",
        defaulted_claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}),
        defaulted_claim({"name": "r"}),
    ),
    ("DRAAdminAccess", defaulted_claim({"name": "r", "exactly": {**PLAIN, "adminAccess": True}}), defaulted_claim()),
    ("DRADeviceTaints", defaulted_claim({"name": "r", "exactly": TOLERATING}), defaulted_claim()),
    (
        "DRAConsumableCapacity",
        defaulted_claim({"name": "r", "exactly": {**PLAIN, "capacity": {"requests": {"m": "1"}}}}),
        defaulted_claim(),
    ),
    (
        "DRAConsumableCapacity",
        defaulted_claim(constraints=[{"distinctAttribute": "a.b/c"}]),
        defaulted_claim(constraints=[{}]),
    ),
    (
        "DRAResourceClaimDeviceStatus",
        with_status(defaulted_claim(), devices=[{"driver": "a.b", "pool": "p", "device": "d"}]),
        defaulted_claim(),
    ),
    (
        "DRADeviceBindingConditions",
        with_status(
            defaulted_claim(), allocation=allocation_of("d", bindingConditions=["a"], bindingFailureConditions=["b"])
        ),
        with_status(defaulted_claim(), allocation=allocation_of("d")),
    ),
    (
        "DRAConsumableCapacity",
        with_status(defaulted_claim(), allocation=allocation_of("d", shareID="u", consumedCapacity={"m": "1"})),
        with_status(defaulted_claim(), allocation=allocation_of("d")),
    ),
    (
        "DRAConsumableCapacity",
        with_status(
            defaulted_claim(),
            allocation=allocation_of("d"),
            devices=[{"driver": "a.b", "pool": "p", "device": "d", "shareID": "u"}],
        ),
        with_status(
            defaulted_claim(), allocation=allocation_of("d"), devices=[{"driver": "a.b", "pool": "p", "device": "d"}]
        ),
    ),
    (
        "DRADeviceTaints",
        device_slice({"name": "d", "taints": [{"key": "k", "effect": "None"}]}),
        device_slice({"name": "d"}),
    ),
    ("DRAPartitionableDevices", device_slice({"name": "d", "consumesCounters": COUNTERS}), device_slice({"name": "d"})),
    ("DRAPartitionableDevices", device_slice(perDeviceNodeSelection=True), device_slice()),
    ("DRADeviceBindingConditions", device_slice({"name": "d", "bindsToNode": True}), device_slice({"name": "d"})),
    (
        "DRAConsumableCapacity",
        device_slice({"name": "d", "allowMultipleAllocations": True, "capacity": POLICY}),
        device_slice({"name": "d", "capacity": {"m": {"value": "2"}}}),
    ),
    (
        "DRANodeAllocatableResources",
        device_slice({"name": "d", "nodeAllocatableResourceMappings": {"cpu": {}}}),
        device_slice({"name": "d"}),
    ),
    (
        "DRAListTypeAttributes",
        device_slice({"name": "d", "attributes": {"a": {"ints": [1]}}}),
        device_slice({"name": "d", "attributes": {"a": {}}}),
    ),
    ("DRAExtendedResource", defaulted_class(extendedResourceName="a.b/c"), defaulted_class()),
    (
        "DRADeviceTaints",
        defaulted_claim({"name": "r", "firstAvailable": [{"name": "s", **TOLERATING}]}),
        defaulted_claim({"name": "r", "firstAvailable": [{"name": "s", **PLAIN}]}),
    ),
    (
        "DRAConsumableCapacity",
        defaulted_claim(
            {"name": "r", "firstAvailable": [{"name": "s", **PLAIN, "capacity": {"requests": {"m": "1"}}}]}
        ),
        defaulted_claim({"name": "r", "firstAvailable": [{"name": "s", **PLAIN}]}),
    ),
    (
        "DRAAdminAccess",
        with_status(defaulted_claim(), allocation=allocation_of("d", adminAccess=True)),
        with_status(defaulted_claim(), allocation=allocation_of("d")),
    ),
    (
        "DRADeviceTaints",
        with_status(defaulted_claim(), allocation=allocation_of("d", tolerations=[{"operator": "Exists"}])),
        with_status(defaulted_claim(), allocation=allocation_of("d")),
    ),
    (
        "DRADeviceBindingConditions",
        with_status(
            defaulted_claim(), allocation={**allocation_of("d"), "allocationTimestamp": "2026-01-02T03:04:05Z"}
        ),
        with_status(defaulted_claim(), allocation=allocation_of("d")),
    ),
    *(
        ("DRAPartitionableDevices", device_slice({"name": "d", **nodes}), device_slice({"name": "d"}))
        for nodes in NODES
    ),
    (
        "DRAPartitionableDevices",
        device_slice(sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}]),
        device_slice(),
    ),
    *(
        ("DRADeviceBindingConditions", device_slice({"name": "d", name: ["a.b/c"]}), device_slice({"name": "d"}))
        for name in ("bindingConditions", "bindingFailureConditions")
    ),
    *(
        (
            "DRAListTypeAttributes",
            device_slice({"name": "d", "attributes": {"a": {name: [value]}}}),
            device_slice({"name": "d", "attributes": {"a": {}}}),
        )
        for name, value in (("bools", True), ("strings", "x"), ("versions", "1.2.3"))
    ),
]


def without(gate: str) -> FeatureGates:
    return FeatureGates(EVERYTHING.on - {gate})


@pytest.mark.parametrize(("gate", "sent", "stored"), RULES, ids=[f"{rule[0]}-{i}" for i, rule in enumerate(RULES)])
def test_a_field_whose_gate_is_off_goes_from_a_new_object(gate: str, sent: Any, stored: Any) -> None:
    assert to_plain(drop_disabled_fields(sent, None, without(gate))) == to_plain(stored)
    assert drop_disabled_fields(sent, None, EVERYTHING) is sent


@pytest.mark.parametrize(("gate", "sent", "stored"), RULES, ids=[f"{rule[0]}-{i}" for i, rule in enumerate(RULES)])
def test_a_field_that_is_in_use_stays_though_its_gate_is_off(gate: str, sent: Any, stored: Any) -> None:
    assert drop_disabled_fields(sent, sent, without(gate)) is sent
    assert to_plain(drop_disabled_fields(sent, stored, without(gate))) == to_plain(stored)


def test_binding_conditions_need_device_status_too() -> None:
    sent = device_slice({"name": "d", "bindsToNode": True})
    dropped = drop_disabled_fields(sent, None, without("DRAResourceClaimDeviceStatus"))
    assert dropped.spec.devices[0].binds_to_node is None


def test_templates_lose_what_claims_lose() -> None:
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": TOLERATING}]}}}
    template = made("ResourceClaimTemplate", {"metadata": {"namespace": "ns"}, "spec": spec})
    dropped = drop_disabled_fields(template, None, without("DRADeviceTaints"))
    assert dropped.spec.spec.devices.requests[0].exactly.tolerations == ()
    assert drop_disabled_fields(template, template, without("DRADeviceTaints")) is template


def test_groups_and_workloads_lose_their_claims() -> None:
    claims = [{"name": "a", "resourceClaimName": "b"}]
    policy: dict[str, Any] = {"basic": {}}
    version = "scheduling.k8s.io/v1alpha2"
    spec = {"schedulingPolicy": policy, "resourceClaims": claims}
    group = made("PodGroup", {"metadata": {"namespace": "ns"}, "spec": spec}, version=version)
    template = {"name": "t", "schedulingPolicy": policy, "resourceClaims": claims}
    workload = made(
        "Workload", {"metadata": {"namespace": "ns"}, "spec": {"podGroupTemplates": [template]}}, version=version
    )
    off = without("DRAWorkloadResourceClaims")
    assert drop_disabled_fields(group, None, off).spec.resource_claims == ()
    assert drop_disabled_fields(group, group, off) is group
    assert drop_disabled_fields(workload, None, off).spec.pod_group_templates[0].resource_claims == ()
    assert drop_disabled_fields(workload, workload, off) is workload


@pytest.mark.parametrize(
    ("gate", "spec", "status"),
    [
        ("GenericWorkload", {"schedulingGroup": {"podGroupName": "g"}}, {}),
        ("DRAExtendedResource", {}, {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}),
        ("DRANodeAllocatableResources", {}, {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]}),
        (
            "ResourceHealthStatus",
            {},
            {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": "claim:x"}]}]},
        ),
    ],
)
def test_pods_lose_fields_of_their_document(gate: str, spec: dict[str, Any], status: dict[str, Any]) -> None:
    sent = defaulted_pod(spec, status)
    (field,) = {**spec, **status}
    dropped = drop_disabled_fields(sent, None, without(gate))
    kept = {**dropped.document["spec"], **dropped.document["status"]}.get(field)
    assert not kept or "allocatedResourcesStatus" not in kept[0]
    assert drop_disabled_fields(sent, sent, without(gate)) is sent
    assert drop_disabled_fields(sent, None, EVERYTHING) is sent


def test_messages_about_devices_have_a_gate_of_their_own() -> None:
    def reporting(**device: str) -> Any:
        health = [{"name": "claim:x", "resources": [{"resourceID": "d", "health": "Unhealthy", **device}]}]
        statuses = [{"name": "c", "allocatedResourcesStatus": health}, {"name": "other"}]
        return defaulted_pod(status={"containerStatuses": statuses})

    sent, silent, off = reporting(message="too hot"), reporting(), without("ResourceHealthStatusMessage")
    assert drop_disabled_fields(sent, None, off).document == silent.document
    assert drop_disabled_fields(sent, silent, off).document == silent.document
    assert drop_disabled_fields(sent, sent, off) is sent
    assert drop_disabled_fields(silent, None, off) is silent


def test_what_is_left_after_dropping_is_judged() -> None:
    sent = defaulted_claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]})
    (error,) = validate_create(drop_disabled_fields(sent, None, without("DRAPrioritizedList")))
    assert str(error.path) == "spec.devices.requests[0]"


def test_reports_go_with_the_devices_that_a_claim_gives_back() -> None:
    reports = [{"driver": "gpu.example.com", "pool": "p", "device": device} for device in ("a", "b")]
    old = with_status(defaulted_claim(), allocation=allocation_of("a", "b"), devices=reports)
    cleared = with_status(defaulted_claim(), devices=reports)
    assert drop_deallocated_devices(cleared, old).status.devices == ()
    assert drop_deallocated_devices(old, old) is old


def test_a_report_about_a_share_that_nobody_had_is_not_taken_for_one_that_was_given_back() -> None:
    old = with_status(defaulted_claim(), allocation=allocation_of("a", shareID="one"))
    stranger = [{"driver": "gpu.example.com", "pool": "p", "device": "a", "shareID": "two"}]
    cleared = with_status(defaulted_claim(), devices=stranger)
    assert drop_deallocated_devices(cleared, old) is cleared
