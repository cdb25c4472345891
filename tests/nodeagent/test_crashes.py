"""The agent dies in every call that it makes for a pod, and starts again: nothing is lost, nothing is left."""

from __future__ import annotations

import json

import pytest

from drakit.nodeagent.claims.checkpoint import FILE
from tests.nodeagent.scene import on_loop, scene

REGISTRATION = 3
"""Calls before the first one for a pod: GetInfo, NotifyRegistrationStatus, the health stream."""
CREATE = 3
CALLS_OF_A_POD = 7
"""prepare, sandbox, create, start, stop, stop sandbox, unprepare."""


@pytest.mark.parametrize("step", range(1, CALLS_OF_A_POD + 1))
@on_loop
async def test_an_agent_that_dies_in_any_call_goes_on_where_it_was(step: int) -> None:
    async with scene() as it:
        await it.driver()
        it.it.dies_after = REGISTRATION + step
        await it.start()
        await it.it.run_for(1.0)
        if it.it.is_dead:
            await it.restart()
        await it.it.run_for(15.0)
        assert it.state()["phase"] == "Running"
        assert it.container()["restartCount"] == 0
        assert it.cri().count("StartContainer") == 1
        assert len(await it.it.runtime.containers()) == 1
        await it.delete()
        await it.it.run_for(1.0)
        if it.it.is_dead:
            await it.restart()
        await it.it.run_for(30.0)
        assert it.it.deleted == ["pod"]
        assert it.calls()[0] == "prepare"
        assert it.calls()[-1] == "unprepare"
        data = json.loads(json.loads((it.it.paths.root / FILE).read_bytes())["Data"])
        assert data["ClaimInfoStateList"] == []
        assert await it.it.runtime.containers() == []
        assert await it.it.runtime.sandboxes() == []


@on_loop
async def test_of_two_runs_with_one_number_the_newer_one_counts() -> None:
    """As an agent of an earlier version may have left them: the first one was never started."""
    async with scene() as it:
        await it.driver()
        it.it.dies_after = REGISTRATION + CREATE
        await it.start()
        await it.it.run_for(1.0)
        (unstarted,) = await it.it.runtime.containers()
        it.it.dies_after = 0
        it.it.clock.advance(1.0)
        config = it.it.runtime.config(unstarted.id)
        await it.it.runtime.start_container(await it.it.runtime.create_container(unstarted.sandbox_id, config))
        await it.restart()
        await it.it.run_for(15.0)
        assert it.state()["phase"] == "Running"
        assert it.cri().count("StartContainer") == 1


@on_loop
async def test_nothing_on_disk_is_left_of_a_pod_that_went_while_no_agent_was_there() -> None:
    async with scene() as it:
        paths = it.it.paths
        await it.it.stop_agent()
        for directory in (paths.pods / "gone" / "volumes", paths.logs / "default_gone_gone" / "main"):
            directory.mkdir(parents=True)
        await it.pod(claims=(), volumes=[{"name": "scratch", "emptyDir": {}}])
        await it.bind()
        uid = await it.uid("pod")
        (paths.pods / uid / "volumes").mkdir(parents=True)
        (paths.logs / f"default_pod_{uid}").mkdir()
        await it.it.start_agent()
        await it.it.run_for(1.0)
        assert [each.name for each in paths.pods.iterdir()] == [uid]
        assert [each.name for each in paths.logs.iterdir()] == [f"default_pod_{uid}"]


@on_loop
async def test_the_calls_of_a_pod_are_as_many_as_the_test_above_counts() -> None:
    async with scene() as it:
        await it.driver()
        assert len(it.it.merged) == REGISTRATION
        await it.start()
        await it.delete()
        await it.it.run_for(2.0)
        assert len(it.it.merged) == REGISTRATION + CALLS_OF_A_POD
