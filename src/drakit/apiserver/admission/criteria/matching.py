"""Which requests a policy, a binding or a webhook applies to.

In:  rules, selectors and a match policy; an AdmissionRequest.
Out: the version in which it wants to see the object; None if it does not apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from drakit.apiserver.admission.chain import DELETE
from drakit.apiserver.admission.criteria.registrations import EQUIVALENT, MatchResources, RuleWithOperations
from drakit.apiserver.admission.criteria.requests import NAMESPACE, AdmissionRequest
from drakit.apiserver.storage.objectstore import ObjectStore, not_found
from drakit.base import labels
from drakit.base.labels import LabelMatcher, LabelSelector


class Matcher:
    """Matches requests against rules and selectors. Reads namespaces, for their labels."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def version(self, criteria: MatchResources, request: AdmissionRequest) -> str | None:
        """The version of the request if a rule names it, else an equivalent one that a rule names; None: no match."""
        if matched(criteria.exclude_resource_rules, criteria.match_policy, request) is not None:
            return None
        version: str | None = request.version
        if criteria.resource_rules:
            version = matched(criteria.resource_rules, criteria.match_policy, request)
        # The cheap tests first: the namespace selector may need a read of the namespace.
        if version is None or not _selects(criteria.object_selector, request.labels()):
            return None
        return version if await self._in_namespace(criteria.namespace_selector, request) else None

    async def _in_namespace(self, selector: LabelSelector, request: AdmissionRequest) -> bool:
        """Whether the namespace selector matches. Cluster-scoped objects always match; a Namespace is in itself."""
        wanted = _compiled(selector)
        if not wanted.requirements or not request.namespace:
            return True
        if request.change.kind is NAMESPACE and not request.subresource and request.operation != DELETE:
            return wanted.matches(request.change.document["metadata"].get("labels") or {})
        # A new or changed Namespace is judged by its new labels, everything else by the stored ones.
        namespace = await self._objects.find(NAMESPACE, "", request.namespace)
        if namespace is None:
            raise not_found(NAMESPACE, request.namespace)
        return wanted.matches(namespace.labels)


def matched(rules: Iterable[RuleWithOperations], policy: str, request: AdmissionRequest) -> str | None:
    """The version in which a rule names the request: that of the request first, then an equivalent one."""
    if any(_names(rule, request, request.version) for rule in rules):
        return request.version
    if policy != EQUIVALENT:
        return None
    others = request.equivalents
    return next((each for rule in rules for each in others if _names(rule, request, each)), None)


def _names(rule: RuleWithOperations, request: AdmissionRequest, version: str) -> bool:
    return (
        _in_scope(rule.scope, request)
        and _listed(rule.operations, request.operation)
        and _listed(rule.api_groups, request.group)
        and _listed(rule.api_versions, version)
        and any(_is_resource(each, request) for each in rule.resources)
        and (not rule.resource_names or request.name in rule.resource_names)
    )


def _listed(items: tuple[str, ...], wanted: str) -> bool:
    return "*" in items or wanted in items


def _in_scope(scope: str, request: AdmissionRequest) -> bool:
    return scope == "*" or (scope == "Namespaced") is request.namespaced


def _is_resource(text: str, request: AdmissionRequest) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*/scale`, `*` (no subresources), `*/*`."""
    resource, _, subresource = text.partition("/")
    return resource in ("*", request.resource) and subresource in (
        ("*", request.subresource) if subresource else (request.subresource,)
    )


def _selects(selector: LabelSelector, found: Iterable[Mapping[str, str]]) -> bool:
    wanted = _compiled(selector)
    return not wanted.requirements or any(wanted.matches(each) for each in found)


def _compiled(selector: LabelSelector) -> LabelMatcher:
    return _compile(_key(selector))


Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str, tuple[str, ...]], ...]]


def _key(selector: LabelSelector) -> Key:
    """A hashable form of a selector."""
    expressions = tuple((each.key, each.operator, each.values) for each in selector.match_expressions)
    return tuple(sorted(selector.match_labels.items())), expressions


@lru_cache(maxsize=1024)
def _compile(key: Key) -> LabelMatcher:
    matches, expressions = key
    requirements = tuple(
        labels.LabelSelectorRequirement(key=name, operator=operator, values=values)
        for name, operator, values in expressions
    )
    return labels.from_struct(LabelSelector(match_labels=dict(matches), match_expressions=requirements))
