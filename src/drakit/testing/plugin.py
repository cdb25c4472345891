"""The pytest plugin: a cluster for every test that asks for one.

In:  the fixture `dra_cluster`, and the marker of the same name: `@pytest.mark.dra_cluster(nodes=3, profile="h100-8")`.
Out: a `LocalCluster`, or in an `async def` test, which this plugin runs, an `AsyncCluster` on the test's own loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from drakit.simulate.cluster import ClusterPlan
    from drakit.testing.cluster import AsyncCluster
    from drakit.testing.threads import LocalCluster

# Nothing of drakit is imported before a test needs it: pytest loads this module in every run of everybody's tests.
FIXTURE = "dra_cluster"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{FIXTURE}(nodes=1, profile='gpu', cards=None, gates=None, scheduler=None, server_only=False, seed=0): what "
        "the cluster of the test is like; gates are {'Name': False}, scheduler is the path of a configuration",
    )


def plan_of(node: pytest.Item) -> ClusterPlan:
    """The options of all markers, the nearest last. Raise UsageError for one that there is not."""
    from drakit.base.gates import FeatureGates
    from drakit.scheduler.config import load_configuration
    from drakit.simulate.cluster import ClusterPlan

    options: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers(FIXTURE))):
        options.update(marker.kwargs)
    unknown = options.keys() - {each.name for each in dataclasses.fields(ClusterPlan)}
    if unknown:
        raise pytest.UsageError(f"{node.nodeid}: {FIXTURE} has no option {', '.join(sorted(unknown))}")
    if isinstance(gates := options.get("gates"), dict):
        options["gates"] = FeatureGates.of({**FeatureGates.all_on().as_mapping, **gates})
    if isinstance(path := options.get("scheduler"), str | Path):
        chosen = options.get("gates", FeatureGates.all_on())
        options["scheduler"] = load_configuration(Path(path).read_bytes(), source=str(path), gates=chosen)
    return ClusterPlan(**{name: each for name, each in options.items() if each is not None})


async def _open(plan: ClusterPlan, directory: Path) -> tuple[AsyncExitStack, AsyncCluster]:
    from drakit.simulate.cluster import running_cluster
    from drakit.testing.cluster import AsyncCluster

    stack = AsyncExitStack()
    simulated = await stack.enter_async_context(running_cluster(plan))
    return stack, AsyncCluster(simulated, stack, directory)


@pytest.fixture
def dra_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalCluster | AsyncCluster]:
    """A cluster of this test alone, on a virtual clock."""
    plan = plan_of(request.node)
    if inspect.iscoroutinefunction(request.function):
        yield from _on_the_loop_of_the_test(plan, tmp_path)
    else:
        yield from _in_a_thread(plan, tmp_path)


def _on_the_loop_of_the_test(plan: ClusterPlan, directory: Path) -> Iterator[AsyncCluster]:
    from drakit.simulate.loops import SteppedLoop

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        stack, cluster = runner.run(_open(plan, directory))
        cluster.runner = runner
        yield cluster
        runner.run(stack.aclose())


def _in_a_thread(plan: ClusterPlan, directory: Path) -> Iterator[LocalCluster]:
    from drakit.testing.threads import LocalCluster, LoopThread

    thread = LoopThread()
    try:
        stack, cluster = thread.call(_open(plan, directory))
        yield LocalCluster(thread, cluster)
        thread.call(stack.aclose())
    finally:
        thread.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine that asks for a cluster on the cluster's loop."""
    runner = getattr(pyfuncitem.funcargs.get(FIXTURE), "runner", None)
    if runner is None:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    runner.run(pyfuncitem.obj(**arguments))
    return True
