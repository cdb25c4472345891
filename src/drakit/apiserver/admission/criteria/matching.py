"""Which requests a policy, a binding or a webhook is about.

In:  rules, selectors and a match policy; an Attempt.
Out: the version in which it wants to see the object; none when the request is not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from drakit.apiserver.admission.chain import DELETE
from drakit.apiserver.admission.criteria.registrations import EQUIVALENT, MatchResources, Rule
from drakit.apiserver.admission.criteria.requests import NAMESPACE, Attempt
from drakit.apiserver.storage.objectstore import Keeper, not_found
from drakit.base import labels
from drakit.base.labels import LabelSelector, Selector


class Matcher:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def version(self, criteria: MatchResources, attempt: Attempt) -> str | None:
        """The request's own version when a rule names it, else one that a rule does name; none: no match."""
        if matched(criteria.exclude_resource_rules, criteria.match_policy, attempt) is not None:
            return None
        version: str | None = attempt.version
        if criteria.resource_rules:
            version = matched(criteria.resource_rules, criteria.match_policy, attempt)
        if version is None or not _selects(criteria.object_selector, attempt.labels()):
            return None
        return version if await self._in_namespace(criteria.namespace_selector, attempt) else None

    async def _in_namespace(self, selector: LabelSelector, attempt: Attempt) -> bool:
        """What is in no namespace is never left out, save for namespaces, which count as being in themselves."""
        wanted = _compiled(selector)
        if not wanted.requirements or not attempt.namespace:
            return True
        if attempt.change.kind is NAMESPACE and not attempt.subresource and attempt.operation != DELETE:
            return wanted.matches(attempt.change.document["metadata"].get("labels") or {})
        namespace = await self._keeper.find(NAMESPACE, "", attempt.namespace)
        if namespace is None:
            raise not_found(NAMESPACE, attempt.namespace)
        return wanted.matches(namespace.labels)


def matched(rules: Iterable[Rule], policy: str, attempt: Attempt) -> str | None:
    """The version in which one of the rules names the request: first the request's own, then an equivalent one."""
    if any(_names(rule, attempt, attempt.version) for rule in rules):
        return attempt.version
    if policy != EQUIVALENT:
        return None
    others = attempt.equivalents
    return next((each for rule in rules for each in others if _names(rule, attempt, each)), None)


def _names(rule: Rule, attempt: Attempt, version: str) -> bool:
    return (
        _in_scope(rule.scope, attempt)
        and _listed(rule.operations, attempt.operation)
        and _listed(rule.api_groups, attempt.group)
        and _listed(rule.api_versions, version)
        and any(_is_resource(each, attempt) for each in rule.resources)
        and (not rule.resource_names or attempt.name in rule.resource_names)
    )


def _listed(items: tuple[str, ...], wanted: str) -> bool:
    return "*" in items or wanted in items


def _in_scope(scope: str, attempt: Attempt) -> bool:
    return scope == "*" or (scope == "Namespaced") is attempt.namespaced


def _is_resource(text: str, attempt: Attempt) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*/scale`, `*` (no subresources), `*/*`."""
    resource, _, subresource = text.partition("/")
    return resource in ("*", attempt.resource) and subresource in (
        ("*", attempt.subresource) if subresource else (attempt.subresource,)
    )


def _selects(selector: LabelSelector, found: Iterable[Mapping[str, str]]) -> bool:
    wanted = _compiled(selector)
    return not wanted.requirements or any(wanted.matches(each) for each in found)


def _compiled(selector: LabelSelector) -> Selector:
    return _compile(_key(selector))


Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str, tuple[str, ...]], ...]]


def _key(selector: LabelSelector) -> Key:
    """A selector as something that can be remembered by."""
    expressions = tuple((each.key, each.operator, each.values) for each in selector.match_expressions)
    return tuple(sorted(selector.match_labels.items())), expressions


@lru_cache(maxsize=1024)
def _compile(key: Key) -> Selector:
    matches, expressions = key
    requirements = tuple(
        labels.LabelSelectorRequirement(key=name, operator=operator, values=values)
        for name, operator, values in expressions
    )
    return labels.from_struct(LabelSelector(match_labels=dict(matches), match_expressions=requirements))
