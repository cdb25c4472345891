"""`metadata.managedFields`: who owns which fields.

In:  the entries of an object, from the store or from a client.
Out: Owners: the fields of each manager; and entries again, in Kubernetes' order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from drakit.apiserver.patching.fieldsets import FieldSet, normalized, union

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATERS = 10
_ANCIENT = "ancient-changes"
_UNKNOWN = "unknown"


class Manager(NamedTuple):
    """Who wrote, how, and in which version. An applier is the same in every version, so its version is empty."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def order(self) -> str:
        """The text by which Kubernetes sorts managers: the entry as JSON, without time and fields."""
        given = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        given["subresource"] = self.subresource
        return json.dumps({key: value for key, value in given.items() if value}, separators=(",", ":"))

    @property
    def words(self) -> str:
        """The manager in the message of a conflict: `"editor" using resource.k8s.io/v1`."""
        text = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


def updater(name: str, api_version: str, subresource: str = "") -> Manager:
    return Manager(name or _UNKNOWN, UPDATE, api_version, subresource)


def applier(name: str, subresource: str = "") -> Manager:
    return Manager(name or _UNKNOWN, APPLY, "", subresource)


class OwnedFields(msgspec.Struct, frozen=True):
    """The fields that a manager owns, as fields of `api_version`; `time` is that of its last change."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    entry: dict[str, Any] | None = None
    """The entry that these fields were read from, if nothing has changed since."""

    def owning(self, fields: FieldSet) -> OwnedFields:
        return self if fields == self.fields else OwnedFields(fields, self.api_version, self.time)


Owners = dict[Manager, OwnedFields]


def read_owners(entries: Any, *, stored: bool = False) -> Owners:
    """Read entries; ValueError if one is malformed.

    Entries from the store (`stored`) have the right form. The ones that do not change are written back as they are.
    """
    owners: Owners = {}
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        version = entry.get("apiVersion") or ""
        if not version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"invalid fieldsType in managed fields entry {index}")
        operation = entry["operation"]
        # One applier has one entry, whatever version it applies in. Updaters have one per version.
        known = version if operation == UPDATE else ""
        manager = Manager(entry.get("manager") or "", operation, known, entry.get("subresource") or "")
        fields = normalized(entry.get("fieldsV1") or {})
        owners[manager] = OwnedFields(fields, version, entry.get("time"), entry if stored else None)
    return owners


def write_owners(owners: Owners) -> list[dict[str, Any]]:
    """The entries: appliers first, older before newer."""
    entries = [owned.entry or _entry(manager, owned) for manager, owned in owners.items()]
    return sorted(entries, key=_entry_order) if len(entries) > 1 else entries


def with_entries(owners: Owners) -> Owners:
    """The same owners with their entries made: writing and later reads use these."""
    return {manager: owned if owned.entry else _with_entry(manager, owned) for manager, owned in owners.items()}


def _with_entry(manager: Manager, owned: OwnedFields) -> OwnedFields:
    return OwnedFields(owned.fields, owned.api_version, owned.time, _entry(manager, owned))


def _entry(manager: Manager, owned: OwnedFields) -> dict[str, Any]:
    entry: dict[str, Any] = {"manager": manager.name} if manager.name else {}
    entry["operation"] = manager.operation
    entry["apiVersion"] = owned.api_version
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _entry_order(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def is_reset(entries: Any) -> bool:
    """Whether a client asks to forget all owners: an empty list, or a list of one empty entry."""
    return isinstance(entries, list) and entries in ([], [{}])


def cap_updaters(owners: Owners) -> Owners:
    """Keep at most ten updaters: the oldest of a version are merged into one called `ancient-changes`."""
    updaters = [manager for manager in owners if manager.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return owners
    result = dict(owners)
    first: dict[str, Manager] = {}
    for manager in sorted(updaters, key=lambda each: (owners[each].time or "", each.order)):
        if surplus == 0:
            break
        owned = result[manager]
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        bucket = Manager(_ANCIENT, UPDATE, owned.api_version)
        before = result.pop(bucket, None) or result.pop(first[owned.api_version])
        del result[manager]
        result[bucket] = OwnedFields(union(owned.fields, before.fields), owned.api_version, owned.time)
        surplus -= 1
    return result
