"""Who owns which field after a write: the rules of structured merge.

In:  the object before and after, and its owners.
Out: the owners after. A changed field leaves its other owners; a removed field leaves all of them. An apply that would
     change fields of others is refused, with every conflict.

Owners may own fields of another version. Objects are converted to that version to compare them there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from drakit.api.codec.specs import SHARED_SIZE, SPECS
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.patching.atoms import Atom, atom_of
from drakit.apiserver.patching.comparing import Comparison, compare, fields_of
from drakit.apiserver.patching.entries import Manager, OwnedFields, Owners
from drakit.apiserver.patching.fieldsets import (
    Elements,
    FieldSet,
    difference,
    intersection,
    paths,
    union,
)
from drakit.apiserver.patching.merging import merge, remove, with_containers
from drakit.apiserver.patching.reach import Reach

Document = Mapping[str, Any]
Convert = Callable[[Document, str], "Document | None"]
"""Converts an object to another version of its kind; None when that version is not served (any more)."""

_SELF = Manager("", "current-operation")
_SPEC = "spec"
SET_BY_SERVER = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
     "resourceVersion")
)  # fmt: skip
"""Fields of metadata that nobody owns."""


class ApplyConflicts(Exception):
    """The apply would change fields of others. `conflicts` has each field with its owner."""

    def __init__(self, conflicts: list[tuple[Manager, Elements]]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class WriteTarget(NamedTuple):
    """What a write is to: kind and version, the fields that it can reach, and the conversion to other versions."""

    api_version: str
    kind: str
    reach: Reach
    convert: Convert

    @property
    def atom(self) -> Atom:
        return atom_of(self.api_version, self.kind)


def own_create(target: WriteTarget, new: Document, owners: Owners) -> tuple[Owners, FieldSet]:
    """The owners of a new object, and the fields that its creator owns: those that an empty object does not have."""
    if owners:
        return own_update(target, _empty(target.api_version, target.kind), new, owners)
    # The spec apart from the rest: only specs repeat, and are worth a cache. Without what nobody owns there is often
    # nothing left in metadata.
    metadata = {name: value for name, value in (new.get("metadata") or {}).items() if name not in SET_BY_SERVER}
    rest = {**new, "metadata": metadata}
    spec = rest.pop(_SPEC, None)
    for name in target.reach.beside:
        rest.pop(name, None)
    taken = _set_in(target.api_version, target.kind, rest)
    if spec is not None:
        taken = union(taken, _set_in_spec(target.api_version, target.kind, spec))
    return {}, target.reach.limit(taken)


def _set_in(api_version: str, kind: str, parts: Document) -> FieldSet:
    """The fields that some parts of a new object set."""
    return compare(atom_of(api_version, kind), _empty(api_version, kind), parts).changed


def _set_in_spec(api_version: str, kind: str, spec: Any) -> FieldSet:
    """The fields that a spec sets, cached by its JSON: objects of one template have equal specs."""
    text = SPECS.json_if_any(spec)
    if not text or len(text) > SHARED_SIZE:
        return _set_in(api_version, kind, {_SPEC: spec})
    return _remembered(api_version, kind, text)


@lru_cache(maxsize=4096)
def _remembered(api_version: str, kind: str, spec: bytes) -> FieldSet:
    return _set_in(api_version, kind, {_SPEC: msgspec.json.decode(spec)})


@cache
def _empty(api_version: str, kind: str) -> Document:
    """An object with nothing set, in the stored form: what a new object is compared with. Nobody changes it."""
    empty: Document = shape_of(api_version, kind).complete({"apiVersion": api_version, "kind": kind})
    return empty


def own_update(target: WriteTarget, live: Document, new: Document, owners: Owners) -> tuple[Owners, FieldSet]:
    """The owners after a plain write, and the fields that the write takes."""
    remaining, changes = _release(target, live, new, owners, _SELF, force=True)
    return remaining, changes.changed


def own_apply(
    target: WriteTarget, live: Document, applied: Document, owners: Owners, manager: Manager, *, force: bool
) -> tuple[Document, Owners]:
    """The object after an apply and its owners; raise ApplyConflicts unless forced."""
    atom = target.atom
    previous = owners.get(manager)
    fields = target.reach.limit(fields_of(atom, applied))
    time = previous.time if previous else None
    # The applied fields are owned before the merge, so that `_prune` does not take them for given up.
    owners = {**owners, manager: OwnedFields(fields, target.api_version, time)}
    merged = merge(atom, live, applied)
    # Prune before conflicts are looked for: a field that this manager gives up and nobody owns is removed without one.
    pruned = _prune(target, merged, owners, previous)
    remaining, _ = _release(target, live, pruned, owners, manager, force=force)
    return pruned, remaining


def _release(
    target: WriteTarget, live: Document, new: Document, owners: Owners, writer: Manager, *, force: bool
) -> tuple[Owners, Comparison]:
    """Take from every owner but the writer the fields that the write changes or removes, and can reach."""
    changes = _changes_in(target, target.api_version, live, new)
    if not owners:
        return {}, changes
    seen: dict[str, Comparison | None] = {target.api_version: changes}
    result: Owners = {}
    conflicts: list[tuple[Manager, Elements]] = []
    for manager, owned in owners.items():
        if manager == writer:
            result[manager] = owned
            continue
        if owned.api_version not in seen:
            seen[owned.api_version] = _converted_changes(target, live, new, owned.api_version)
        there = seen[owned.api_version]
        if there is None:
            continue  # its version is not served any more: as upstream, its fields are dropped
        # Changed fields are lost to the writer and may conflict. Removed ones just end.
        lost = intersection(owned.fields, there.changed)
        if lost and not force:
            conflicts += [(manager, path) for path in paths(lost)]
        if lost or there.removed:
            owned = owned.owning(difference(difference(owned.fields, lost), there.removed))
        result[manager] = owned
    if conflicts:
        raise ApplyConflicts(sorted(conflicts, key=lambda each: each[0].order))
    return {manager: owned for manager, owned in result.items() if owned.fields}, changes


def _converted_changes(target: WriteTarget, live: Document, new: Document, version: str) -> Comparison | None:
    before, after = target.convert(live, version), target.convert(new, version)
    if before is None or after is None:
        return None
    return _changes_in(target, version, before, after)


def _changes_in(target: WriteTarget, version: str, before: Document, after: Document) -> Comparison:
    """How two objects of this version differ in fields that the write can reach."""
    reach = target.reach
    if reach.beside:
        # The comparison passes over parts that are the same.
        after = {name: part for name, part in after.items() if name not in reach.beside}
        after |= {name: before[name] for name in reach.beside if name in before}
    found = compare(atom_of(version, target.kind), before, after)
    return found if reach.by_parts else Comparison(reach.limit(found.changed), reach.limit(found.removed))


def _prune(target: WriteTarget, merged: Document, owners: Owners, previous: OwnedFields | None) -> Document:
    """Remove the fields that this manager applied before, does not apply now, and nobody else owns."""
    if previous is None or not previous.fields:
        return merged
    version = previous.api_version
    then = target.convert(merged, version)
    if then is None:
        return merged
    atom = atom_of(version, target.kind)
    pruned: Document = remove(atom, then, with_containers(atom, previous.fields))
    pruned = _with_owned(target, then, pruned, version, owners)
    back = _convert_back(target, pruned, version)
    kept, all_ = (with_containers(atom, fields_of(atom, each)) for each in (back, then))
    gone = intersection(difference(all_, kept), with_containers(atom, previous.fields))
    result = remove(atom, then, gone) if gone else then
    return target.convert(result, target.api_version) or merged


def _convert_back(target: WriteTarget, document: Document, version: str) -> Document:
    return target.convert(document, version) or document


def _with_owned(target: WriteTarget, merged: Document, pruned: Document, version: str, owners: Owners) -> Document:
    """Put back the fields that somebody owns, version by version, the version of the previous apply first."""
    by_version: dict[str, FieldSet] = {version: {}}
    for owned in owners.values():
        by_version[owned.api_version] = union(by_version.get(owned.api_version, {}), owned.fields)
    for each, fields in by_version.items():
        before, after = target.convert(merged, each), target.convert(pruned, each)
        if not fields or before is None or after is None:
            continue
        atom = atom_of(each, target.kind)
        there, left, owned_there = (
            with_containers(atom, some) for some in (fields_of(atom, before), fields_of(atom, after), fields)
        )
        gone = difference(there, union(left, owned_there))
        merged, pruned = before, remove(atom, before, gone) if gone else before
    return pruned
