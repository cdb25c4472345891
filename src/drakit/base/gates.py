"""Feature gates: the switches of Kubernetes v1.36 that concern DRA, with their defaults and dependencies.

In:  `--feature-gates` text or a mapping.
Out: an immutable set of switches, checked as a whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from drakit.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Gate:
    default: bool
    stage: str
    locked: bool = False
    needs: tuple[str, ...] = ()


GATES: Mapping[str, Gate] = {
    "DynamicResourceAllocation": Gate(True, "GA", locked=True),
    "DRAAdminAccess": Gate(True, "GA", locked=True, needs=("DynamicResourceAllocation",)),
    "DRAConsumableCapacity": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRADeviceBindingConditions": Gate(
        True, "Beta", needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus")
    ),
    "DRADeviceTaintRules": Gate(False, "Beta", needs=("DRADeviceTaints",)),
    "DRADeviceTaints": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAExtendedResource": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAListTypeAttributes": Gate(False, "Alpha", needs=("DynamicResourceAllocation",)),
    "DRANodeAllocatableResources": Gate(False, "Alpha", needs=("DynamicResourceAllocation",)),
    "DRAPartitionableDevices": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAPrioritizedList": Gate(True, "GA", needs=("DynamicResourceAllocation",)),
    "DRAResourceClaimDeviceStatus": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAResourceClaimGranularStatusAuthorization": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAResourcePoolStatus": Gate(False, "Alpha", needs=("DynamicResourceAllocation",)),
    "DRASchedulerFilterTimeout": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "DRAWorkloadResourceClaims": Gate(False, "Alpha", needs=("DynamicResourceAllocation", "GenericWorkload")),
    "GangScheduling": Gate(False, "Alpha", needs=("GenericWorkload",)),
    "GenericWorkload": Gate(False, "Alpha"),
    "ResourceHealthStatus": Gate(True, "Beta", needs=("DynamicResourceAllocation",)),
    "ResourceHealthStatusMessage": Gate(True, "Beta", needs=("ResourceHealthStatus",)),
}
_STAGES = {"AllAlpha": "Alpha", "AllBeta": "Beta"}
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE", "t", "T", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "f", "F", "0"), False),
}


@dataclass(frozen=True)
class FeatureGates:
    """Invariant: every gate that is on has what it needs on; a locked gate has its default."""

    on: frozenset[str]

    @staticmethod
    def defaults() -> FeatureGates:
        return FeatureGates(frozenset(name for name, gate in GATES.items() if gate.default))

    @staticmethod
    def all_on() -> FeatureGates:
        return FeatureGates(frozenset(GATES))

    @staticmethod
    def of(settings: Mapping[str, bool]) -> FeatureGates:
        """The defaults, changed by `settings`; raise UsageError for a gate that is unknown, locked or lacks another."""
        chosen = {name: gate.default for name, gate in GATES.items()}
        for name in settings:
            _check_name(name)
        for group, stage in _STAGES.items():
            if group in settings:
                chosen |= {name: settings[group] for name, gate in GATES.items() if gate.stage == stage}
        for name, value in settings.items():
            if name in GATES:
                _check_lock(name, value)
                chosen[name] = value
        _check_needs(chosen)
        return FeatureGates(frozenset(name for name, value in chosen.items() if value))

    @staticmethod
    def parse(text: str) -> FeatureGates:
        """Read `Name=bool,Name=bool`, as `--feature-gates` takes it."""
        settings: dict[str, bool] = {}
        for part in filter(None, (each.strip() for each in text.split(","))):
            name, separator, value = (each.strip() for each in part.partition("="))
            if not separator:
                raise UsageError(f"missing bool value for feature gate {name}: expected {name}=true or {name}=false")
            if value not in _BOOLEANS:
                raise UsageError(f"invalid value of {name}={value}: expected true or false")
            settings[name] = _BOOLEANS[value]
        return FeatureGates.of(settings)

    @staticmethod
    def only(names: Iterable[str]) -> FeatureGates:
        """Exactly these gates, unchecked: for callers that test one feature apart from the rest."""
        chosen = frozenset(names)
        for name in chosen:
            _check_name(name)
        return FeatureGates(chosen)

    def enabled(self, name: str) -> bool:
        if name in self.on:
            return True
        _check_name(name)
        return False

    @cached_property
    def as_mapping(self) -> Mapping[str, bool]:
        return {name: name in self.on for name in GATES}

    def __str__(self) -> str:
        return ",".join(f"{name}={str(value).lower()}" for name, value in self.as_mapping.items())


def _check_name(name: str) -> None:
    if name in GATES or name in _STAGES:
        return
    close = difflib.get_close_matches(name, [*GATES, *_STAGES], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(close)}?" if close else f"; known are {', '.join(GATES)}"
    raise UsageError(f"unrecognized feature gate: {name}{hint}")


def _check_lock(name: str, value: bool) -> None:
    gate = GATES[name]
    if gate.locked and value != gate.default:
        raise UsageError(
            f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(gate.default).lower()}"
        )


def _check_needs(chosen: Mapping[str, bool]) -> None:
    for name, value in chosen.items():
        missing = [need for need in GATES[name].needs if not chosen[need]] if value else []
        if missing:
            raise UsageError(f"{name} is enabled, but depends on features that are disabled: {', '.join(missing)}")
