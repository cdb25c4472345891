"""All controllers together, their metrics, their rights, and answers that never come."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import generate_latest

from drakit.api.exchange import Request, Response
from drakit.apiserver.auth.identities import controller
from drakit.base.errors import UsageError
from drakit.client import CLAIMS, EVENTS, PODS, SERVICE_ACCOUNTS, Client, ConnectionFailed, Forbidden, InProcess
from drakit.client.events import NORMAL, EventRecorder
from drakit.controllers import ALL, BY_NAME, ClaimController, Controllers, NamespaceController, chosen
from tests.builders.cluster import Fatal, cluster, on_loop
from tests.builders.manifests import by_template, claim, pod, template


class Deaf(Fatal):
    """Does what is asked, and loses the first answer to a creation of a claim."""

    lost = 0

    async def handle(self, request: Request) -> Response:
        response = await super().handle(request)
        if request.method == "POST" and request.path.endswith("resourceclaims") and not self.lost:
            self.lost += 1
            raise ConnectionFailed("the answer is lost", sent=True)
        return response


@on_loop
async def test_a_claim_whose_answer_was_lost_is_found_and_not_made_again() -> None:
    async with cluster() as it:
        transport = Deaf(InProcess(it.server))
        running = Controllers(
            Client(transport, clock=it.clock), clock=it.clock, gates=it.gates, makers=(ClaimController,)
        )
        task = asyncio.create_task(running.run())
        await it.create(template(), pod("p", claims=[by_template()]))
        await it.run_for(5)
        assert transport.lost == 1
        [made] = await it.all(CLAIMS)
        [status] = (await it.find(PODS, "p")).status.resource_claim_statuses
        assert status.resource_claim_name == made.metadata.name
        assert sum(method == "POST" and path.endswith("resourceclaims") for method, path in transport.writes) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@on_loop
async def test_all_controllers_run_together_and_stop_in_peace() -> None:
    async with cluster() as it:
        running = Controllers(Client(InProcess(it.server), clock=it.clock), clock=it.clock, gates=it.gates)
        task = asyncio.create_task(running.run())
        await it.create(template(), pod("p", claims=[by_template()]))
        assert len(await it.all(CLAIMS)) == 1
        assert await it.find(SERVICE_ACCOUNTS, "default") is not None
        await running.stop()
        await task
        await it.create(pod("q", claims=[by_template()]))
        assert len(await it.all(CLAIMS)) == 1


@on_loop
async def test_figures_have_upstreams_names_and_labels_where_they_are_read() -> None:
    async with cluster() as it:
        running = await it.start(ALL)
        await it.create(template(), pod("p", claims=[by_template()]))
        lines = generate_latest(running.registry).decode().splitlines()
        labels = 'admin_access="false",allocated="false",source="resource_claim_template"'
        assert "# TYPE resourceclaim_controller_creates_total counter" in lines
        assert 'resourceclaim_controller_creates_total{admin_access="false",status="success"} 1.0' in lines
        assert "# TYPE resourceclaim_controller_resource_claims gauge" in lines
        assert f"resourceclaim_controller_resource_claims{{{labels}}} 1.0" in lines
        assert "device_taint_eviction_controller_pod_deletions_total 0.0" in lines
        assert "device_taint_eviction_controller_pod_deletion_duration_seconds_count 0.0" in lines
        for loop in (loop for component in running.components for loop in component.loops):
            assert f'workqueue_depth{{name="{loop.name}"}} 0.0' in lines


@on_loop
async def test_ready_is_when_everything_that_was_there_has_been_looked_at() -> None:
    async with cluster() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        running = it.identified(it.line())
        task = asyncio.create_task(running.run())
        ready = asyncio.create_task(running.wait_ready())
        synced = [running.is_synced]
        while not ready.done():
            await it.run_for(0.1)
        assert [*synced, running.is_synced] == [False, True]
        assert len(await it.all(CLAIMS)) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@on_loop
async def test_a_refusal_is_noticed_whatever_the_controller_makes_of_it() -> None:
    async with cluster() as it:
        line = it.line()
        with pytest.raises(Forbidden):
            await it.client_as(controller("replicaset-controller"), line).create(claim("c"))
        assert [each.split(" cannot ")[1] for each in line.refused] == [
            'create resource "resourceclaims" in API group "resource.k8s.io" in the namespace "default"'
        ]


@on_loop
async def test_an_event_that_is_told_again_is_counted_by_one_who_may_not_read_events() -> None:
    async with cluster() as it:
        await it.create(pod("p"))
        told = await it.client.get(PODS, "p", namespace="default")
        line = it.line()
        for _ in range(3):
            client = it.client_as(controller("resource-claim-controller"), line)
            await EventRecorder(client, it.clock, "test").tell("Pod", "v1", told, "Reason", "text", type_=NORMAL)
        [event] = await it.all(EVENTS)
        assert (event.count, line.refused) == (3, [])


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (("*",), set(BY_NAME)),
        (("namespace-controller",), {"namespace-controller"}),
        (("*", "-namespace-controller"), set(BY_NAME) - {"namespace-controller"}),
    ],
)
def test_controllers_are_chosen_by_name(names: tuple[str, ...], left: set[str]) -> None:
    assert chosen(names) == tuple(make for name, make in BY_NAME.items() if name in left)
    assert BY_NAME["namespace-controller"] is NamespaceController


@pytest.mark.parametrize("names", [("nope",), ("*", "-nope"), ("-namespace-controller",), ()])
def test_a_choice_of_nothing_or_of_somebody_unknown_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="controller"):
        chosen(names)
