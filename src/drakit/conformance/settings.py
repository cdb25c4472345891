"""What the user says about a run: how long to wait, and what the suite cannot know by itself.

In:  flags.
Out: values that every check can read. All times are in seconds.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long the suite waits before it says that something did not happen."""

    start: float = 30.0
    """From the start of the process until it answers at a registration socket."""
    call: float = 45.0
    """For one gRPC call: what a kubelet allows."""
    publish: float = 30.0
    """From registration until the slices are complete."""
    repair: float = 90.0
    """Until an edited or deleted slice is as it was. A driver made with the Go helper takes up to 60."""
    stop: float = 30.0
    """From SIGTERM until the process has ended."""
    slow: float = 2.0
    """How long the API server keeps the driver waiting for a claim."""
    settle: float = 1.0
    """How long to look on where nothing should happen."""
    health: float = 15.0
    """Until the first message of a health stream, and until a change is told."""


class DriverHints(msgspec.Struct, frozen=True, kw_only=True):
    """What the suite must be told about the driver."""

    devices: tuple[str, ...] = ()
    """Names of devices to use; any otherwise."""
    parameters: Any = None
    """Opaque configuration for the driver that goes into every claim."""
    removal_arguments: tuple[str, ...] = ()
    """Further arguments with which the driver removes its slices when it stops."""
    break_command: tuple[str, ...] = ()
    """A command that makes a device sick."""
    heal_command: tuple[str, ...] = ()
    """A command that makes it well again."""
