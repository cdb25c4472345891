"""A change as policies and webhooks see it: an AdmissionRequest.

In:  an ObjectChange, whose object is in the storage version.
Out: operation, resource and objects, in any served version.

To them a binding, an eviction, a token request or the options of a connection is an object of its own, though it is
about another object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.admission.chain import CONNECT, CREATE, ObjectChange
from drakit.apiserver.auth.users import user_info
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import convert

NAMESPACE = known_kind("v1", "Namespace")
_ADMISSION = "admissionregistration.k8s.io"
_OWN_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_CONNECT_KINDS = {
    "attach": ("", "v1", "PodAttachOptions"),
    "exec": ("", "v1", "PodExecOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def is_exempt(kind: Kind) -> bool:
    """Policies and webhooks do not apply to their own kinds: else an administrator could not remove a bad one."""
    return kind.group == _ADMISSION


def _namespace(change: ObjectChange) -> str:
    """A namespace counts as being in itself."""
    if change.kind is NAMESPACE:
        return change.name
    return change.namespace if change.kind.namespaced else ""


class AdmissionRequest:
    """One change in the terms of AdmissionReview. Documents are made on first use: mostly no webhook applies."""

    def __init__(self, change: ObjectChange) -> None:
        self.change = change
        connected = _CONNECT_KINDS.get(change.subresource)
        self.posted = connected or _OWN_KINDS.get(change.subresource)
        # A Binding is posted, though it updates the pod.
        self.operation = CREATE if self.posted and not connected else change.operation
        self.group = change.kind.group
        self.version = change.version
        self.resource = change.kind.plural
        self.subresource = change.subresource
        self.name = change.name
        self.namespace = _namespace(change)
        self._new: dict[str, Plain | None] = {}

    @property
    def namespaced(self) -> bool:
        return self.change.kind.namespaced

    @property
    def equivalents(self) -> tuple[str, ...]:
        """The other versions of the resource."""
        return tuple(each for each in self.change.kind.versions if each != self.version)

    def labels(self) -> list[Mapping[str, str]]:
        """The labels of the new and of the old object, of those that exist."""
        found = [self.change.new, self.change.old.document if self.change.old else None]
        if self.posted:
            found = [self._sent(*self.posted)]
        return [(each.get("metadata") or {}).get("labels") or {} for each in found if each is not None]

    def new_in(self, version: str) -> Plain | None:
        """The new object; None for a deletion."""
        if self.posted:
            return self._sent(*self.posted)
        if version not in self._new:
            self._new[version] = self._completed(version)
        return self._new[version]

    def old_in(self, version: str) -> Plain | None:
        return self.change.old.document_in(version) if self.change.old and not self.posted else None

    def _sent(self, group: str, version: str, kind: str) -> Plain:
        """The posted object, with name and namespace of the path."""
        given = self.change.sent if isinstance(self.change.sent, dict) else {}
        if self.operation == CONNECT:
            return {**given, "kind": kind, "apiVersion": version}  # options have no metadata
        sent = given.get("metadata")
        metadata = {"name": self.name, "namespace": self.namespace} | (sent if isinstance(sent, dict) else {})
        return {**given, "kind": kind, "apiVersion": f"{group}/{version}" if group else version, "metadata": metadata}

    def changed(self) -> None:
        """Forget converted documents: the object was changed."""
        self._new.clear()

    def _completed(self, version: str) -> Plain | None:
        kind, document = self.change.kind, self.change.new
        if document is None or version != kind.internal:
            return None if document is None else convert(kind, document, version)
        head_set = {**document, "apiVersion": kind.internal_version, "kind": kind.kind}
        completed: Plain = shape_of(kind.internal_version, kind.kind).complete(head_set)
        return completed

    def as_review(self, version: str) -> Plain:
        """The `request` of an AdmissionReview, without the objects. Empty fields are left out."""
        sub = {"subResource": self.subresource, "requestSubResource": self.subresource} if self.subresource else {}
        options: Plain = {}
        if self.operation in _OPTIONS:  # a connection has none
            given = {"dryRun": ["All"]} if self.change.dry_run else {}
            options = {"options": {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"} | given}
        return {
            "kind": self._kind(version),
            "resource": self._resource(version),
            "requestKind": self._kind(self.version),
            "requestResource": self._resource(self.version),
            **sub,
            **({"name": self.name} if self.name else {}),
            **({"namespace": self.namespace} if self.namespace else {}),
            "operation": self.operation,
            "userInfo": user_info(self.change.user),
            "dryRun": self.change.dry_run,
            **options,
        }

    def _kind(self, version: str) -> Plain:
        group, version, kind = self.posted or (self.group, version, self.change.kind.kind)
        return {"group": group, "version": version, "kind": kind}

    def _resource(self, version: str) -> dict[str, Any]:
        return {"group": self.group, "version": version, "resource": self.resource}
