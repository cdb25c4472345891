"""Track `metadata.managedFields` over plain writes, and serve server-side applies.

In:  an object before and after a plain write, or a live object and an applied one; all in one version and in the stored
     form.
Out: the object after, with its managedFields.

Writes are tracked from the creation of an object on. An object without managedFields stays without, until the first
apply: then all its fields belong to `before-first-apply`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drakit.api.registry import find_kind
from drakit.api.versions.conversion import from_internal, to_internal
from drakit.apiserver.patching.comparing import compare, fields_of, problems_of
from drakit.apiserver.patching.entries import (
    OwnedFields,
    Owners,
    applier,
    cap_updaters,
    is_reset,
    read_owners,
    updater,
    write_owners,
)
from drakit.apiserver.patching.fieldsets import Elements, FieldSet, difference, has, render, set_of, union
from drakit.apiserver.patching.ownership import (
    SET_BY_SERVER,
    ApplyConflicts,
    Convert,
    Document,
    WriteTarget,
    own_apply,
    own_create,
    own_update,
)
from drakit.apiserver.patching.reach import reach_of
from drakit.apiserver.patching.rejections import TOO_DEEP, conflicting, malformed, untyped
from drakit.base.status import StatusCause

MAX_NAME = 128
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE = "before-first-apply"
_KUBECTL = "kubectl"
_NEVER_OWNED = set_of(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in SET_BY_SERVER)]
)
_NEVER_OWNED_META = _NEVER_OWNED["f:metadata"]


def manager_name(field_manager: str, user_agent: str) -> str:
    """The field manager: the `fieldManager` of the request, else the start of its User-Agent."""
    if field_manager:
        return field_manager
    prefix = user_agent.partition("/")[0]
    printable = "".join(each for each in prefix if each.isprintable())
    return printable.encode()[:MAX_NAME].decode(errors="ignore")


def convert_version(document: Document, api_version: str) -> Document | None:
    """Convert an object to another version of its kind; None if the kind has no such version."""
    current, kind = document["apiVersion"], document["kind"]
    if current == api_version:
        return document
    known = find_kind(api_version, kind)
    if known is None:
        return None
    data = from_internal(api_version, kind, to_internal(current, kind, dict(document)))
    return {**data, "apiVersion": api_version}


class FieldTracker:
    """Tracks writes to one endpoint: a kind in a version, or one of its subresources. Has no state."""

    __slots__ = ("_subresource", "_target")

    def __init__(
        self, api_version: str, kind: str, *, subresource: str = "", convert: Convert = convert_version
    ) -> None:
        self._target = WriteTarget(api_version, kind, reach_of(kind, subresource), convert)
        self._subresource = subresource

    def owners_after(self, live: Document | None, known: Owners, new: Document, *, manager: str, now: str) -> Owners:
        """The owners after a create (`live` is None), update or plain patch. `known` are the owners of `live`.

        `new` is decoded and defaulted, not yet admitted. managedFields in it are believed.
        """
        sent = _managed(new)
        stored = _managed(live) if live is not None else None
        # A subresource does not reach managedFields.
        owners = known if sent is stored or self._subresource else _sent_owners(sent, stored, known)
        if not owners and live is not None:
            return owners  # never tracked, or reset by a client: stays so until the first apply
        try:
            if live is None:
                remaining, taken = own_create(self._target, _without_managed(new) if owners else new, owners)
            elif sent is stored:  # then the comparison passes over it
                remaining, taken = own_update(self._target, live, new, owners)
            else:
                remaining, taken = own_update(self._target, _without_managed(live), _without_managed(new), owners)
            return self._owned(remaining, taken, manager, now)
        except RecursionError:  # raw JSON deeper than the stack: the write succeeds, and the owners stay as they are
            return owners

    def _owned(self, remaining: Owners, taken: FieldSet, manager: str, now: str) -> Owners:
        """Add the fields that a plain write takes to its manager."""
        taken = _without_server_set(taken)
        if not taken:
            return remaining
        version = self._target.api_version
        me = updater(manager, version, self._subresource)
        before = remaining.get(me)
        fields = union(before.fields, taken) if before else taken
        return cap_updaters({**remaining, me: OwnedFields(fields, version, now)})

    def apply(
        self, live: Document | None, applied: Document, *, manager: str, now: str, force: bool = False
    ) -> dict[str, Any]:
        """The object after an apply; without `live` it is a new object.

        The caller decodes, defaults, admits and validates the result. Raises ApiError 400 and 409.
        """
        try:
            return self._apply(live, applied, manager, now, force=force)
        except RecursionError:
            raise malformed(TOO_DEEP) from None

    def _apply(
        self, live: Document | None, applied: Document, manager: str, now: str, *, force: bool
    ) -> dict[str, Any]:
        self._check_applied(applied)
        owners = _owners_of(live, strict=True)
        before = _without_managed(live) if live is not None else self._bare()
        if not owners and live is not None:
            owners = self._owned(*own_create(self._target, before, {}), _BEFORE, now)
        try:
            document, owners = self._applied(before, applied, owners, manager, now, force=force)
        except ApplyConflicts as refused:
            raise _refusal(refused.conflicts) from None
        result = _with_managed(dict(document), owners)
        return _with_last_applied(result, applied) if manager == _KUBECTL else result

    def _applied(
        self, live: Document, applied: Document, owners: Owners, manager: str, now: str, *, force: bool
    ) -> tuple[Document, Owners]:
        target = self._target
        me = applier(manager, self._subresource)
        try:
            document, owners = own_apply(target, live, applied, owners, me, force=force)
        except ApplyConflicts as refused:
            # Moving from client-side to server-side apply must not conflict with oneself.
            allowed = self._kubectl_owns(live) if manager == _KUBECTL else {}
            left = [(who, path) for who, path in refused.conflicts if not _contains(allowed, path)]
            if left:
                raise ApplyConflicts(left) from None
            document, owners = own_apply(target, live, applied, owners, me, force=True)
        if me in owners:
            fields = difference(owners[me].fields, _NEVER_OWNED)
            # An apply without effect keeps its time, so that it writes nothing.
            time = now if document != live else owners[me].time
            owners = {**owners, me: OwnedFields(fields, target.api_version, time)}
            if not fields:
                del owners[me]
        return document, owners

    def _kubectl_owns(self, live: Document) -> FieldSet:
        """Fields that kubectl's client-side apply set and nobody changed since: its server-side apply may take them."""
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        try:
            last = json.loads(text or "")
        except ValueError:
            return {}
        atom = self._target.atom
        if not isinstance(last, dict) or last.get("apiVersion") != self._target.api_version:
            return {}
        if problems_of(atom, last):
            return {}
        changes = compare(atom, last, live)
        return difference(difference(fields_of(atom, last), changes.changed), changes.removed)

    def _check_applied(self, applied: Document) -> None:
        version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
        if (version, kind) != (self._target.api_version, self._target.kind):
            raise malformed(f"invalid object type: {version}, Kind={kind}")
        if _managed(applied) is not None:
            raise malformed("metadata.managedFields must be nil")
        if problems := problems_of(self._target.atom, applied):
            metadata = applied.get("metadata")
            named = metadata if isinstance(metadata, Mapping) else {}
            subject = f"{named.get('namespace', '')}/{named.get('name', '')}; {version}, Kind={kind}"
            raise untyped(subject, problems)

    def _bare(self) -> dict[str, Any]:
        return {"apiVersion": self._target.api_version, "kind": self._target.kind}


