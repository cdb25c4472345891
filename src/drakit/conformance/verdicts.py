"""What a rule ends with.

A check returns when the driver keeps the rule. It raises otherwise:

RuleEnded
  Broken            the driver breaks the rule; the text says what was seen and what should have been
  NotApplicable     the rule cannot be judged here: the driver does not offer the feature, or the suite was not told how
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class RuleEnded(Exception):
    """A check that did not pass; the text is the reason that the user reads."""


class Broken(RuleEnded):
    """The driver breaks the rule."""


class NotApplicable(RuleEnded):
    """There is nothing to judge."""


class RuleVerdict(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is empty for a rule that is kept."""

    rule: str
    title: str
    why: str
    verdict: RuleVerdict
    reason: str = ""
    seconds: float = 0.0
