"""The agent dies in every call that it makes for a pod, and starts again: nothing is lost, nothing is left."""

from __future__ import annotations

import json

import pytest

from drakit.nodeagent.claims.checkpoint import FILE
from tests.nodeagent.scene import on_loop, scene

REGISTRATION = 3
"""Calls before the first one for a pod: GetInfo, NotifyRegistrationStatus, the health stream."""
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
async def test_the_calls_of_a_pod_are_as_many_as_the_test_above_counts() -> None:
    async with scene() as it:
        await it.driver()
        assert len(it.it.merged) == REGISTRATION
        await it.start()
        await it.delete()
        await it.it.run_for(2.0)
        assert len(it.it.merged) == REGISTRATION + CALLS_OF_A_POD
