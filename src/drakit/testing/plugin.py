"""The pytest plugin: a cluster for every test that asks for one.

In:  the fixture `dra_cluster`, and the marker of the same name: `@pytest.mark.dra_cluster(nodes=3, profile="h100-8")`.
Out: a `LocalCluster`, or in an `async def` test, which this plugin runs, an `AsyncCluster` on the test's own loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, NoReturn

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


def options_of(node: pytest.Item) -> dict[str, Any]:
    """The options of all markers, the nearest last."""
    options: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers(FIXTURE))):
        if marker.args:
            _refuse(f"options have names, as in nodes=2: {', '.join(map(repr, marker.args))} has none")
        options.update(marker.kwargs)
    return options


def plan_of(node: pytest.Item) -> ClusterPlan:
    from drakit.base.errors import UsageError
    from drakit.testing.options import plan_from

    try:
        return plan_from(options_of(node))
    except UsageError as error:
        refused = error
    return _refuse(str(refused))


def _refuse(why: str) -> NoReturn:
    pytest.fail(f"{FIXTURE}: {why}", pytrace=False)


@pytest.fixture
def dra_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster | AsyncCluster]:
    """A cluster of this test alone, on a virtual clock."""
    plan = plan_of(request.node)
    if inspect.iscoroutinefunction(_test_of(request.node)):
        yield from _on_the_loop_of_the_test(plan)
    else:
        yield from _in_a_thread(plan)


def _on_the_loop_of_the_test(plan: ClusterPlan) -> Iterator[AsyncCluster]:
    from drakit.simulate.loops import SteppedLoop
    from drakit.testing.cluster import running

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        stack = AsyncExitStack()
        cluster = runner.run(stack.enter_async_context(running(plan)))
        cluster.runner = runner
        yield cluster
        runner.run(stack.aclose())


def _in_a_thread(plan: ClusterPlan) -> Iterator[LocalCluster]:
    from drakit.testing.threads import local_cluster

    with local_cluster(plan) as cluster:
        yield cluster


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine that asks for a cluster on the cluster's loop."""
    runner = getattr(pyfuncitem.funcargs.get(FIXTURE), "runner", None)
    if runner is None:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    runner.run(_test_of(pyfuncitem)(**arguments))
    return True


def _test_of(item: Any) -> Any:
    """The coroutine function as it was written: plugins that run coroutines put a plain function around it."""
    test = item.obj
    while not inspect.iscoroutinefunction(test) and hasattr(test, "__wrapped__"):
        test = test.__wrapped__
    return test if inspect.iscoroutinefunction(test) else item.obj
