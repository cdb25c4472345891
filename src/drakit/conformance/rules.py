"""A rule: an id, a title, a sentence on why it matters, and the check.

In:  the check, a function that gets the testbed and raises Broken or NotApplicable.
Out: the rule, which the suite runs in the order of `checks.RULES`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from drakit.base.errors import UsageError
from drakit.conformance.testbed import Testbed

Check = Callable[[Testbed], Awaitable[None]]


class ConformanceRule(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    why: str
    check: Check
    needs: tuple[str, ...] = ()
    """Rules without which this one says nothing: it is skipped when one of them failed."""


def rule(
    identifier: str, title: str, *, why: str, needs: Sequence[str] = ("registration",)
) -> Callable[[Check], ConformanceRule]:
    """Make a rule of a check."""

    def make(check: Check) -> ConformanceRule:
        return ConformanceRule(id=identifier, title=title, why=why, check=check, needs=tuple(needs))

    return make


def select(
    rules: Sequence[ConformanceRule], only: Sequence[str] = (), without: Sequence[str] = ()
) -> tuple[ConformanceRule, ...]:
    """The rules that are asked for, in their own order; raise UsageError for an id that no rule has."""
    known = {each.id for each in rules}
    if unknown := [each for each in (*only, *without) if each not in known]:
        raise UsageError(f"there is no rule {unknown[0]!r}; rules are {', '.join(sorted(known))}")
    return tuple(each for each in rules if (not only or each.id in only) and each.id not in without)
