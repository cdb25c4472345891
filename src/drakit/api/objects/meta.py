"""What every object carries: `metadata`, conditions, owner references, list metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.objects.wire import mapping, text
from drakit.base.structs import Model


class OwnerReference(Model):
    api_version: str = text()
    kind: str = text()
    name: str = text()
    uid: str = text()
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str | None = None
    fields_type: str = ""
    fields_v1: Mapping[str, Any] | None = msgspec.field(default=None, name="fieldsV1")
    subresource: str = ""


class ObjectMeta(Model):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = mapping()
    annotations: Mapping[str, str] = mapping()
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if it has one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Condition(Model):
    type: str = text()
    status: str = text()
    observed_generation: int = 0
    last_transition_time: str | None = msgspec.field(default_factory=lambda: None)
    reason: str = text()
    message: str = text()


def find_condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, of which a well-formed list has at most one."""
    return next((condition for condition in conditions if condition.type == type_), None)
