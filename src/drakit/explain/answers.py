"""The answers of `drakit explain`, as plain data: they become JSON, YAML, a table, a sentence in an event.

Every list is in an order that does not change from one call to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Standing(StrEnum):
    """The state of an object."""

    RUNNING = "running"
    """Placed, with all its devices."""
    FITS = "fits"
    """Not placed yet, and nothing is in the way."""
    WAITING = "waiting"
    """Something has to happen before the scheduler tries it, for example a gate has to go."""
    PENDING = "pending"
    """It was tried, and fits on no node."""
    ENDED = "ended"
    UNUSED = "unused"
    """A claim that nobody uses."""


class FunnelStage(msgspec.Struct, frozen=True):
    """How many devices are left after a check."""

    stage: str
    left: int


class RefusedDevices(msgspec.Struct, frozen=True):
    """Devices that one check refused for one reason; a few of them by name."""

    stage: str
    reason: str
    count: int
    examples: tuple[str, ...] = ()


class RequestFunnel(msgspec.Struct, frozen=True, rename="camel"):
    """How many devices each check leaves for a request. `wanted` is None for allocationMode All.

    `best` is the largest number of usable devices on one node, `best_node`.
    """

    claim: str
    request: str
    device_class: str
    wanted: int | None
    stages: tuple[FunnelStage, ...]
    best: int
    best_node: str
    refused: tuple[RefusedDevices, ...] = ()


class FoldedNodes(msgspec.Struct, frozen=True):
    """Nodes that are refused for the same reason. `detail` has a line per pool with a problem and per request."""

    reason: str
    plugin: str
    nodes: tuple[str, ...]
    detail: tuple[str, ...] = ()


class MissingDevice(msgspec.Struct, frozen=True, rename="camel"):
    """A device that matches a request, or one that shares counters with it, and the claim that holds it."""

    device: str
    node: str
    namespace: str
    claim: str
    pods: tuple[str, ...] = ()


class ObjectName(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    name: str
    namespace: str = ""


class Suggestion(msgspec.Struct, frozen=True):
    """A change that makes the pod fit: it was tried. `put` has objects as they would be, `remove` those to delete.

    The spec of a claim is immutable: a claim in `put` means a new one in its place, mostly from a changed template.
    """

    kind: str
    text: str
    put: tuple[Mapping[str, Any], ...] = ()
    remove: tuple[ObjectName, ...] = ()


class GivenDevice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device that a claim has, and how the claim got it."""

    claim: str
    request: str
    device: str
    device_class: str = ""
    consumed: Mapping[str, str] = {}
    admin: bool = False
    conditions: tuple[str, ...] = ()
    """Binding conditions that are not true yet."""
    why: str = ""


class ObjectExplanation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`verdict` is one sentence. `message` is what kube-scheduler says of it."""

    kind: str
    namespace: str
    name: str
    standing: Standing
    verdict: str
    node: str = ""
    message: str = ""
    fitting: tuple[str, ...] = ()
    nodes: tuple[FoldedNodes, ...] = ()
    requests: tuple[RequestFunnel, ...] = ()
    missing: tuple[MissingDevice, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    hopeless: str = ""
    """Why no change helps; empty where there are suggestions, or none were asked for."""
    devices: tuple[GivenDevice, ...] = ()
    members: tuple[ObjectExplanation, ...] = ()
    """Of a group, its pods."""
