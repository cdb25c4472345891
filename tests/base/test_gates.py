"""Feature gates: defaults, settings, dependencies, and what a typo gets."""

from __future__ import annotations

import pytest

from drakit.base.errors import UsageError
from drakit.base.gates import GATES, FeatureGates


def test_the_defaults_are_those_of_v1_36() -> None:
    off = {name for name in GATES if not FeatureGates.defaults().enabled(name)}
    assert off == {
        "DRADeviceTaintRules",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAResourcePoolStatus",
        "DRAWorkloadResourceClaims",
        "GangScheduling",
        "GenericWorkload",
    }


def test_settings_change_the_defaults() -> None:
    gates = FeatureGates.parse(" DRAPrioritizedList=false, DRAListTypeAttributes=True ,")
    assert not gates.enabled("DRAPrioritizedList")
    assert gates.enabled("DRAListTypeAttributes")
    assert FeatureGates.parse(str(gates)) == gates


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "t", "T", "1"])
def test_a_gate_can_be_switched_on_in_every_way_that_kubernetes_knows(text: str) -> None:
    assert FeatureGates.parse(f"DRAListTypeAttributes={text}").enabled("DRAListTypeAttributes")


@pytest.mark.parametrize("text", ["false", "False", "FALSE", "f", "F", "0"])
def test_a_gate_can_be_switched_off_in_every_way_that_kubernetes_knows(text: str) -> None:
    assert not FeatureGates.parse(f"DRAPrioritizedList={text}").enabled("DRAPrioritizedList")


def test_stage_groups_switch_all_of_a_stage_and_single_gates_win() -> None:
    gates = FeatureGates.parse("AllAlpha=true,DRAListTypeAttributes=false")
    assert gates.enabled("GenericWorkload")
    assert not gates.enabled("DRAListTypeAttributes")
    assert FeatureGates.parse("AllBeta=false").enabled("DynamicResourceAllocation")
    assert not FeatureGates.parse("AllBeta=false").enabled("DRADeviceTaints")
    assert FeatureGates.parse("AllAlpha=true,AllBeta=true") == FeatureGates.all_on()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DRAPrioritisedList=true", "unrecognized feature gate: DRAPrioritisedList; did you mean DRAPrioritizedList"),
        ("Xyzzy=true", "known are DynamicResourceAllocation"),
        ("DRAAdminAccess=false", "cannot set feature gate DRAAdminAccess to false, feature is locked to true"),
        ("DRAWorkloadResourceClaims=true", "depends on features that are disabled: GenericWorkload"),
        ("DRADeviceTaints=false,DRADeviceTaintRules=true", "depends on features that are disabled: DRADeviceTaints"),
        ("DRADeviceTaints", "missing bool value for feature gate DRADeviceTaints"),
        ("DRADeviceTaints=yes", "invalid value of DRADeviceTaints=yes: expected true or false"),
    ],
)
def test_a_setting_that_makes_no_sense_says_why(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        FeatureGates.parse(text)
    assert message in str(caught.value)


def test_asking_for_an_unknown_gate_is_an_error_not_a_no() -> None:
    with pytest.raises(UsageError):
        FeatureGates.defaults().enabled("DRAPrioritizedLst")
    with pytest.raises(UsageError):
        FeatureGates.only(["Nonsense"])
    assert FeatureGates.only(["DRAAdminAccess"]).on == {"DRAAdminAccess"}
