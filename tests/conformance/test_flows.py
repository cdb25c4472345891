"""The recorded flows that need no scheduler, with every controller running."""

from __future__ import annotations

import pytest

from drakit.controllers import ALL
from tests.conformance.flows import flow, play
from tests.controllers.cluster import cluster, on_loop

WITHOUT_SCHEDULER = ("flow-29", "flow-36", "flow-51", "flow-61")


@pytest.mark.parametrize("name", WITHOUT_SCHEDULER)
@on_loop
async def test_the_flow_ends_as_recorded(name: str) -> None:
    async with cluster() as it:
        await it.start(ALL)
        assert await play(it, flow(name)) == []
