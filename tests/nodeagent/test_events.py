"""What the agent tells of a pod: repeats are counted, similar events become one, and nobody is flooded."""

from __future__ import annotations

from typing import Any

from drakit.client import EVENTS
from drakit.client.correlation import BURST, COMBINED
from drakit.nodeagent.pods.events import NORMAL, WARNING, EventLog
from drakit.nodeagent.runtimes.contract import PodIdentity
from tests.builders.cluster import Cluster, cluster, on_loop

POD = PodIdentity(uid="8d4f6a2e", namespace="default", name="web")


async def told(it: Cluster) -> dict[str, int]:
    """Messages, and how often each was told."""
    found = await it.client.list(EVENTS, namespace="default")
    return {each.view.message: each.view.count for each in found}


def about(log: EventLog, message: str, **changes: Any) -> None:
    log.about_pod(POD, **{"type_": WARNING, "reason": "Failed", "message": message, **changes})


@on_loop
async def test_the_same_thing_again_is_counted_also_after_the_agents_restart() -> None:
    async with cluster() as it:
        for _ in range(2):
            log = EventLog(it.client, it.clock, "node-1")
            for _ in range(3):
                about(log, "no device today")
            about(log, "no device today", container="main")
            await log.drain()
        events = await it.client.list(EVENTS, namespace="default")
        assert sorted((each.view.involved_object.field_path, each.view.count) for each in events) == [
            ("", 6),
            ("spec.containers{main}", 2),
        ]


@on_loop
async def test_more_than_ten_messages_of_one_reason_become_one_event() -> None:
    async with cluster() as it:
        log = EventLog(it.client, it.clock, "node-1")
        for number in range(15):
            about(log, f"try {number:02}")
        await log.drain()
        found = await told(it)
        assert len(found) == 11
        assert found[f"{COMBINED}try 14"] == 5


@on_loop
async def test_a_pod_that_fails_all_the_time_can_still_be_said_to_run() -> None:
    async with cluster() as it:
        log = EventLog(it.client, it.clock, "node-1")
        for _ in range(BURST + 10):
            about(log, "no device today")
        about(log, "Container started", type_=NORMAL, reason="Started")
        await log.drain()
        assert await told(it) == {"no device today": BURST, "Container started": 1}
