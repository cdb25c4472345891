"""A selector on every device: what matches, why not, and where it is wrong."""

from __future__ import annotations

import pytest

from drakit.base.errors import UsageError
from drakit.explain import SelectedDevice, SelectorLab
from tests.builders.explained import GPU, objects_of, two_nodes

DRIVER = 'device.driver == "gpu.example.com"'


def lab(device_class: str = "", *devices: str) -> SelectorLab:
    return SelectorLab(objects_of(two_nodes()), device_class=device_class, devices=devices)


def tried(text: str) -> dict[str, SelectedDevice]:
    return {each.device: each for each in lab().attempt(text).devices}


def test_each_device_says_whether_it_matches_and_which_part_is_to_blame() -> None:
    found = tried(f"{DRIVER} && {GPU.format('h100')}")
    assert [name for name, each in found.items() if each.matches] == [
        "gpu.example.com/node-a/gpu-1", "gpu.example.com/node-b/gpu-0",
    ]  # fmt: skip
    assert found["gpu.example.com/node-a/gpu-0"].why == (
        'device.attributes["gpu.example.com"].model == "h100" is false: '
        'device.attributes["gpu.example.com"].model is "a100"'
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('device.driver == "x" || device.driver == "y"', 'device.driver == "x" || device.driver == "y" is false'),
        (f"!({DRIVER})", f"!({DRIVER}) is false"),
        ("false", "false is false"),
    ],
)
def test_what_is_false_as_a_whole_is_told_as_a_whole(text: str, why: str) -> None:
    assert {each.why or f"{text} is false" for each in tried(text).values()} == {why}


def test_an_attribute_that_is_missing_is_told_with_those_that_are_there() -> None:
    found = tried('device.attributes["gpu.example.com"].modle == "h100"')
    assert all('did you mean "model"?' in each.error for each in found.values())


def test_a_text_that_cannot_be_compiled_has_a_caret_under_every_fault() -> None:
    [fault] = lab().attempt("device.drver == 1").faults
    assert (fault.line, fault.column) == (1, 7)
    assert fault.snippet.splitlines() == [" | device.drver == 1", " | ......^"]
    [no_bool] = lab().attempt("1").faults
    assert "must evaluate to bool" in no_bool.message


def test_cost_is_told_as_the_worst_case_and_per_device() -> None:
    found = lab().attempt(DRIVER)
    assert found.max_cost == 4
    assert {each.cost for each in found.devices} == {4}


def test_the_parts_of_the_expression_have_values_on_the_devices_that_are_asked_for() -> None:
    [device] = lab("", "node-a/gpu-1").attempt(GPU.format("h100")).devices
    assert device.matches
    assert device.values[0].value == "true"


def test_the_attributes_that_exist_are_written_as_an_expression_has_them() -> None:
    assert lab().attributes() == {
        "device.driver": ("gpu.example.com",),
        'device.attributes["gpu.example.com"].model': ("a100", "h100"),
    }


def test_a_class_leaves_its_devices_and_one_that_is_not_there_is_refused() -> None:
    assert len(lab("gpu.example.com").attempt("true").devices) == 3
    with pytest.raises(UsageError, match='"nope" not found'):
        lab("nope")
    with pytest.raises(UsageError, match="no ResourceSlice has one"):
        lab("", "gpu-77")
