"""What a cluster can be like: options of the marker, and arguments of `local_cluster`.

In:  names and values as a test gives them.
Out: a ClusterPlan. Raise UsageError that names the option.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.base.errors import UsageError
from drakit.base.gates import GATES, FeatureGates
from drakit.drivers import load_profile
from drakit.scheduler.config import SchedulerConfiguration, load_configuration
from drakit.simulate.cluster import ClusterPlan

_NAMES = tuple(each.name for each in dataclasses.fields(ClusterPlan))
_SCHEDULER = (str, Path, SchedulerConfiguration)
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "nodes": (int, "a number of nodes"),
    "profile": (str, "the name or file of a profile"),
    "cards": (int, "a number of cards"),
    "gates": ((Mapping, FeatureGates), "a mapping such as {'DRAPartitionableDevices': False}"),
    "scheduler": (_SCHEDULER, "the path of a KubeSchedulerConfiguration, or its text"),
    "server_only": (bool, "True or False"),
    "seed": (int, "a number"),
}


def plan_from(options: Mapping[str, Any]) -> ClusterPlan:
    """An option that is None is as if it were not given."""
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := given.keys() - {*_NAMES}:
        raise UsageError(f"there is no option {', '.join(sorted(unknown))}; options are {', '.join(_NAMES)}")
    for name, value in given.items():
        _check(name, value)
    load_profile(given.get("profile", ClusterPlan().profile))
    if isinstance(gates := given.get("gates"), Mapping):
        given["gates"] = _gates(gates)
    if isinstance(chosen := given.get("scheduler"), str | Path):
        given["scheduler"] = _configuration(chosen, given.get("gates", FeatureGates.all_on()))
    return ClusterPlan(**given)


def _check(name: str, value: Any) -> None:
    kind, what = _KINDS[name]
    is_wrong_number = kind is int and (isinstance(value, bool) or (name in ("nodes", "cards") and _below_zero(value)))
    if not isinstance(value, kind) or is_wrong_number:
        raise UsageError(f"{name} is {what}, not {value!r}")


def _below_zero(value: Any) -> bool:
    return isinstance(value, int) and value < 0


def _gates(given: Mapping[str, bool]) -> FeatureGates:
    """All are on but those that are switched off here, and those that need one of them."""
    off = {name for name, value in given.items() if not value}
    while more := {name for name, gate in GATES.items() if off & {*gate.needs}} - off - given.keys():
        off |= more
    return FeatureGates.of({**FeatureGates.all_on().as_mapping, **dict.fromkeys(off, False), **given})


def _configuration(given: str | Path, gates: FeatureGates) -> SchedulerConfiguration:
    if isinstance(given, str) and "\n" in given:
        return load_configuration(given.encode(), source="scheduler", gates=gates)
    try:
        return load_configuration(Path(given).read_bytes(), source=str(given), gates=gates)
    except OSError as error:
        raise UsageError(f"scheduler: {given} cannot be read: {error.strerror}") from None
