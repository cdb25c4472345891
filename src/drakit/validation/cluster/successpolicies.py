"""When a job counts as done before all its indexes are, and who runs it if not this cluster's controller."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api.objects.batch import SuccessPolicy, SuccessPolicyRule
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, required, too_long, too_many

_MOST_RULES = 20
_NO_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'
_PARTS = "violates the requirement that an index interval can have at most two parts separated by '-'"


def check_success_policy(policy: SuccessPolicy, completions: int, path: Path) -> Iterator[FieldError]:
    if not policy.rules:
        yield required(path / "rules", "at least one rules must be specified when the successPolicy is specified")
    if len(policy.rules) > _MOST_RULES:
        yield too_many(path / "rules", len(policy.rules), _MOST_RULES)
    for index, rule in enumerate(policy.rules):
        yield from _check_rule(rule, completions, (path / "rules")[index])


def _check_rule(rule: SuccessPolicyRule, completions: int, path: Path) -> Iterator[FieldError]:
    count, indexes = rule.succeeded_count, rule.succeeded_indexes
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    found = 0
    if indexes is not None:
        try:
            found = _count(indexes, completions)
        except ValueError as error:
            yield invalid(path / "succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    if count < 0:
        yield invalid(path / "succeededCount", count, "must be greater than or equal to 0")
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(path / "succeededCount", count, detail)
    if indexes is not None and count > found:
        detail = (
            f"must be less than or equal to {found} (the number of indexes in the specified succeededIndexes field)"
        )
        yield invalid(path / "succeededCount", count, detail)


def _count(text: str, completions: int) -> int:
    """How many indexes `0,2-4` names. Raise ValueError for what is no such list."""
    total, last = 0, -1
    for fragment in text.split(",") if text else ():
        ends = fragment.split("-")
        if len(ends) > 2:
            raise ValueError(f'the fragment "{fragment}" {_PARTS}')
        numbers = [_index(end, completions) for end in ends]
        for number in numbers:
            if number <= last:
                raise ValueError(f"non-increasing order, previous: {last}, current: {number}")
            last = number
        total += numbers[-1] - numbers[0] + 1
    return total


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    number = int(text[:10])
    if number >= completions:
        raise ValueError(f'too large index: "{text}"')
    return number


def check_manager(name: str | None, path: Path) -> Iterator[FieldError]:
    if name is None:
        return
    domain, slash, rest = name.partition("/")
    if not name:
        yield required(path)
    elif not (domain and slash and rest):
        yield invalid(path, name, _NO_PATH)
    else:
        yield from (invalid(path, domain, message) for message in names.check_dns_subdomain(domain))
    if len(name) > names.LABEL_LENGTH:
        yield too_long(path, names.LABEL_LENGTH)
