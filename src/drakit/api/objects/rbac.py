"""Views of the kinds of `rbac.authorization.k8s.io/v1`, from which the authorizer decides."""

from __future__ import annotations

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, nested, text
from drakit.base.labels import LabelSelector
from drakit.base.structs import Model


class PolicyRule(Model):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


class Role(Model):
    kind: str = constant("Role")
    api_version: str = constant("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    rules: tuple[PolicyRule, ...] = ()


class AggregationRule(Model):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Model):
    kind: str = constant("ClusterRole")
    api_version: str = constant("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    rules: tuple[PolicyRule, ...] = ()
    aggregation_rule: AggregationRule | None = None


class Subject(Model):
    kind: str = text()
    api_group: str = ""
    name: str = text()
    namespace: str = ""


class RoleRef(Model):
    api_group: str = text()
    kind: str = text()
    name: str = text()


class RoleBinding(Model):
    kind: str = constant("RoleBinding")
    api_version: str = constant("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = nested(RoleRef)


class ClusterRoleBinding(Model):
    kind: str = constant("ClusterRoleBinding")
    api_version: str = constant("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = nested(RoleRef)
