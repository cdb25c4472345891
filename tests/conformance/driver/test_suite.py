"""The suite itself: clusters that are given, drivers that end, what is left afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drakit.base.errors import UsageError
from drakit.client import CLAIMS, SLICES, Client
from drakit.conformance import RULES, ClusterWishes, RuleResult, RuleVerdict, judge, open_testbed, select
from drakit.conformance.cluster import own_cluster
from tests.conformance.driver.launcher import InProcessLauncher
from tests.conformance.driver.plaindriver import PlainDriver
from tests.conformance.driver.runs import HINTS, PATIENT


async def judged_in(kubeconfig: Path, launcher: InProcessLauncher, *, node: str = "worker") -> list[RuleResult]:
    wishes = ClusterWishes(node_name=node)
    async with open_testbed(launcher, kubeconfig=kubeconfig, wishes=wishes, timeouts=PATIENT, hints=HINTS) as bed:
        return [each async for each in judge(RULES, bed)]


async def left_in(client: Client) -> list[str]:
    slices, claims = await client.list(SLICES), await client.list(CLAIMS)
    return [*(each.metadata.name for each in slices), *(each.metadata.name for each in claims)]


def test_a_given_cluster_is_used_and_left_as_it_was(tmp_path: Path) -> None:
    async def run() -> tuple[list[RuleResult], list[str], bool]:
        async with own_cluster(tmp_path, ClusterWishes(node_name="worker")) as given:
            launcher = InProcessLauncher()
            results = await judged_in(given.kubeconfig, launcher)
            return results, await left_in(given.client), all(each.ended for each in launcher.started)

    results, left, ended = asyncio.run(run())
    assert {each.rule: each.verdict for each in results if each.verdict is not RuleVerdict.PASS} == {
        "slow-call": RuleVerdict.SKIP
    }
    assert (left, ended) == ([], True)


def test_a_node_that_is_not_in_the_given_cluster_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with own_cluster(tmp_path, ClusterWishes(node_name="worker")) as given:
            await judged_in(given.kubeconfig, InProcessLauncher(), node="elsewhere")

    with pytest.raises(UsageError, match="there is no node 'elsewhere'"):
        asyncio.run(run())


class EndsAfterUnprepare(PlainDriver):
    """It answers, and is gone."""

    async def unprepare(self, claims: Any) -> dict[str, str]:
        answers = await super().unprepare(claims)
        self.ended.set()
        return answers

    ended: asyncio.Event


class CrashingLauncher(InProcessLauncher):
    async def start(self, *given: Any, **options: Any) -> Any:
        EndsAfterUnprepare.ended = asyncio.Event()
        process = await super().start(*given, **options)
        self.watch = asyncio.create_task(self._end(process, EndsAfterUnprepare.ended))
        return process

    async def _end(self, process: Any, told: asyncio.Event) -> None:
        await told.wait()
        await process.kill()


def test_a_driver_that_ends_by_itself_has_not_kept_the_rule() -> None:
    async def run() -> list[RuleResult]:
        launcher = CrashingLauncher(EndsAfterUnprepare)
        async with open_testbed(launcher, timeouts=PATIENT) as bed:
            return [each async for each in judge(select(RULES, ["unprepare-without-prepare"]), bed)]

    (result,) = asyncio.run(run())
    assert result.verdict is RuleVerdict.FAIL
    assert "the driver has ended by itself" in result.reason


def test_an_interrupted_run_leaves_no_driver_behind() -> None:
    launcher = InProcessLauncher()

    async def run() -> None:
        async with open_testbed(launcher, timeouts=PATIENT) as bed:
            await bed.driver()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run())
    assert [each.ended for each in launcher.started] == [True]
