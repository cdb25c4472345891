"""What holds of the health of devices, as time goes by."""

from __future__ import annotations

import asyncio

from drakit.base.clock import FakeClock
from drakit.driverkit import HealthReport, HealthState
from drakit.driverkit.health import HealthBoard
from drakit.driverkit.serving.services import HEARTBEAT, HealthService
from drakit.pluginapi import health_v1alpha1_pb2 as wire
from tests.driverkit.node import on_loop

WELL = HealthReport(pool="p", device="d", state=HealthState.HEALTHY)
CHECKED = HealthReport(pool="p", device="e", state=HealthState.HEALTHY, timeout=5)


def states(board: HealthBoard) -> list[tuple[HealthState, str]]:
    return [(each.state, each.message) for each in board.current()]


@on_loop
async def test_a_report_with_a_timeout_holds_no_longer_than_that() -> None:
    clock = FakeClock()
    board = HealthBoard(clock)
    board.put([WELL, CHECKED])
    clock.advance(5)
    assert states(board) == [(HealthState.HEALTHY, ""), (HealthState.HEALTHY, "")]
    clock.advance(0.1)
    assert states(board) == [(HealthState.HEALTHY, ""), (HealthState.UNKNOWN, "no report for 5 s")]
    board.put([WELL, CHECKED])
    assert states(board)[1] == (HealthState.HEALTHY, "")


@on_loop
async def test_the_state_is_told_again_now_and_then_so_that_silence_means_something() -> None:
    clock = FakeClock()
    board = HealthBoard(clock)
    board.put([CHECKED])
    told: list[int] = []

    async def listen() -> None:
        stream = HealthService(board, clock).NodeWatchResources(wire.NodeWatchResourcesRequest(), None)  # type: ignore[arg-type]
        async for message in stream:
            told.append(message.devices[0].health)  # noqa: PERF401 - seen while it goes on

    listening = asyncio.create_task(listen())
    await clock.run_for(HEARTBEAT)
    assert told == [wire.HEALTHY, wire.UNKNOWN]
    board.close()
    await listening
