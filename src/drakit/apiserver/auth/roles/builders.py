"""Builders of roles and bindings.

In:  `on("get list watch", "core", "pods nodes")`.
Out: documents as they are stored; words in the order in which the server shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drakit.apiserver.auth.rbac.policy import GROUP

Document = dict[str, Any]
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
READ = "get list watch"
WRITE = "create delete deletecollection patch update"
UPDATE = "patch update"
ALL = f"{READ} {WRITE}"


def on(verbs: str, groups: str, resources: str, names: str = "") -> Document:
    """A rule on resources. The core group is written `core`."""
    rule: Document = {
        "verbs": sorted(verbs.split()),
        "apiGroups": sorted("" if group == "core" else group for group in groups.split()),
        "resources": sorted(resources.split()),
    }
    return {**rule, "resourceNames": sorted(names.split())} if names else rule


def at(verbs: str, paths: str) -> Document:
    """A rule on paths."""
    return {"verbs": sorted(verbs.split()), "nonResourceURLs": sorted(paths.split())}


EVENTS = on("create patch update", "core events.k8s.io", "events")


def cluster_role(name: str, rules: Iterable[Document], labels: Mapping[str, str] | None = None) -> Document:
    return {**_head("ClusterRole", name, labels or {}), "rules": list(rules)}


def aggregated_role(name: str, selected: str, labels: Mapping[str, str] | None = None) -> Document:
    """A role whose rules are those of all roles with the label `selected`."""
    selectors = {"clusterRoleSelectors": [{"matchLabels": {selected: "true"}}]}
    return {**_head("ClusterRole", name, labels or {}), "aggregationRule": selectors, "rules": None}


def role(namespace: str, name: str, rules: Iterable[Document]) -> Document:
    return _placed({**_head("Role", name, {}), "rules": list(rules)}, namespace)


def cluster_binding(name: str, subjects: Sequence[Document], *, of: str = "") -> Document:
    return _bound("ClusterRoleBinding", name, "ClusterRole", of or name, subjects)


def binding(namespace: str, name: str, subjects: Sequence[Document], *, of: str = "") -> Document:
    return _placed(_bound("RoleBinding", name, "Role", of or name, subjects), namespace)


def user(name: str) -> Document:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> Document:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(namespace: str, name: str) -> Document:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _bound(kind: str, name: str, role_kind: str, of: str, subjects: Sequence[Document]) -> Document:
    reference = {"apiGroup": GROUP, "kind": role_kind, "name": of}
    made = {**_head(kind, name, {}), "roleRef": reference}
    return {**made, "subjects": list(subjects)} if subjects else made


def _head(kind: str, name: str, labels: Mapping[str, str]) -> Document:
    metadata = {"name": name, "labels": {**BOOTSTRAPPING, **labels}, "annotations": {AUTOUPDATE: "true"}}
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata}


def _placed(document: Document, namespace: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
