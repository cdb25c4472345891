"""Roles and bindings, indexed by whom they are for.

In:  RBAC objects, at each write.
Out: the rules of a user in a namespace, and the binding that each comes from.

`generation` counts changes: a cached result is valid while it stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from drakit.api.exchange import User
from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject
from drakit.apiserver.auth.rbac.rules import CompiledRule, compile_rules

GROUP = "rbac.authorization.k8s.io"
ACCOUNT_PREFIX = "system:serviceaccount:"
_REMEMBERED = 8192
SubjectKey = tuple[str, str]
"""`User` or `Group`, and the name: a user and a group may have the same name."""


class IndexedBinding(msgspec.Struct, frozen=True):
    """A RoleBinding, or, without a namespace, a ClusterRoleBinding."""

    namespace: str
    name: str
    role: RoleRef
    subjects: tuple[Subject, ...]

    def subject_of(self, user: User) -> Subject:
        """The first subject that is this user or one of its groups."""
        names = set(subjects_of(user))
        return next(each for each in self.subjects if subject_key(each, self.namespace) in names)


class Grant(msgspec.Struct, frozen=True):
    """The rules that one binding gives a user; None if its role does not exist."""

    binding: IndexedBinding
    subject: Subject
    rules: tuple[CompiledRule, ...] | None

    def __str__(self) -> str:
        binding, role = self.binding, self.binding.role
        place = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
        kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
        return f'{kind} "{place}" of {role.kind} "{role.name}" to {self._subject()}'

    @property
    def missing(self) -> str:
        return f'{self.binding.role.kind.lower()}.{GROUP} "{self.binding.role.name}" not found'

    def _subject(self) -> str:
        subject = self.subject
        if subject.kind == "ServiceAccount":
            return f'{subject.kind} "{subject.name}/{subject.namespace or self.binding.namespace}"'
        return f'{subject.kind} "{subject.name}"'


class RolePolicy:
    """Invariant: `_by_subject` names each binding under each of its subjects, and nothing else."""

    def __init__(self) -> None:
        self.generation = 0
        self._roles: dict[tuple[str, str], tuple[CompiledRule, ...]] = {}
        self._bindings: dict[tuple[str, str], IndexedBinding] = {}
        self._by_subject: dict[tuple[str, SubjectKey], set[str]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], tuple[Grant, ...]] = {}

    def put(self, kind: str, document: Mapping[str, Any]) -> None:
        """Add or replace a role or a binding."""
        metadata = document["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if kind in ("Role", "ClusterRole"):
            rules = [from_plain(PolicyRule, rule) for rule in document.get("rules") or ()]
            self._roles[key] = compile_rules(rules)
        else:
            self._unbind(key)
            self._bind(key, kind, document)
        self._changed()

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Idempotent."""
        if kind in ("Role", "ClusterRole"):
            self._roles.pop((namespace, name), None)
        else:
            self._unbind((namespace, name))
        self._changed()

    def has_role(self, name: str) -> bool:
        """Whether there is a cluster role of this name."""
        return ("", name) in self._roles

    def role(self, reference: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules that a binding in `namespace` refers to."""
        found = self._rules(reference, namespace)
        return None if found is None else tuple(rule.source for rule in found)

    def grants(self, user: User, namespace: str) -> tuple[Grant, ...]:
        """The grants of a user: cluster-wide ones first, then those in the namespace, each sorted by name."""
        key = (user.name, user.groups, namespace)
        found = self._grants.get(key)
        if found is None:
            if len(self._grants) >= _REMEMBERED:
                self._grants.clear()
            found = self._grants[key] = tuple(self._resolve(user, namespace))
        return found

    def rules(self, user: User, namespace: str) -> Iterator[PolicyRule]:
        for grant in self.grants(user, namespace):
            yield from (rule.source for rule in grant.rules or ())

    def _resolve(self, user: User, namespace: str) -> Iterator[Grant]:
        subjects = subjects_of(user)
        # Without duplicates: for a cluster-scoped request both are empty.
        for place in dict.fromkeys(("", namespace)):
            names: set[str] = set().union(*(self._by_subject.get((place, each), ()) for each in subjects))
            for name in sorted(names):
                binding = self._bindings[place, name]
                yield Grant(binding, binding.subject_of(user), self._rules(binding.role, place))

    def _rules(self, reference: RoleRef, namespace: str) -> tuple[CompiledRule, ...] | None:
        if reference.kind == "Role":
            # A ClusterRoleBinding cannot refer to a Role.
            return self._roles.get((namespace, reference.name)) if namespace else None
        return self._roles.get(("", reference.name)) if reference.kind == "ClusterRole" else None

    def _bind(self, key: tuple[str, str], kind: str, document: Mapping[str, Any]) -> None:
        model: type[RoleBinding | ClusterRoleBinding] = RoleBinding if kind == "RoleBinding" else ClusterRoleBinding
        view = from_plain(model, document)
        binding = self._bindings[key] = IndexedBinding(*key, view.role_ref, view.subjects)
        for subject in _subjects(binding):
            self._by_subject.setdefault((key[0], subject), set()).add(key[1])

    def _unbind(self, key: tuple[str, str]) -> None:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        for subject in _subjects(binding):
            names = self._by_subject[key[0], subject]
            names.discard(key[1])
            if not names:
                del self._by_subject[key[0], subject]

    def _changed(self) -> None:
        self.generation += 1
        self._grants.clear()


def subjects_of(user: User) -> tuple[SubjectKey, ...]:
    return (("User", user.name), *(("Group", group) for group in user.groups))


def subject_key(subject: Subject, namespace: str) -> SubjectKey:
    """The key of a subject. A service account is the user `system:serviceaccount:<namespace>:<name>`."""
    if subject.kind != "ServiceAccount":
        return subject.kind, subject.name
    return "User", f"{ACCOUNT_PREFIX}{subject.namespace or namespace}:{subject.name}"


def _subjects(binding: IndexedBinding) -> set[SubjectKey]:
    return {subject_key(subject, binding.namespace) for subject in binding.subjects}
