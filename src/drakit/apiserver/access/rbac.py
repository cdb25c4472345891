"""Authorization by roles, from memory.

In:  attributes of a request; a Policy that is kept current.
Out: allow, with the binding that says so, or no opinion. The same question costs one look-up until a role or a binding
     changes.
"""

from __future__ import annotations

from typing import Any

from drakit.api.exchange import User
from drakit.apiserver.access.policy import Policy
from drakit.apiserver.authorization import Attributes, Decision, Verdict
from drakit.base.errors import summary

MASTERS = "system:masters"
_ALLOW = Verdict(Decision.ALLOW)
_NO_OPINION = Verdict(Decision.NO_OPINION)
_REMEMBERED = 65_536


class Masters:
    """Members of `system:masters` may do everything, whatever the roles say: nobody can lock them out."""

    async def authorize(self, attributes: Attributes) -> Verdict:
        return _ALLOW if MASTERS in attributes.user.groups else _NO_OPINION


class RoleBased:
    """Invariant: `_verdicts` are those of the policy's generation `_generation`."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._generation = policy.generation
        self._verdicts: dict[tuple[Any, ...], Verdict] = {}

    async def authorize(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)

    def decide(self, asked: Attributes) -> Verdict:
        if self._generation != self.policy.generation or len(self._verdicts) >= _REMEMBERED:
            self._verdicts.clear()
            self._generation = self.policy.generation
        user = asked.user
        key = (
            user.name, user.groups, asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace,
            asked.name, asked.path if not asked.resource else "",
        )  # fmt: skip
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._evaluate(asked)
        return found

    def _evaluate(self, asked: Attributes) -> Verdict:
        missing = []
        for grant in self.policy.grants(asked.user, asked.namespace):
            if grant.rules is None:
                missing.append(grant.missing)
            elif any(rule.allows(asked) for rule in grant.rules):
                return Verdict(Decision.ALLOW, f"RBAC: allowed by {grant}")
        return Verdict(Decision.NO_OPINION, f"RBAC: {summary(missing)}") if missing else _NO_OPINION

    def rules_for(self, user: User, namespace: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
        """Rules on resources, rules on paths, and what could not be resolved."""
        resources, paths = [], []
        for rule in self.policy.rules(user, namespace):
            if rule.resources:
                names = {"resourceNames": list(rule.resource_names)} if rule.resource_names else {}
                where = {"apiGroups": list(rule.api_groups), "resources": list(rule.resources)}
                resources.append({"verbs": list(rule.verbs), **where, **names})
            if rule.non_resource_urls:
                paths.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)})
        missing = [grant.missing for grant in self.policy.grants(user, namespace) if grant.rules is None]
        return resources, paths, summary(missing) if missing else ""
