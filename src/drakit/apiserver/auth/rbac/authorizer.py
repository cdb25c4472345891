"""Authorization by roles, from memory.

In:  attributes of a request; a RolePolicy that is kept up to date.
Out: allow, with the binding that allows it, or no opinion. Results are cached until a role or a binding changes.
"""

from __future__ import annotations

from typing import Any

from drakit.api.exchange import User
from drakit.apiserver.auth.authentication import ANONYMOUS
from drakit.apiserver.auth.authorization import Attributes, AuthorizationResult, Decision
from drakit.apiserver.auth.rbac.policy import RolePolicy
from drakit.base.errors import summary

MASTERS = "system:masters"
_ALLOW = AuthorizationResult(Decision.ALLOW)
_NO_OPINION = AuthorizationResult(Decision.NO_OPINION)
_REMEMBERED = 32_768
_SHORT = 512
"""Characters of a question whose answer is remembered: what is remembered has at most 16 MiB of text."""


def _length(key: tuple[Any, ...]) -> int:
    name, groups, *rest = key
    return len(name) + sum(map(len, groups)) + sum(map(len, rest))


class Masters:
    """Members of `system:masters` may do everything, whatever the roles say, so that nobody can lock them out."""

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return self.decide(attributes)

    def decide(self, asked: Attributes) -> AuthorizationResult:
        return _ALLOW if MASTERS in asked.user.groups else _NO_OPINION


class RoleBased:
    """Decides by the rules of a user's roles, with a cache.

    Invariant: `_results` belong to the policy's generation `_generation`.

    The key has no object name, so guessing names fills no memory, and a new claim of a scheduler is a cache hit. None
    as a result says that the decision depends on the name and is made each time.
    """

    def __init__(self, policy: RolePolicy) -> None:
        self.policy = policy
        self._generation = policy.generation
        self._results: dict[tuple[Any, ...], AuthorizationResult | None] = {}

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return self.decide(attributes)

    def decide(self, asked: Attributes) -> AuthorizationResult:
        # One change of any role or binding empties the cache: changes are rare, requests are not.
        if self._generation != self.policy.generation or len(self._results) >= _REMEMBERED:
            self._results.clear()
            self._generation = self.policy.generation
        user = asked.user
        key = (
            user.name, user.groups, asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace,
            asked.path if not asked.resource else "",
        )  # fmt: skip
        try:
            found = self._results[key]
        except KeyError:
            found = None if self._goes_by_name(asked) else self._evaluate(asked)
            # A stranger's questions are not remembered: they would push out the others'.
            if _length(key) <= _SHORT and user.name != ANONYMOUS.name:
                self._results[key] = found
        return found if found is not None else self._evaluate(asked)

    def _goes_by_name(self, asked: Attributes) -> bool:
        """Whether the first rule that fits allows only some names."""
        for grant in self.policy.grants(asked.user, asked.namespace):
            for rule in grant.rules or ():
                if rule.fits(asked):
                    return rule.names is not None
        return False

    def _evaluate(self, asked: Attributes) -> AuthorizationResult:
        missing = []
        for grant in self.policy.grants(asked.user, asked.namespace):
            if grant.rules is None:
                missing.append(grant.missing)
            elif any(rule.allows(asked) for rule in grant.rules):
                return AuthorizationResult(Decision.ALLOW, f"RBAC: allowed by {grant}")
        return AuthorizationResult(Decision.NO_OPINION, f"RBAC: {summary(missing)}") if missing else _NO_OPINION

    def rules_for(self, user: User, namespace: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
        """The rules on resources and on paths, and a message about roles that do not exist."""
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
