"""The status of a pod reaches the server, whatever the server says first."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.exchange import Response, StatusContent
from drakit.base import status as statuses
from drakit.base.clock import FakeClock
from drakit.client import PODS, Client, InProcess
from drakit.nodeagent.pods.writer import StatusWriter
from tests.builders.documents import pod_document
from tests.client.servers import Flaky, a_server, on_loop

CONFLICT = statuses.conflict("pods", "", "a", "too many writers")
SPEC = {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}


@on_loop
async def test_a_conflict_does_not_mean_that_the_pod_is_gone() -> None:
    clock = FakeClock()
    async with a_server(clock) as server:
        direct, line = Client(InProcess(server), clock=clock), Flaky(server)
        await direct.create(pod_document("a", SPEC))
        pod = await direct.get(PODS, "a", namespace="default")
        client = Client(InProcess(line), clock=clock)
        await client.get(PODS, "a", namespace="default")
        line.answers.append(Response(code=409, content=StatusContent(CONFLICT)))
        writer = StatusWriter(client, clock)
        writer.put(pod, {"phase": "Running"})
        await clock.run_for(10.0, turns=100)
        assert (await direct.get(PODS, "a", namespace="default")).view.status.phase == "Running"
        await writer.stop()


@pytest.mark.parametrize("replaced", [True, False])
@on_loop
async def test_the_status_of_a_pod_that_is_gone_is_given_up(replaced: bool) -> None:
    clock = FakeClock()
    async with a_server(clock) as server:
        direct, line = Client(InProcess(server), clock=clock), Flaky(server)
        await direct.create(pod_document("a", SPEC))
        pod = await direct.get(PODS, "a", namespace="default")
        await direct.delete(PODS, "a", namespace="default", grace=0)
        if replaced:
            await direct.create(pod_document("a", SPEC))
        writer = StatusWriter(Client(InProcess(line), clock=clock), clock)
        writer.put(pod, {"phase": "Running"})
        await clock.run_for(60.0, turns=100)
        assert sum(each.method == "PATCH" for each in line.requests) == 1
        await writer.stop()


@on_loop
async def test_a_condition_has_the_time_of_its_last_change_and_not_of_its_last_write() -> None:
    def status_with(ready: str, reason: str) -> dict[str, Any]:
        conditions = [{"type": "Ready", "status": ready, "reason": reason}, {"type": "Initialized", "status": "True"}]
        return {"phase": "Running", "conditions": conditions}

    async def times() -> dict[str, str]:
        pod = await client.get(PODS, "a", namespace="default")
        return {each["type"]: each["lastTransitionTime"] for each in pod.document["status"]["conditions"]}

    clock = FakeClock()
    async with a_server(clock) as server:
        client = Client(InProcess(server), clock=clock)
        await client.create(pod_document("a", SPEC))
        pod = await client.get(PODS, "a", namespace="default")
        writer = StatusWriter(client, clock)
        seen = []
        for status in (status_with("False", "One"), status_with("False", "Other"), status_with("True", "")):
            writer.put(pod, status)
            await clock.run_for(5.0, turns=100)
            seen.append(await times())
        first, second, third = seen
        assert first == second
        assert third["Initialized"] == first["Initialized"]
        assert third["Ready"] > first["Ready"]
        await writer.stop()


@on_loop
async def test_a_status_drops_nothing_that_others_wrote_since_the_agent_saw_the_pod() -> None:
    """The scheduler's conditions and claims, and a condition of somebody else: the agent has not heard of them yet."""
    others = {
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "example.com/ready", "status": "True"}],
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "a-gpu"}],
    }
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    clock = FakeClock()
    async with a_server(clock) as server:
        client = Client(InProcess(server), clock=clock)
        await client.create(pod_document("a", SPEC | claims))
        pod = await client.get(PODS, "a", namespace="default")
        await client.patch_status(pod, others)
        writer = StatusWriter(client, clock)
        writer.put(pod, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
        await clock.run_for(5.0, turns=100)
        await writer.stop()
        status = (await client.get(PODS, "a", namespace="default")).document["status"]
    assert status["phase"] == "Running"
    assert {each["type"] for each in status["conditions"]} == {"PodScheduled", "example.com/ready", "Ready"}
    assert status["resourceClaimStatuses"] == others["resourceClaimStatuses"]
