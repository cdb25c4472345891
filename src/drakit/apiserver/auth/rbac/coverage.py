"""Whether rules cover other rules: what the check against escalation asks.

In:  the rules that a user has, and the rules to be granted.
Out: the rights that the user lacks, one by one, and a text that lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.rbac.rules import ANY
from drakit.base.fields import quote


def missing_rights(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The single rights of `wanted` that no rule of `held` covers.

    A single right is one verb on one resource (and name), or on one path. One rule covers it, or none does.
    """
    return [right for rule in wanted for right in _single(rule) if not any(_covers(owner, right) for owner in held)]


def describe(rights: Iterable[PolicyRule]) -> str:
    """The rights as text: a line for each resource with all its verbs, and a line for each right on a path."""
    together: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    lines = set()
    for right in rights:
        place = (right.api_groups, right.resources, right.non_resource_urls, right.resource_names)
        if right.non_resource_urls:
            lines.add(_line(place, right.verbs))
        else:
            together.setdefault(place, []).extend(right.verbs)
    lines.update(_line(place, verbs) for place, verbs in together.items())
    return "\n".join(sorted(lines))


def quoted(values: Iterable[str]) -> str:
    """A list of strings as Go prints it: `["a" "b"]`."""
    return f"[{' '.join(map(quote, values))}]"


def _single(rule: PolicyRule) -> Iterator[PolicyRule]:
    names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names] or [()]
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in names:
                    yield PolicyRule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=name)
    for path in rule.non_resource_urls:
        for verb in rule.verbs:
            yield PolicyRule(verbs=(verb,), non_resource_urls=(path,))


def _covers(owner: PolicyRule, right: PolicyRule) -> bool:
    if not _includes(owner.verbs, right.verbs):
        return False
    if right.non_resource_urls:
        return not owner.resource_names and _includes_path(owner.non_resource_urls, right.non_resource_urls[0])
    return (
        _includes(owner.api_groups, right.api_groups)
        and _includes_resource(owner.resources, right.resources[0])
        and (not owner.resource_names or (bool(right.resource_names) and _all_in(owner, right)))
    )


def _includes(held: Sequence[str], wanted: Sequence[str]) -> bool:
    return ANY in held or all(each in held for each in wanted)


def _all_in(owner: PolicyRule, right: PolicyRule) -> bool:
    return all(name in owner.resource_names for name in right.resource_names)


def _includes_resource(held: Sequence[str], wanted: str) -> bool:
    if ANY in held or wanted in held:
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def _includes_path(held: Sequence[str], wanted: str) -> bool:
    return wanted in held or any(path.endswith(ANY) and wanted.startswith(path.rstrip(ANY)) for path in held)


def _line(place: tuple[tuple[str, ...], ...], verbs: Sequence[str]) -> str:
    groups, resources, paths, names = place
    parts = {
        "APIGroups": groups,
        "Resources": resources,
        "NonResourceURLs": paths,
        "ResourceNames": names,
        "Verbs": verbs,
    }
    return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in parts.items() if values) + "}"