def _without_server_set(fields: FieldSet) -> FieldSet:
    """Drop fields that nobody owns. They are only at the top and right below metadata: no need for `difference`."""
    rest: FieldSet = {}
    for name, node in fields.items():
        if name == "f:metadata":
            below = {key: each for key, each in node.items() if key not in _NEVER_OWNED_META}
            if below:
                rest[name] = below
        elif name not in _NEVER_OWNED:
            rest[name] = node
    return rest


def _managed(document: Document) -> Any:
    metadata = document.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _sent_owners(sent: Any, stored: Any, known: Owners) -> Owners:
    """The owners to start from: those that the client sent, if it sent other ones than are stored."""
    if sent is None or sent == stored:
        return known
    if is_reset(sent):
        return {}
    try:
        return read_owners(sent) or known
    except ValueError:
        return known


def _owners_of(live: Document | None, *, strict: bool = False) -> Owners:
    try:
        return read_owners(_managed(live), stored=True) if live is not None else {}
    except ValueError as error:
        if strict:
            raise malformed(f"failed to decode managed fields: {error}") from None
        return {}


def _without_managed(document: Document) -> dict[str, Any]:
    if _managed(document) is None:
        return dict(document)
    metadata = dict(document["metadata"])
    del metadata["managedFields"]
    return {**document, "metadata": metadata}


def _with_managed(document: dict[str, Any], owners: Owners) -> dict[str, Any]:
    if not owners:
        return document
    metadata = {**(document.get("metadata") or {}), "managedFields": write_owners(owners)}
    return {**document, "metadata": metadata}


def _with_last_applied(document: dict[str, Any], applied: Document) -> dict[str, Any]:
    """Keep kubectl's last-applied annotation up to date, so that a user can go back to client-side apply."""
    annotations = document["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return document
    metadata = dict(applied.get("metadata") or {})
    others = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = others
    text = json.dumps({**applied, "metadata": metadata}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    updated = {**document["metadata"], "annotations": {**annotations, LAST_APPLIED: text + "\n"}}
    return {**document, "metadata": updated}


def _contains(fields: FieldSet, path: Elements) -> bool:
    node = fields
    for element in path[:-1]:
        node = node.get(element) or {}
    return has(node, path[-1])


def _refusal(conflicts: list[tuple[Any, Elements]]) -> Exception:
    causes = [
        StatusCause(reason="FieldManagerConflict", message=f"conflict with {who.words}", field=render(path))
        for who, path in conflicts
    ]
    if len(causes) == 1:
        return conflicting(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes)
    lines: list[str] = []
    for index, (who, path) in enumerate(conflicts):
        if index == 0 or conflicts[index - 1][0] != who:
            lines.append(f"conflicts with {who.words}:")
        lines.append(f"- {render(path)}")
    return conflicting(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes)
