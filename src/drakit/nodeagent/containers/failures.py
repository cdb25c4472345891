"""What keeps a container from being made, named by what the pod is told.

ConfigUnavailable       (Retryable) a ConfigMap, Secret or key is not there: CreateContainerConfigError, tried again
MountFailed             (Retryable) a volume is not there yet: event FailedMount, the pod waits
VolumeRefused           (Terminal) a volume that this node cannot provide: event FailedMount, tried no more
HookFailed              (Terminal) a postStart or preStop hook failed: event FailedPostStartHook or FailedPreStopHook
HandlerFailed           (Terminal) a probe or hook was answered badly: it counts as a failure
HandlerBroken           (Retryable) a probe or hook could not be carried out: nothing is known, it does not count
"""

from __future__ import annotations

from drakit.base.errors import Retryable, Terminal


class ConfigUnavailable(Retryable):
    """An object or key that the container's environment names is not there."""

    reason = "CreateContainerConfigError"


class MountFailed(Retryable):
    """A volume could not be set up this time."""


class VolumeRefused(Terminal):
    """A volume, or a use of one, that this node does not support."""


class HookFailed(Terminal):
    """A lifecycle hook did not succeed."""


class HandlerFailed(Terminal):
    """A probe or hook was carried out, and the container answered badly."""

    def __init__(self, message: str, *, exit_code: int = 0) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class HandlerBroken(Retryable):
    """A probe or hook could not be carried out: nothing is known about the container."""
