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
from drakit.conformance.settings import Subject, Timeouts
from drakit.conformance.testbed import Testbed, running_testbed
from drakit.conformance.verdicts import Broken, NotApplicable, RuleOutcome, RuleResult


async def judge(
    rules: Sequence[ConformanceRule], bed: Testbed, *, clock: Clock | None = None
) -> AsyncIterator[RuleResult]:
    """Each rule's result. Raise what keeps the suite itself from working: no cluster, no such command."""
    clock = clock or RealClock()
    failed: set[str] = set()
    for rule in rules:
        begun = clock.monotonic()
        if missing := [each for each in rule.needs if each in failed]:
            outcome, reason = RuleOutcome.SKIP, f"needs {missing[0]}, which failed"
        else:
            outcome, reason = await _checked(rule, bed)
        if outcome is RuleOutcome.FAIL:
            failed.add(rule.id)
            await bed.reset()
        elif missing:
            failed.add(rule.id)  # what was not seen to work cannot be built upon
        yield RuleResult(
            rule=rule.id,
            title=rule.title,
            why=rule.why,
            outcome=outcome,
            reason=reason,
            seconds=round(clock.monotonic() - begun, 3),
        )


async def _checked(rule: ConformanceRule, bed: Testbed) -> tuple[RuleOutcome, str]:
    try:
        await rule.check(bed)
    except Broken as broken:
        return RuleOutcome.FAIL, str(broken)
    except NotApplicable as skipped:
        return RuleOutcome.SKIP, str(skipped)
    finally:
        await bed.clean()
    return RuleOutcome.PASS, ""


@asynccontextmanager
async def open_testbed(
    launcher: Launcher,
    *,
    kubeconfig: Path | None = None,
    wishes: ClusterWishes | None = None,
    timeouts: Timeouts | None = None,
    subject: Subject | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Testbed]:
    """A place to judge a driver in; everything that belongs to it goes when the context closes."""
    wishes = wishes or ClusterWishes()
    # The names of sockets are short of room (108 bytes): a directory close to the root.
    with tempfile.TemporaryDirectory(prefix="dra-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        async with _cluster(kubeconfig, root, wishes) as cluster:
            places = DriverPlaces(kubeconfig=cluster.kubeconfig, node_name=cluster.node_name, root=root)
            bed = Testbed(
                cluster,
                launcher,
                places,
                clock=clock or RealClock(),
                timeouts=timeouts or Timeouts(),
                subject=subject or Subject(),
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
