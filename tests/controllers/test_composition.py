"""All controllers together, and answers that never come."""

from __future__ import annotations

import asyncio

from drakit.api.exchange import Request, Response
from drakit.client import CLAIMS, PODS, SERVICE_ACCOUNTS, Client, ConnectionFailed, InProcess
from drakit.controllers import ClaimController, Controllers
from tests.controllers.cluster import Fatal, cluster, on_loop
from tests.controllers.manifests import by_template, pod, template


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
        [status] = (await it.get(PODS, "p")).status.resource_claim_statuses
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
        assert await it.get(SERVICE_ACCOUNTS, "default") is not None
        await running.stop()
        await task
        await it.create(pod("q", claims=[by_template()]))
        assert len(await it.all(CLAIMS)) == 1
