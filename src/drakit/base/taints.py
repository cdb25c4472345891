"""Taints repel pods from nodes and claims from devices; tolerations let them in all the same.

Nodes and devices share the rule of what tolerates what. They differ in effects and in who acts on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from drakit.base.structs import Model

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
NONE = "None"

DEVICE_EFFECTS = (NO_EXECUTE, NO_SCHEDULE, NONE)
BLOCKING_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})

EXISTS = "Exists"
EQUAL = "Equal"


class Taint(Model):
    """A node's taint."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(Model):
    """A pod's toleration of node taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceTaint(Model):
    """A device's taint, in a ResourceSlice or by a DeviceTaintRule."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class DeviceToleration(Model):
    """A request's toleration of device taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class AnyTaint(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class AnyToleration(AnyTaint, Protocol):
    @property
    def operator(self) -> str: ...


TaintT = TypeVar("TaintT", bound=AnyTaint)


def tolerates(toleration: AnyToleration, taint: AnyTaint) -> bool:
    """An empty effect or key matches any; `Exists` asks for no value; no operator means `Equal`."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == EXISTS:
        return True
    return toleration.operator in ("", EQUAL) and toleration.value == taint.value


def untolerated(taints: Iterable[TaintT], tolerations: Sequence[AnyToleration]) -> TaintT | None:
    """The first taint that keeps scheduling away and that no toleration covers.

    Effects that nobody knows, `None` and `PreferNoSchedule` keep nothing away.
    """
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None
