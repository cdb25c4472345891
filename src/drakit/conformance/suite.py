"""Run rules against a driver, one after the other.

In:  a testbed, the rules that were chosen.
Out: a result per rule as soon as it is there. After a rule that failed the driver starts from nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from drakit.base.clock import Clock, RealClock
from drakit.conformance.cluster import ClusterWishes, DriverCluster, given_cluster, own_cluster
from drakit.conformance.launch import DriverPlaces, Launcher
from drakit.conformance.rules import ConformanceRule
from drakit.conformance.settings import DriverHints, Timeouts
from drakit.conformance.testbed import Testbed, running_testbed
from drakit.conformance.verdicts import Broken, NotApplicable, RuleResult, RuleVerdict

_SHORT = "/tmp"  # noqa: S108 - a directory of random name is made in it


async def judge(
    rules: Sequence[ConformanceRule], bed: Testbed, *, clock: Clock | None = None
) -> AsyncIterator[RuleResult]:
    """Each rule's result. Raise what keeps the suite itself from working: no cluster, no such command."""
    clock = clock or RealClock()
    failed: set[str] = set()
    for rule in rules:
        begun = clock.monotonic()
        if missing := [each for each in rule.needs if each in failed]:
            verdict, reason = RuleVerdict.SKIP, f"needs {missing[0]}, which failed"
        else:
            verdict, reason = await _checked(rule, bed)
        if verdict is RuleVerdict.FAIL:
            failed.add(rule.id)
            # A driver that broke a rule may be in any state: the next rule is not to suffer for it.
            await bed.reset()
        elif missing:
            failed.add(rule.id)  # what was not seen to work cannot be built upon
        yield RuleResult(
            rule=rule.id,
            title=rule.title,
            why=rule.why,
            verdict=verdict,
            reason=reason,
            seconds=round(clock.monotonic() - begun, 3),
        )


async def _checked(rule: ConformanceRule, bed: Testbed) -> tuple[RuleVerdict, str]:
    try:
        await rule.check(bed)
        verdict, reason = RuleVerdict.PASS, ""
    except Broken as broken:
        verdict, reason = RuleVerdict.FAIL, str(broken)
    except NotApplicable as skipped:
        verdict, reason = RuleVerdict.SKIP, str(skipped)
    if crashed := bed.crashed():
        # Whatever was seen besides: no rule is kept by a driver that is not there any more.
        verdict, reason = RuleVerdict.FAIL, f"{reason}; {crashed}" if reason else crashed
    await bed.clean()
    return verdict, reason


@asynccontextmanager
async def open_testbed(
    launcher: Launcher,
    *,
    kubeconfig: Path | None = None,
    wishes: ClusterWishes | None = None,
    timeouts: Timeouts | None = None,
    hints: DriverHints | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Testbed]:
    """A place to judge a driver in; everything that belongs to it goes when the context closes."""
    wishes = wishes or ClusterWishes()
    with tempfile.TemporaryDirectory(prefix="dra-", dir=_close_to_the_root(), ignore_cleanup_errors=True) as name:
        root = Path(name)
        async with _cluster(kubeconfig, root, wishes) as cluster:
            places = DriverPlaces(kubeconfig=cluster.kubeconfig, node_name=cluster.node_name, root=root)
            bed = Testbed(
                cluster,
                launcher,
                places,
                clock=clock or RealClock(),
                timeouts=timeouts or Timeouts(),
                hints=hints or DriverHints(),
            )
            async with running_testbed(bed):
                yield bed


@asynccontextmanager
async def _cluster(kubeconfig: Path | None, root: Path, wishes: ClusterWishes) -> AsyncIterator[DriverCluster]:
    if kubeconfig is None:
        async with own_cluster(root, wishes) as cluster:
            yield cluster
        return
    async with given_cluster(kubeconfig, root, wishes) as cluster:
        yield cluster


def _close_to_the_root() -> str | None:
    """A short parent directory: a socket path has at most 107 bytes, with the driver's name and a uid in it."""
    is_long = len(tempfile.gettempdir()) > len(_SHORT)
    return _SHORT if is_long and Path(_SHORT).is_dir() else None
