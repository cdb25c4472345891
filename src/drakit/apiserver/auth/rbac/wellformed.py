"""Validation of roles and bindings.

In:  an RBAC document, and the one that it replaces.
Out: field errors with upstream's messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import PolicyRule, RoleRef, Subject
from drakit.apiserver.auth.rbac.policy import GROUP
from drakit.base import fields, labels, names
from drakit.base.errors import UsageError
from drakit.base.fields import FieldError, Path

_REFERENCE = Path("roleRef")


def problems(kind: str, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[FieldError]:
    namespaced = kind in ("Role", "RoleBinding")
    if kind in ("Role", "ClusterRole"):
        for index, rule in enumerate(new.get("rules") or ()):
            yield from _rule(from_plain(PolicyRule, rule), Path("rules")[index], namespaced=namespaced)
        yield from _aggregation(new.get("aggregationRule"))
        return
    yield from _reference(from_plain(RoleRef, new.get("roleRef") or {}), namespaced=namespaced)
    for index, subject in enumerate(new.get("subjects") or ()):
        yield from _subject(from_plain(Subject, subject), Path("subjects")[index], namespaced=namespaced)
    if old is not None and new.get("roleRef") != old.get("roleRef"):
        yield fields.invalid(_REFERENCE, new.get("roleRef"), "cannot change roleRef")


def _rule(rule: PolicyRule, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.verbs:
        yield fields.required(path / "verbs", "verbs must contain at least one value")
    if rule.non_resource_urls:
        at, value = path / "nonResourceURLs", list(rule.non_resource_urls)
        if namespaced:
            yield fields.invalid(at, value, "namespaced rules cannot apply to non-resource URLs")
        if rule.api_groups or rule.resources or rule.resource_names:
            yield fields.invalid(at, value, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.api_groups:
        yield fields.required(path / "apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        yield fields.required(path / "resources", "resource rules must supply at least one resource")


def _aggregation(rule: Mapping[str, Any] | None) -> Iterator[FieldError]:
    if rule is None:
        return
    path = Path("aggregationRule") / "clusterRoleSelectors"
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        yield fields.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        try:
            labels.from_struct(from_plain(labels.LabelSelector, selector))
        except UsageError:
            yield fields.invalid(path[index], selector, "invalid label selector.")


def _reference(reference: RoleRef, *, namespaced: bool) -> Iterator[FieldError]:
    if reference.api_group != GROUP:
        yield fields.not_supported(_REFERENCE / "apiGroup", reference.api_group, (GROUP,))
    kinds = ("ClusterRole", "Role") if namespaced else ("ClusterRole",)
    if reference.kind not in kinds:
        yield fields.not_supported(_REFERENCE / "kind", reference.kind, kinds)
    if not reference.name:
        yield fields.required(_REFERENCE / "name")
    for message in names.check_path_segment(reference.name):
        yield fields.invalid(_REFERENCE / "name", reference.name, message)


def _subject(subject: Subject, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not subject.name:
        yield fields.required(path / "name")
    if subject.kind in ("User", "Group"):
        if subject.api_group != GROUP:
            yield fields.not_supported(path / "apiGroup", subject.api_group, (GROUP,))
    elif subject.kind == "ServiceAccount":
        yield from _account(subject, path, namespaced=namespaced)
    else:
        yield fields.not_supported(path / "kind", subject.kind, ("Group", "ServiceAccount", "User"))


def _account(subject: Subject, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    for message in names.check_dns_subdomain(subject.name) if subject.name else ():
        yield fields.invalid(path / "name", subject.name, message)
    if subject.api_group:
        yield fields.not_supported(path / "apiGroup", subject.api_group, ("",))
    if not namespaced and not subject.namespace:
        yield fields.required(path / "namespace")
