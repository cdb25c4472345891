"""The rules: a driver that keeps them all passes, one that breaks a single rule fails on that rule alone."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from drakit.conformance import RULES, RuleResult, RuleVerdict, Timeouts, judge, open_testbed
from tests.conformance.driver.flaws import FLAWS
from tests.conformance.driver.launcher import InProcessLauncher
from tests.conformance.driver.plaindriver import PlainDriver
from tests.conformance.driver.runs import HINTS, PATIENT

SOONER = {
    "slices-complete": {"publish": 1.0},
    "slices-repaired": {"repair": 2.0},
    "slices-published-again": {"repair": 2.0},
    "slices-stale-removed": {"repair": 2.0},
    "health-change": {"health": 2.0},
}
"""Where a broken driver makes the suite wait in vain."""


async def judged(kind: type[PlainDriver], timeouts: Timeouts = PATIENT) -> list[RuleResult]:
    async with open_testbed(InProcessLauncher(kind), timeouts=timeouts, hints=HINTS) as bed:
        return [each async for each in judge(RULES, bed)]


def test_a_driver_written_from_the_wire_alone_keeps_every_rule() -> None:
    results = asyncio.run(judged(PlainDriver))
    assert [(each.rule, each.reason) for each in results if each.verdict is not RuleVerdict.PASS] == []


@pytest.mark.parametrize("rule", [each.id for each in RULES])
def test_a_driver_that_breaks_one_rule_fails_on_that_rule_alone(rule: str) -> None:
    results = asyncio.run(judged(FLAWS[rule], msgspec.structs.replace(PATIENT, **SOONER.get(rule, {}))))
    failed = {each.rule: each.reason for each in results if each.verdict is RuleVerdict.FAIL}
    assert failed.keys() == {rule}, failed
    assert failed[rule]


def test_every_rule_has_a_driver_that_breaks_it() -> None:
    assert sorted(FLAWS) == sorted(each.id for each in RULES)
