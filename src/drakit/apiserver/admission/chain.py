"""What stands between a request that is allowed and the store: plugins that complete an object, then some that refuse.

In:  a Change: who wants which object to become what.
Out: the same change, completed; or an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drakit.api.exchange import User
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.failures import ApiError
from drakit.apiserver.storage.objects import StoredObject
from drakit.base import status
from drakit.base.errors import UsageError
from drakit.base.structs import Model

CREATE = "CREATE"
UPDATE = "UPDATE"
DELETE = "DELETE"
UPSTREAM = frozenset(
    (
        "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "CertificateApproval", "CertificateSigning",
        "CertificateSubjectRestriction", "ClusterTrustBundleAttest", "DefaultIngressClass", "DefaultStorageClass",
        "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology", "LimitRanger", "MutatingAdmissionPolicy", "NamespaceAutoProvision",
        "NamespaceExists", "NodeDeclaredFeatureValidator", "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize", "PodGroupProtection", "PodNodeSelector", "PodSecurity",
        "PodTolerationRestriction", "PodTopologyLabels", "RuntimeClass", "StorageObjectInUseProtection",
        "TaintNodesByCondition",
    )
)  # fmt: skip
"""Plugins that kube-apiserver has and this server does not need."""


@dataclass(slots=True)
class ObjectChange:
    """`new` (none for a deletion) belongs to the request, and so does its metadata: `admit` may change them.

    Every other part of it may be shared: who changes one gets it by `own`. `old` is shared with every reader.
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
    """What the user asked for: an update may be a `patch`, a creation too."""
    dry_run: bool = False
    sent: Any = None
    """What the client literally sent, where it sent an object."""
    typed: Model | Partial[Any] | None = None
    """The new object as rules see it, from the time when nobody changes it any more."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What the audit log should say about the request."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What plugins, by name, have to remember from one round to the next."""
    repeat: bool = False
    """A plugin has changed the object in a way that others should look at again."""
    repeated: bool = False

    @property
    def document(self) -> Plain:
        """The new object, where there must be one."""
        if self.new is None:
            raise ValueError(f"{self.operation} of {self.name!r} has no new object")
        return self.new

    def own(self, part: str) -> Plain:
        """A part of the new object, to be changed."""
        mine: Plain = dict(self.document.get(part) or {})
        self.document[part] = mine
        return mine

    def forbid(self, why: str) -> ApiError:
        return ApiError(status.forbidden(self.kind.plural, self.kind.group, self.name, why))


class AdmissionPlugin:
    """Does nothing. Subclasses override what they need; both raise ApiError to refuse."""

    name = ""
    default = True
    """Whether it is there unless somebody asks for it to be left out."""

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        """Whether it can have a say about such changes at all: if not, it is never asked."""
        return True

    async def admit(self, change: ObjectChange) -> None:
        """Complete the object."""

    async def validate(self, change: ObjectChange) -> None:
        """Look at what would be stored, and change nothing."""


class _PluginCalls(NamedTuple):
    """Whom to ask about changes of one sort."""

    admitting: Sequence[Callable[[ObjectChange], Awaitable[None]]]
    validating: Sequence[Callable[[ObjectChange], Awaitable[None]]]


class Admission:
    """The plugins, in order; each is asked for what it does, and not for what it leaves to others."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self.plugins = tuple(plugins)
        self._asked: dict[tuple[str, ...], _PluginCalls] = {}

    async def admit(self, change: ObjectChange) -> None:
        """Once; and once more if somebody asks for it."""
        asked = self._concerned(change).admitting
        for admit in asked:
            await admit(change)
        if change.repeat:
            change.repeated = True
            for admit in asked:
                await admit(change)

    async def validate(self, change: ObjectChange) -> None:
        for validate in self._concerned(change).validating:
            await validate(change)

    def _concerned(self, change: ObjectChange) -> _PluginCalls:
        kind = change.kind
        about = (kind.group, kind.kind, change.operation, change.subresource)
        asked = self._asked.get(about)
        if asked is None:
            able = [each for each in self.plugins if each.concerns(kind, change.operation, change.subresource)]
            asked = self._asked[about] = _PluginCalls(
                [each.admit for each in able if type(each).admit is not AdmissionPlugin.admit],
                [each.validate for each in able if type(each).validate is not AdmissionPlugin.validate],
            )
        return asked


def choose(plugins: Sequence[AdmissionPlugin], *, enable: Sequence[str] = (), disable: Sequence[str] = ()) -> Admission:
    """The plugins that are on by default or enabled, but the disabled ones.

    Names that nobody has are a mistake in a flag; to leave out what upstream has and drakit has not is none.
    """
    known = {plugin.name for plugin in plugins}
    for name in sorted({*enable} - known | {*disable} - known - UPSTREAM):
        raise UsageError(f"unknown admission plugin {name!r}: known are {', '.join(sorted(known))}")
    if both := {*enable} & {*disable}:
        raise UsageError(f"enable-admission-plugins and disable-admission-plugins overlap: {', '.join(sorted(both))}")
    chosen = [each for each in plugins if each.name in enable or (each.default and each.name not in disable)]
    return Admission(chosen)
