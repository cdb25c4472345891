"""Prevent privilege escalation by roles and bindings.

In:  changes of roles and bindings, before they are stored.
Out: 403 if the user would grant rights that it does not have; 422 for an invalid object.

It is allowed with the verb `escalate` on roles, with `bind` on the role, and to members of `system:masters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import PolicyRule, RoleRef
from drakit.apiserver.admission.chain import DELETE, AdmissionPlugin, ObjectChange
from drakit.apiserver.auth.authorization import Attributes, Authorizer, Decision
from drakit.apiserver.auth.rbac.authorizer import MASTERS
from drakit.apiserver.auth.rbac.coverage import describe, missing_rights, quoted
from drakit.apiserver.auth.rbac.policy import GROUP, RolePolicy
from drakit.apiserver.auth.rbac.wellformed import problems
from drakit.apiserver.auth.roles.bootstrap import kind_of
from drakit.apiserver.failures import ApiError
from drakit.apiserver.storage.objectstore import not_found
from drakit.base import status
from drakit.base.fields import quote

_ROLES = ("Role", "ClusterRole")
_HOUSEKEEPING = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")
_EVERYTHING = (
    PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), non_resource_urls=("*",)),
)


class NoEscalation(AdmissionPlugin):
    """Always on with RBAC, and no flag disables it: without it roles would not limit anybody."""

    name = "RBACEscalation"

    def __init__(self, policy: RolePolicy, authorizer: Authorizer) -> None:
        self._policy = policy
        self._authorizer = authorizer

    async def admit(self, change: ObjectChange) -> None:
        if change.kind.group != GROUP or change.operation == DELETE or change.new is None:
            return
        if MASTERS in change.user.groups or _only_housekeeping(change.new, _old(change)):
            return
        if change.kind.kind in _ROLES:
            await self._check_role(change, change.new)
        else:
            await self._check_binding(change, change.new)

    async def validate(self, change: ObjectChange) -> None:
        if change.kind.group == GROUP and change.new is not None:
            found = list(problems(change.kind.kind, change.new, _old(change)))
            if found:
                raise ApiError(status.invalid(change.kind.kind, GROUP, change.name, found))

    async def _check_role(self, change: ObjectChange, new: Mapping[str, Any]) -> None:
        if await self._may(change, "escalate", change.kind.plural, change.name):
            return
        # All rules of the role, not just the new ones: as upstream.
        self._confirm(change, _rules(new))
        # What an aggregated role will contain is not known now.
        if _aggregates(new) or _aggregates(_old(change) or {}):
            held = list(self._policy.rules(change.user, ""))
            if missing_rights(held, _EVERYTHING):
                raise change.forbid("must have cluster-admin privileges to use the aggregationRule")

    async def _check_binding(self, change: ObjectChange, new: Mapping[str, Any]) -> None:
        reference = from_plain(RoleRef, new.get("roleRef") or {})
        if reference.kind not in _ROLES or reference.api_group != GROUP:
            return  # grants nothing, and `validate` refuses it
        kind = kind_of({"kind": reference.kind})
        if await self._may(change, "bind", kind.plural, reference.name):
            return
        rules = self._policy.role(reference, change.namespace)
        if rules is None:
            raise not_found(kind, reference.name)
        self._confirm(change, rules)

    def _confirm(self, change: ObjectChange, wanted: Iterable[PolicyRule]) -> None:
        user = change.user
        missing = missing_rights(list(self._policy.rules(user, change.namespace)), wanted)
        if missing:
            who = f"user {quote(user.name)} (groups={quoted(user.groups)})"
            raise change.forbid(
                f"{who} is attempting to grant RBAC permissions not currently held:\n{describe(missing)}"
            )

    async def _may(self, change: ObjectChange, verb: str, resource: str, name: str) -> bool:
        asked = Attributes(
            user=change.user, verb=verb, group=GROUP, version="*", resource=resource,
            namespace=change.namespace, name=name,
        )  # fmt: skip
        return (await self._authorizer.authorize(asked)).decision is Decision.ALLOW


def _old(change: ObjectChange) -> Mapping[str, Any] | None:
    return change.old.document if change.old is not None else None


def _rules(role: Mapping[str, Any]) -> list[PolicyRule]:
    return [from_plain(PolicyRule, rule) for rule in role.get("rules") or ()]


def _aggregates(role: Mapping[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_housekeeping(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> bool:
    """Whether only metadata changed that the garbage collector writes: that grants nothing."""
    if old is None:
        return False
    rest, before = (
        {**each, "metadata": {name: value for name, value in each["metadata"].items() if name not in _HOUSEKEEPING}}
        for each in (new, old)
    )
    return rest == before
