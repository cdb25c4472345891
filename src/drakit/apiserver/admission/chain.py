"""The admission chain: plugins that change an object, then plugins that only refuse.

In:  an ObjectChange of an authorized request: who wants to write which object.
Out: the same change, with the object completed; or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from drakit.api.exchange import User
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.failures import ApiError
from drakit.apiserver.storage.objects import StoredObject
from drakit.base import status
from drakit.base.errors import UsageError
from drakit.base.structs import Model
from drakit.store import Guard

CREATE = "CREATE"
UPDATE = "UPDATE"
DELETE = "DELETE"
CONNECT = "CONNECT"
"""exec, attach and port-forward: nothing is stored."""
UPSTREAM = frozenset(
    (
        "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "ClusterTrustBundleAttest", "DefaultIngressClass",
        "DefaultStorageClass", "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration",
        "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision",
        "NamespaceExists", "NodeDeclaredFeatureValidator", "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize", "PodGroupProtection", "PodNodeSelector", "PodSecurity",
        "PodTolerationRestriction", "PodTopologyLabels",
    )
)  # fmt: skip
"""Plugins of kube-apiserver that this server does not have. A flag may name them to disable them."""


class WriteGuard(Protocol):
    """What a judgement rests on that others may overtake, in a store that several servers share."""

    @property
    def terms(self) -> Guard:
        """What must hold when the object is stored."""
        ...

    async def judge_again(self) -> None:
        """Take in what others wrote, and judge anew. Raise ApiError to refuse."""
        ...


class ObjectChange(msgspec.Struct):
    """A write to one object, as admission and validation see it.

    `new` (None for a deletion) and its metadata belong to the request: `admit` may change them. Other parts of `new`
    may be shared with other objects: use `own` to change one. `old` is shared with all readers and never changed.
    """

    operation: str
    kind: Kind
    version: str
    namespace: str
    name: str
    user: User
    new: Plain | None = None
    old: StoredObject | None = None
    subresource: str = ""
    verb: str = ""
    """The verb of the request. Both an update and a creation may come from a `patch`."""
    dry_run: bool = False
    size: int = 0
    """Bytes of what is worked on, about."""
    sent: Any = None
    """The body of the request, if it is an object."""
    typed: Model | Partial[Any] | None = None
    """The new object as a struct or view; None while plugins may still change it."""
    undropped: Model | Partial[Any] | None = None
    """The new object before fields of disabled features went; None when there were none."""
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    """Notes for the audit log."""
    memory: dict[str, Any] = {}
    """State of plugins between the two rounds, by the name of the plugin."""
    after: list[Callable[[], None]] = []
    """Called when the write is over, however it ended: what plugins hold for it."""
    guard: WriteGuard | None = None
    """Set by a plugin whose judgement must still hold when the object is stored."""
    repeat: bool = False
    """Set by a plugin that changed the object so that all plugins must run once more."""
    repeated: bool = False
    """Whether this is the second round."""

    @property
    def document(self) -> Plain:
        """The new object; ValueError for a deletion."""
        if self.new is None:
            raise ValueError(f"{self.operation} of {self.name!r} has no new object")
        return self.new

    def own(self, part: str) -> Plain:
        """A copy of a part of the new object, put in its place. The caller may change it."""
        mine: Plain = dict(self.document.get(part) or {})
        self.document[part] = mine
        return mine

    def end(self) -> None:
        """The write is over: it was stored, refused, or failed."""
        for each in self.after:
            each()
        self.after.clear()

    def forbid(self, why: str) -> ApiError:
        return ApiError(status.forbidden(self.kind.plural, self.kind.group, self.name, why))


class AdmissionPlugin:
    """A plugin that does nothing. Subclasses override `admit` or `validate`; both raise ApiError to refuse."""

    name = ""
    default = True
    """Whether the plugin is enabled by default."""

    async def start(self) -> None:
        """Read what the plugin needs to know. Once, before the first request."""

    async def stop(self) -> None:
        """End what `start` began. Idempotent."""

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        """Whether the plugin may act on such changes. If not, it is never called for them."""
        return True

    def passes_over(self, change: ObjectChange) -> bool:  # noqa: ARG002
        """Whether the plugin certainly does nothing about this change. Then it is not called, which costs more."""
        return False

    async def admit(self, change: ObjectChange) -> None:
        """Change the object, or refuse it."""

    async def validate(self, change: ObjectChange) -> None:
        """Refuse the object, or do nothing. It must not be changed any more."""


class _PluginCalls(NamedTuple):
    """The plugins to call for changes of one kind, operation and subresource."""

    admitting: Sequence[AdmissionPlugin]
    validating: Sequence[AdmissionPlugin]


class Admission:
    """The plugins, in order. Each is called only for changes that concern it and methods that it overrides."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self.plugins = tuple(plugins)
        self._asked: dict[tuple[str, ...], _PluginCalls] = {}

    async def start(self) -> None:
        for plugin in self.plugins:
            await plugin.start()

    async def stop(self) -> None:
        for plugin in self.plugins:
            await plugin.stop()

    async def admit(self, change: ObjectChange) -> None:
        """Call the plugins; all of them once more if one sets `repeat`."""
        asked = self._concerned(change).admitting
        for plugin in asked:
            if not plugin.passes_over(change):
                await plugin.admit(change)
        # Twice at most: plugins that undo each other must not go on for ever.
        if change.repeat:
            change.repeated = True
            for plugin in asked:
                if not plugin.passes_over(change):
                    await plugin.admit(change)

    async def validate(self, change: ObjectChange) -> None:
        for plugin in self._concerned(change).validating:
            if not plugin.passes_over(change):
                await plugin.validate(change)

    def _concerned(self, change: ObjectChange) -> _PluginCalls:
        kind = change.kind
        about = (kind.group, kind.kind, change.operation, change.subresource)
        # Computed once per kind, operation and subresource: most plugins concern few of them.
        asked = self._asked.get(about)
        if asked is None:
            able = [each for each in self.plugins if each.concerns(kind, change.operation, change.subresource)]
            asked = self._asked[about] = _PluginCalls(
                [each for each in able if type(each).admit is not AdmissionPlugin.admit],
                [each for each in able if type(each).validate is not AdmissionPlugin.validate],
            )
        return asked


def choose(plugins: Sequence[AdmissionPlugin], *, enable: Sequence[str] = (), disable: Sequence[str] = ()) -> Admission:
    """The plugins that are enabled, by default or by name, and not disabled.

    An unknown name raises UsageError. It is no error to disable a plugin that only upstream has.
    """
    known = {plugin.name for plugin in plugins}
    for name in sorted({*enable} - known | {*disable} - known - UPSTREAM):
        raise UsageError(f"unknown admission plugin {name!r}: known are {', '.join(sorted(known))}")
    if both := {*enable} & {*disable}:
        raise UsageError(f"enable-admission-plugins and disable-admission-plugins overlap: {', '.join(sorted(both))}")
    chosen = [each for each in plugins if each.name in enable or (each.default and each.name not in disable)]
    return Admission(chosen)
