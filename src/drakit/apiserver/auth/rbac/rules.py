"""Whether a rule of a role allows what is asked for.

In:  a policy rule, compiled once; the attributes of a request.
Out: yes or no. Rules only ever allow: what no rule allows is not allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.authorization import Attributes

ANY = "*"


class CompiledRule(msgspec.Struct, frozen=True, gc=False):
    """A policy rule, ready to be asked. No set at all (none) stands for everything."""

    source: PolicyRule
    verbs: frozenset[str] | None
    groups: frozenset[str] | None
    resources: frozenset[str] | None
    names: frozenset[str] | None
    paths: frozenset[str]
    path_prefixes: tuple[str, ...]

    def allows(self, asked: Attributes) -> bool:
        return self.fits(asked) and (self.names is None or not asked.is_resource or asked.name in self.names)

    def fits(self, asked: Attributes) -> bool:
        """Whether the rule allows the request if the name of the object does not matter."""
        if self.verbs is not None and asked.verb not in self.verbs:
            return False
        if not asked.is_resource:
            return asked.path in self.paths or asked.path.startswith(self.path_prefixes)
        if self.groups is not None and asked.group not in self.groups:
            return False
        return self._has_resource(asked)

    def _has_resource(self, asked: Attributes) -> bool:
        """Match `pods`, `pods/status`, `*/status`, `*`. A resource does not include its subresources."""
        if self.resources is None:
            return True
        if not asked.subresource:
            return asked.resource in self.resources
        subresource = asked.subresource
        return f"{asked.resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources


def compile_rule(rule: PolicyRule) -> CompiledRule:
    prefixes = tuple(path.rstrip(ANY) for path in rule.non_resource_urls if path.endswith(ANY))
    return CompiledRule(
        source=rule,
        verbs=_choice(rule.verbs),
        groups=_choice(rule.api_groups),
        resources=_choice(rule.resources),
        names=frozenset(rule.resource_names) or None,
        paths=frozenset(rule.non_resource_urls),
        path_prefixes=prefixes,
    )


def compile_rules(rules: Iterable[PolicyRule]) -> tuple[CompiledRule, ...]:
    return tuple(map(compile_rule, rules))


def _choice(values: Iterable[str]) -> frozenset[str] | None:
    found = frozenset(values)
    return None if ANY in found else found
