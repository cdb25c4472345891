"""The rules that an object must keep: the one place where the server asks the room `validation`.

In:  a change, after defaults, preparation and admission.
Out: every broken rule; one or more of them end the request with 422.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from drakit.api.meta import ObjectMeta
from drakit.api.plain import from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission import Change
from drakit.apiserver.failures import ApiError
from drakit.base import names, status
from drakit.base.fields import FieldError
from drakit.validation.metadata import NameRule, check_metadata, check_metadata_update

_NAME_RULES: dict[str, NameRule] = {
    "Namespace": names.check_dns_label,
    "Role": names.check_path_segment,
    "ClusterRole": names.check_path_segment,
    "RoleBinding": names.check_path_segment,
    "ClusterRoleBinding": names.check_path_segment,
    "Service": names.check_dns1035_label,
}


class Rules(Protocol):
    def create(self, change: Change) -> Iterable[FieldError]:
        """What is wrong with `change.new`."""
        ...

    def update(self, change: Change) -> Iterable[FieldError]:
        """What is wrong with `change.new` in the place of `change.old`; `subresource` says which door it came by."""
        ...


class MetadataRules:
    """The rules that all kinds share: those of metadata."""

    def create(self, change: Change) -> Iterator[FieldError]:
        meta = from_plain(ObjectMeta, change.document["metadata"])
        rule = _NAME_RULES.get(change.kind.kind, names.check_dns_subdomain)
        yield from check_metadata(meta, namespaced=change.kind.namespaced, name_rule=rule)

    def update(self, change: Change) -> Iterator[FieldError]:
        old = change.old or change.document
        new, before = (from_plain(ObjectMeta, each["metadata"]) for each in (change.document, old))
        yield from check_metadata_update(new, before)


def require(kind: Kind, name: str, found: Iterable[FieldError]) -> None:
    """Raise 422 with every error, if there is one."""
    errors = tuple(found)
    if errors:
        raise ApiError(status.invalid(kind.kind, kind.group, name, errors))
