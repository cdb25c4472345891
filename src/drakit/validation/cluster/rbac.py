"""Roles and their bindings: rules that grant something, references that stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.api import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.validation.fields.gonames import as_go
from drakit.validation.fields.names import check_subdomain

GROUP = "rbac.authorization.k8s.io"
SUBJECTS = ("ServiceAccount", "User", "Group")


def check_role(role: Role | ClusterRole) -> Iterator[FieldError]:
    for index, rule in enumerate(role.rules):
        yield from _check_rule(rule, Path("rules")[index], namespaced=isinstance(role, Role))
    aggregation = role.aggregation_rule if isinstance(role, ClusterRole) else None
    if aggregation is not None and not aggregation.cluster_role_selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(Path("aggregationRule.clusterRoleSelectors"), detail)


def check_binding(binding: RoleBinding | ClusterRoleBinding) -> Iterator[FieldError]:
    kinds = ("Role", "ClusterRole") if isinstance(binding, RoleBinding) else ("ClusterRole",)
    yield from _check_reference(binding.role_ref, Path("roleRef"), kinds)
    for index, subject in enumerate(binding.subjects):
        yield from _check_subject(subject, Path("subjects")[index], namespaced=isinstance(binding, RoleBinding))


def check_binding_update(
    new: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding
) -> Iterator[FieldError]:
    if new.role_ref != old.role_ref:
        yield invalid(Path("roleRef"), as_go(new.role_ref), "cannot change roleRef")


def _check_rule(rule: PolicyRule, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.verbs:
        yield required(path / "verbs", "verbs must contain at least one value")
    if rule.non_resource_urls:
        urls = list(rule.non_resource_urls)
        if namespaced:
            yield invalid(path / "nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.api_groups or rule.resources or rule.resource_names:
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(path / "nonResourceURLs", urls, detail)
        return
    if not rule.api_groups:
        yield required(path / "apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        yield required(path / "resources", "resource rules must supply at least one resource")


def _check_reference(reference: RoleRef, path: Path, kinds: Sequence[str]) -> Iterator[FieldError]:
    """A group that is not given is this one."""
    if reference.api_group not in ("", GROUP):
        yield not_supported(path / "apiGroup", reference.api_group, (GROUP,))
    if reference.kind not in kinds:
        yield not_supported(path / "kind", reference.kind, kinds)
    if not reference.name:
        yield required(path / "name")
    for message in names.check_path_segment(reference.name):
        yield invalid(path / "name", reference.name, message)


def _check_subject(subject: Subject, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not subject.name:
        yield required(path / "name")
    if subject.kind not in SUBJECTS:
        yield not_supported(path / "kind", subject.kind, SUBJECTS)
    elif subject.kind != "ServiceAccount":
        if subject.api_group not in ("", GROUP):
            yield not_supported(path / "apiGroup", subject.api_group, (GROUP,))
    else:
        if subject.name:
            yield from check_subdomain(subject.name, path / "name")
        if subject.api_group:
            yield not_supported(path / "apiGroup", subject.api_group, ("",))
        if not namespaced and not subject.namespace:
            yield required(path / "namespace")
