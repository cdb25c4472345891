"""Object metadata: names, labels, annotations, owners, finalizers, and what an update may change of them.

In:  `metadata` of an object, after names were generated and what the server sets was filled in.
Out: errors under `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any

from drakit.api import ManagedFieldsEntry, ObjectMeta, OwnerReference
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from drakit.base.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from drakit.validation.fields.gonames import as_go

NameRule = Callable[[str], list[str]]

METADATA = Path("metadata")
_NAME = METADATA / "name"
_NAMESPACE = METADATA / "namespace"
_UID = METADATA / "uid"
_LABELS = METADATA / "labels"
_ANNOTATIONS = METADATA / "annotations"
_OWNERS = METADATA / "ownerReferences"
_FINALIZERS = METADATA / "finalizers"
_MANAGED = METADATA / "managedFields"
_CREATED = METADATA / "creationTimestamp"
_DELETED = METADATA / "deletionTimestamp"
_GRACE = METADATA / "deletionGracePeriodSeconds"
_IMMUTABLE = (_NAME, _NAMESPACE, _UID, _CREATED, _DELETED, _GRACE)
IMMUTABLE = "field is immutable"
ANNOTATIONS_SIZE = 256 * 1024
_LONGEST_LETTER = 4  # bytes of UTF-8
_SHORT = 512
"""Longer keys, and entries of managedFields with longer texts, are not remembered: they are mostly no good."""
MANAGER_LENGTH = 128
SUBRESOURCE_LENGTH = 256
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN_FINALIZER, FOREGROUND_FINALIZER)
_UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def check_metadata(
    meta: ObjectMeta, *, namespaced: bool, name_rule: NameRule = names.check_dns_subdomain, prefixed: bool = True
) -> Iterator[FieldError]:
    """The rules for a new object."""
    yield from check_form(meta, namespaced=namespaced, name_rule=name_rule, prefixed=prefixed)
    if meta.generation < 0:
        yield _negative_generation(meta)
    yield from _check_content(meta)
    if meta.finalizers:
        yield from _check_qualified_finalizers(meta.finalizers)


def check_form(
    meta: ObjectMeta, *, namespaced: bool, name_rule: NameRule = names.check_dns_subdomain, prefixed: bool = True
) -> Iterator[FieldError]:
    """Names and finalizers. Some kinds are held to it in every update, most only when they are made.

    Without `prefixed` only the name that was made of a prefix is judged, not the prefix.
    """
    yield from _check_names(meta, name_rule, prefixed)
    yield from _check_namespace(meta.namespace, namespaced, _NAMESPACE)
    if meta.finalizers:
        yield from _check_finalizers(meta.finalizers, _FINALIZERS)


def check_form_update(new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    """`check_form` for an update of an object of a namespace. Names that are as they were made are good."""
    if (new.name, new.namespace, new.generate_name) != (old.name, old.namespace, old.generate_name):
        yield from check_form(new, namespaced=True)
    elif new.finalizers:
        yield from _check_finalizers(new.finalizers, _FINALIZERS)


def check_metadata_update(new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    """The rules for metadata that replaces other metadata."""
    yield from _check_changes(new, old)
    if new.finalizers:
        yield from _check_finalizers(new.finalizers, _FINALIZERS)
    yield from _check_content(new)
    if new.finalizers:
        yield from _check_qualified_finalizers(new.finalizers)


def told_of_metadata(new: ObjectMeta, old: ObjectMeta, *, wholly: bool) -> Iterator[FieldError]:
    """The errors of `check_metadata_update`, in the order and as often as Kubernetes tells them.

    Its server looks at the metadata of every kind before the rules of the kind do. Those of some kinds look at it
    `wholly`, as at that of a new object, too.
    """
    yield from _check_finalizers(new.finalizers, _FINALIZERS)
    yield from _check_content(new)
    yield from _check_changes(new, old)
    yield from _check_content(new)
    if wholly:
        yield from _check_finalizers(new.finalizers, _FINALIZERS)
        yield from _check_content(new)
        yield from _check_qualified_finalizers(new.finalizers)
    yield from _check_changes(new, old)
    yield from _check_content(new)
    yield from _check_qualified_finalizers(new.finalizers)


def _check_changes(new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    # A new finalizer could hold an object for ever whose deletion was already asked for.
    if old.deletion_timestamp is not None:
        yield from _check_no_new_finalizers(new.finalizers, old.finalizers, _FINALIZERS)
    if new.generation < 0:
        yield _negative_generation(new)
    if new.generation < old.generation:
        yield invalid(METADATA / "generation", new.generation, "must not be decremented")
    before, after = _immutable_fields(old), _immutable_fields(new)
    # One comparison of tuples for the usual case; paths are built only for what differs.
    if after != before:
        for was, is_now, path in zip(before, after, _IMMUTABLE, strict=True):
            if is_now != was:
                yield from immutable(is_now, was, path)


def _immutable_fields(meta: ObjectMeta) -> tuple[Any, ...]:
    """Fields that no update may change."""
    return (
        meta.name,
        meta.namespace,
        meta.uid,
        meta.creation_timestamp,
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
    )


def check_template_metadata(meta: ObjectMeta, path: Path, empty: Set[str] = frozenset()) -> Iterator[FieldError]:
    """Metadata that is copied into the objects of a template: labels and annotations, nothing else.

    `empty` are the paths of empty lists that a client sent: these count as set.
    """
    for name, value in (
        ("name", meta.name),
        ("generateName", meta.generate_name),
        ("namespace", meta.namespace),
        ("selfLink", meta.self_link),
        ("uID", meta.uid),
        ("resourceVersion", meta.resource_version),
        ("generation", meta.generation),
        ("creationTimestamp", meta.creation_timestamp),
        ("deletionTimestamp", meta.deletion_timestamp),
        ("deletionGracePeriodSeconds", meta.deletion_grace_period_seconds),
        ("ownerReferences", meta.owner_references),
        ("finalizers", meta.finalizers),
        ("managedFields", meta.managed_fields),
    ):
        if value or (empty and str(path / name) in empty):
            yield forbidden(path / name, "cannot be set")
    yield from check_annotations(meta.annotations, path / "annotations")
    yield from check_labels(meta.labels, path / "labels")


def immutable(new: Any, old: Any, path: Path, empty: Set[str] = frozenset()) -> Iterator[FieldError]:
    """An error when a value that stays as it was made has changed. `empty` as for `as_go`."""
    if new is not old and new != old:
        yield invalid(path, as_go(new, str(path), empty), IMMUTABLE)


def check_labels(labels: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    for key, value in labels.items():
        if not is_key(key):
            yield from (invalid(path, key, message) for message in names.check_label_key(key))
        yield from (invalid(path, value, message) for message in names.check_label_value(value))


def check_annotations(annotations: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    for key in annotations:
        if not is_key(key):
            yield from (invalid(path, key, message) for message in names.check_label_key(key.lower()))
    letters = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if letters * _LONGEST_LETTER <= ANNOTATIONS_SIZE:
        return
    if sum(names.size(key) + names.size(value) for key, value in annotations.items()) > ANNOTATIONS_SIZE:
        yield too_long(path, ANNOTATIONS_SIZE)


@lru_cache(maxsize=4096)
def _remembered(key: str) -> bool:
    return not names.check_label_key(key)


def is_key(key: str) -> bool:
    """Whether a key, or a finalizer, is good as it stands: objects have the same ones again and again."""
    return len(key) < _SHORT and _remembered(key)


def _check_names(meta: ObjectMeta, rule: NameRule, prefixed: bool) -> Iterator[FieldError]:
    """A prefix may end in a dash, because something comes after it."""
    prefix = meta.generate_name
    masked = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    for message in rule(masked) if prefix and prefixed else ():
        yield invalid(METADATA / "generateName", prefix, message)
    if meta.name:
        for message in rule(meta.name):
            yield invalid(_NAME, meta.name, message)
    elif not prefix:
        yield required(_NAME, "name or generateName is required")


def _check_namespace(namespace: str, namespaced: bool, path: Path) -> Iterator[FieldError]:
    if not namespaced:
        if namespace:
            yield forbidden(path, "not allowed on this type")
    elif not namespace:
        yield required(path)
    else:
        for message in names.check_dns_label(namespace):
            yield invalid(path, namespace, message)


def _negative_generation(meta: ObjectMeta) -> FieldError:
    return invalid(METADATA / "generation", meta.generation, "must be greater than or equal to 0")


def _check_content(meta: ObjectMeta) -> Iterator[FieldError]:
    if meta.labels:
        yield from check_labels(meta.labels, _LABELS)
    if meta.annotations:
        yield from check_annotations(meta.annotations, _ANNOTATIONS)
    if meta.owner_references:
        yield from _check_owners(meta.owner_references, _OWNERS)
    for index, entry in enumerate(meta.managed_fields):
        # Mostly they are good: then no path is built.
        texts = (entry.operation, entry.fields_type, entry.manager, entry.subresource)
        if sum(map(len, texts)) >= _SHORT or not _is_plain(*texts):
            yield from _check_manager(entry, index)


def _check_owners(owners: Sequence[OwnerReference], path: Path) -> Iterator[FieldError]:
    """Errors stand at the list, without the index of the owner, and only one owner controls.

    The whole list is shown once: as often as it has elements, it would fill the memory.
    """
    controller, shown = "", owners
    for owner in owners:
        if not _names_core_object(owner):
            yield from _check_owner(owner, path)
        if owner.controller:
            name = f"{owner.kind}/{owner.name}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {name}"
                )
                yield invalid(path, as_go(shown), detail)
                shown = (owner,)
            controller = controller or name


def _names_core_object(owner: OwnerReference) -> bool:
    """Whether a reference has all that it needs, and plainly so."""
    return bool(owner.api_version == "v1" and owner.kind not in ("", "Event") and owner.name and owner.uid)


def _check_owner(owner: OwnerReference, path: Path) -> Iterator[FieldError]:
    group, _, version = owner.api_version.rpartition("/")
    if not version or "/" in group:
        yield invalid(path / "apiVersion", owner.api_version, "version must not be empty")
    for name, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
        if not value:
            yield invalid(path / name, value, "must not be empty")
    if (owner.api_version, owner.kind) == ("v1", "Event"):
        yield invalid(path, as_go(owner), "/v1, Kind=Event is disallowed from being an owner")


def _check_finalizers(finalizers: Sequence[str], path: Path) -> Iterator[FieldError]:
    for finalizer in finalizers:
        if not is_key(finalizer):
            yield from (invalid(path, finalizer, message) for message in names.check_qualified_name(finalizer))
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        yield invalid(path, list(finalizers), detail)


def _check_qualified_finalizers(finalizers: Sequence[str]) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield invalid(_FINALIZERS[index], finalizer, _UNQUALIFIED)


def _check_no_new_finalizers(new: Sequence[str], old: Sequence[str], path: Path) -> Iterator[FieldError]:
    if added := sorted(set(new) - set(old)):
        shown = ", ".join(f'"{name}"' for name in added)
        yield forbidden(
            path,
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}",
        )


def _check_manager(entry: ManagedFieldsEntry, index: int) -> Iterator[FieldError]:
    path = _MANAGED[index]
    if not entry.operation:
        yield required(path / "operation", "must not be empty")
    elif entry.operation not in ("Apply", "Update"):
        yield not_supported(path / "operation", entry.operation, ("Apply", "Update"))
    if entry.fields_type and entry.fields_type != "FieldsV1":
        yield invalid(path / "fieldsType", entry.fields_type, "must be `FieldsV1`")
    yield from check_field_manager(entry.manager, path / "manager")
    if names.size(entry.subresource) > SUBRESOURCE_LENGTH:
        yield too_long(path / "subresource", SUBRESOURCE_LENGTH)


@lru_cache(maxsize=4096)
def _is_plain(operation: str, fields_type: str, manager: str, subresource: str) -> bool:
    """Whether an entry is plainly valid. Objects have those of the same few managers."""
    return (
        operation in ("Apply", "Update")
        and fields_type in ("", "FieldsV1")
        and manager.isascii()
        and manager.isprintable()
        and len(manager) <= MANAGER_LENGTH
        and subresource.isascii()
        and len(subresource) <= SUBRESOURCE_LENGTH
    )


def check_field_manager(manager: str, path: Path) -> Iterator[FieldError]:
    """Also the rule for the `fieldManager` of a request."""
    if names.size(manager) > MANAGER_LENGTH:
        yield too_long(path, MANAGER_LENGTH)
    for index, char in enumerate(manager):
        if not char.isprintable():
            yield invalid(path, manager, f"invalid character U+{ord(char):04X} (at position {index})")
