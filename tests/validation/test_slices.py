"""Slices: what the recorded cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drakit.base.gates import FeatureGates
from drakit.validation import Context, empty_lists, validate_create, validate_update
from drakit.validation.fields.sequences import cut
from tests.validation.objects import device_slice, told


def test_a_device_that_did_not_change_is_left_alone() -> None:
    old = device_slice({"name": "BAD"}, {"name": "d1"})
    new = device_slice({"name": "BAD"}, {"name": "d2"})
    assert told(validate_create(old)) == [("spec.devices[0].name", "Invalid")]
    assert validate_update(new, old) == ()
    assert told(validate_update(new, device_slice({"name": "d1"}))) == [("spec.devices[0].name", "Invalid")]


def test_a_device_is_checked_again_when_the_slice_selects_nodes_otherwise() -> None:
    old = device_slice({"name": "d", "allNodes": True}, nodeName=None, perDeviceNodeSelection=True)
    new = device_slice({"name": "d", "allNodes": True}, nodeName=None, allNodes=True)
    assert told(validate_update(new, old)) == [("spec.devices[0]", "Invalid")]


def test_capacity_that_did_not_change_is_left_alone_though_the_device_did() -> None:
    policy = {"c": {"value": "1", "requestPolicy": {"default": "1"}}}
    old = device_slice({"name": "d", "capacity": policy})
    new = device_slice({"name": "d", "capacity": policy, "attributes": {"a": {"int": 1}}})
    assert told(validate_create(old)) == [("spec.devices[0].capacity[c].requestPolicy", "Forbidden")]
    assert validate_update(new, old) == ()


def test_capacity_is_judged_again_when_its_device_is_no_longer_shared() -> None:
    policy = {"c": {"value": "1", "requestPolicy": {"default": "1"}}}
    old = device_slice({"name": "d", "capacity": policy, "allowMultipleAllocations": True})
    assert validate_create(old) == ()
    for shared in ({}, {"allowMultipleAllocations": False}):
        new = device_slice({"name": "d", "capacity": policy, **shared})
        assert told(validate_update(new, old)) == [("spec.devices[0].capacity[c].requestPolicy", "Forbidden")]


def test_an_empty_list_of_values_bounds_the_devices_as_a_full_one_does() -> None:
    devices: list[dict[str, Any]] = [{"name": f"d{n}"} for n in range(65)]
    devices[0]["attributes"] = {"a": {"ints": []}}
    context = Context(gates=FeatureGates.all_on(), empty_lists=empty_lists({"spec": {"devices": devices}}))
    assert told(validate_create(device_slice(*devices), context)) == [("spec.devices", "TooMany")]


def test_a_step_of_zero_is_an_error_and_no_crash() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "4", "step": "0"}}
    device = {"name": "d", "allowMultipleAllocations": True, "capacity": {"c": {"value": "8", "requestPolicy": policy}}}
    (error,) = validate_create(device_slice(device))
    assert str(error) == (
        'spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: "0": must be greater than zero'
    )


def test_an_empty_list_that_was_sent_is_a_value_and_a_wrong_one() -> None:
    device = {"name": "d", "attributes": {"ext.example.com/a": {"strings": []}}}
    document = {"spec": {"devices": [device]}}
    wrapped = {"spec": {"devices": [{"name": "d", "basic": {"attributes": device["attributes"]}}]}}
    assert empty_lists(document) == empty_lists(wrapped)
    errors = validate_create(
        device_slice(device), Context(gates=FeatureGates.all_on(), empty_lists=empty_lists(document))
    )
    assert told(errors) == [("spec.devices[0].attributes[ext.example.com/a].strings", "Invalid")]
    assert told(validate_create(device_slice(device))) == [("spec.devices[0].attributes[ext.example.com/a]", "Invalid")]


def test_devices_and_counters_exclude_each_other_even_when_one_list_is_empty() -> None:
    counters = [{"name": "s", "counters": {"c": {"value": "1"}}}]
    slice_ = device_slice(sharedCounters=counters)
    assert validate_create(slice_) == ()
    assert told(
        validate_create(slice_, Context(gates=FeatureGates.all_on(), empty_lists=frozenset({"spec.devices"})))
    ) == [("spec", "Invalid")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"bindingConditions": ["a", "a"], "bindingFailureConditions": ["f"]}, [("bindingConditions[1]", "Duplicate")]),
        (
            {"bindingConditions": ["a"], "bindingFailureConditions": ["f", "f", "a"]},
            [("bindingFailureConditions[1]", "Duplicate"), ("bindingFailureConditions[2]", "Invalid")],
        ),
        ({"bindingConditions": list("abcde"), "bindingFailureConditions": ["f"]}, [("bindingConditions", "TooMany")]),
    ],
)
def test_binding_conditions_differ_from_one_another(names: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    errors = validate_create(device_slice({"name": "d", **names}))
    assert told(errors) == [(f"spec.devices[0].{path}", reason) for path, reason in expected]


def test_a_very_long_key_is_cut_in_the_path_of_its_value() -> None:
    assert cut("a" * 50 + "b" * 50, 96) == "a" * 47 + "..." + "b" * 46
    assert cut("abcdefghijklmnop", 4) == "abcdefghijklmnop"
    name = "a" * 200
    errors = validate_create(device_slice({"name": "d", "attributes": {name: {}}}))
    assert told(errors) == [
        ("spec.devices[0].attributes", "TooLong"),
        (f"spec.devices[0].attributes[{'a' * 47}...{'a' * 46}]", "Invalid"),
    ]


def test_what_a_slice_belongs_to_does_not_change() -> None:
    old = device_slice({"name": "d"})
    pool = replace(old.spec.pool, name="q")
    new = replace(old, spec=replace(old.spec, driver="other.example.com", pool=pool, node_name="node-b"))
    assert told(validate_update(new, old)) == [
        ("spec.pool.name", "Invalid"),
        ("spec.driver", "Invalid"),
        ("spec.nodeName", "Invalid"),
    ]


def test_an_empty_list_beside_a_value_is_one_value_too_many() -> None:
    device = {"name": "d", "attributes": {"a": {"int": 1, "strings": []}}}
    errors = validate_create(
        device_slice(device),
        Context(gates=FeatureGates.all_on(), empty_lists=empty_lists({"spec": {"devices": [device]}})),
    )
    assert told(errors) == [
        ("spec.devices[0].attributes[a].strings", "Invalid"),
        ("spec.devices[0].attributes[a]", "Invalid"),
    ]


@pytest.mark.parametrize("value", ["x" * 65, "é" * 33, "日" * 22])
def test_the_length_of_a_value_counts_bytes(value: str) -> None:
    errors = validate_create(device_slice({"name": "d", "attributes": {"a": {"string": value}}}))
    assert told(errors) == [("spec.devices[0].attributes[a].string", "TooLong")]


@pytest.mark.parametrize("good", ["0.0.0", "1.2.3-rc.1+build.7", "1.2.3--", "1.2.3+01", f"1.2.{10**50}"])
def test_a_version_is_judged_by_its_form(good: str) -> None:
    assert validate_create(device_slice({"name": "d", "attributes": {"v": {"version": good}}})) == ()


@pytest.mark.parametrize("bad", ["", "1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3\n", "1.2.٣"])
def test_what_is_no_semantic_version_is_refused(bad: str) -> None:
    slice_ = device_slice({"name": "d", "attributes": {"v": {"version": bad}}})
    assert told(validate_create(slice_)) == [("spec.devices[0].attributes[v].version", "Invalid")]
