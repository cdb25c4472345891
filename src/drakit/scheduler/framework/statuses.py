"""What a plugin answers.

Code            the pod                                     woken by
SUCCESS         goes on
SKIP            goes on; the plugin has nothing to do       (pre_filter: its filter is left out; bind: the next binder)
UNSCHEDULABLE   does not fit now, preemption may help       an event that the plugin is interested in
UNRESOLVABLE    does not fit, preemption cannot help        an event that the plugin is interested in
PENDING         waits for something that is under way       such an event, and then without backoff
ERROR           something failed                            backoff, then again
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum

import msgspec


class Unfinished(Exception):
    """A plugin has no answer yet and goes on beside the loop.

    `finished` waits for that, not for long, and says whether another attempt is worth it now.
    """

    def __init__(self, message: str, finished: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(message)
        self.finished = finished


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    SKIP = 5
    PENDING = 6


class PluginStatus(msgspec.Struct, frozen=True, gc=False):
    """`reasons` are for people, in the words of Kubernetes; `plugin` is filled in by whoever called it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None

    @property
    def ok(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        """Whether the pod does not fit, as opposed to something having failed."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> PluginStatus:
        """The same, said by a plugin."""
        return self if self.plugin else msgspec.structs.replace(self, plugin=plugin)

    @staticmethod
    def unschedulable(*reasons: str) -> PluginStatus:
        return PluginStatus(Code.UNSCHEDULABLE, reasons)

    @staticmethod
    def unresolvable(*reasons: str) -> PluginStatus:
        return PluginStatus(Code.UNRESOLVABLE, reasons)

    @staticmethod
    def pending(*reasons: str) -> PluginStatus:
        return PluginStatus(Code.PENDING, reasons)

    @staticmethod
    def failed(error: BaseException | str) -> PluginStatus:
        return PluginStatus(Code.ERROR, (str(error),), error=error if isinstance(error, BaseException) else None)


SUCCESS = PluginStatus(Code.SUCCESS)
SKIP = PluginStatus(Code.SKIP)
