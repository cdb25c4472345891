"""What of a request goes into the audit log: an audit policy, as Kubernetes has it.

In:  a Policy of audit.k8s.io/v1; who asks for what.
Out: a level. The first rule that fits counts; without one, nothing is logged. Without a policy all is, at Metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from drakit.api.exchange import User
from drakit.api.text.problems import Malformed
from drakit.api.text.yamltext import parse_yaml_documents
from drakit.apiserver.requests.routing import RequestInfo
from drakit.base.errors import UsageError


class Level(IntEnum):
    """How much is logged; each has what the one before has."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    RESPONSE = 3


LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.RESPONSE,
}
NAMES = {level: name for name, level in LEVELS.items()}


class GroupResources(msgspec.Struct, frozen=True, rename="camel"):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def fits(self, info: RequestInfo) -> bool:
        if self.group != info.group or (self.resource_names and info.name not in self.resource_names):
            return False
        asked = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        wanted = (asked, "*", f"*/{info.subresource}", f"{info.resource}/*" if info.subresource else asked)
        return not self.resources or any(each in wanted for each in self.resources)


class AuditRule(msgspec.Struct, frozen=True, rename="camel"):
    """An empty list fits everything."""

    level: str
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(name="nonResourceURLs", default=())

    def fits(self, user: User | None, info: RequestInfo) -> bool:
        name, groups = (user.name, user.groups) if user is not None else ("", ())
        if (self.users and name not in self.users) or (self.verbs and info.verb not in self.verbs):
            return False
        if self.user_groups and not set(self.user_groups) & set(groups):
            return False
        if self.resources or self.namespaces:
            return bool(info.resource) and self._fits_resource(info)
        if self.non_resource_urls:
            return not info.resource and any(_covers(each, info.path) for each in self.non_resource_urls)
        return True

    def _fits_resource(self, info: RequestInfo) -> bool:
        if self.namespaces and info.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.fits(info) for each in self.resources)


class AuditPolicy:
    """The rules, in order."""

    def __init__(self, rules: Iterable[AuditRule]) -> None:
        self._rules = tuple(rules)

    @staticmethod
    def parse(text: str, *, source: str = "--audit-policy-file") -> AuditPolicy:
        """Raise UsageError for what is no policy."""
        try:
            documents = parse_yaml_documents(text, source=source)
            if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != "Policy":
                raise UsageError(f"{source}: expected one Policy of audit.k8s.io/v1")
            rules = msgspec.convert(documents[0].get("rules") or (), tuple[AuditRule, ...])
        except (Malformed, msgspec.ValidationError) as error:
            raise UsageError(f"{source}: {error}") from None
        if not rules:
            raise UsageError(f"{source}: a policy needs at least one rule")
        for rule in rules:
            if rule.level not in LEVELS:
                raise UsageError(f"{source}: unknown level {rule.level!r}; known are {', '.join(LEVELS)}")
        return AuditPolicy(rules)

    def level(self, user: User | None, info: RequestInfo | None) -> Level:
        """A request that could not be read has no rule: it is logged."""
        if info is None:
            return Level.METADATA
        return next((LEVELS[rule.level] for rule in self._rules if rule.fits(user, info)), Level.NONE)


EVERYTHING = AuditPolicy([AuditRule(level="Metadata")])


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
