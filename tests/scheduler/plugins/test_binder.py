"""Giving a pod its node, on a real server."""

from __future__ import annotations

from drakit.api.exchange import Request, Response
from drakit.api.objects.pods import Pod
from drakit.apiserver.auth.identities import SCHEDULER
from drakit.client import PODS, Client, ConnectionFailed, InProcess, Transport
from drakit.scheduler.framework import Code, CycleState, PluginStatus
from drakit.scheduler.plugins.defaultbinder import DefaultBinder
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.podmanifests import node, pod


class Deaf:
    """A line on which the answer to a binding never comes; `lost`: the request does not arrive either."""

    in_process = True
    page_size = 0

    def __init__(self, inner: Transport, *, lost: bool) -> None:
        self._inner = inner
        self._lost = lost

    async def handle(self, request: Request) -> Response:
        if request.method != "POST":
            return await self._inner.handle(request)
        if not self._lost:
            await self._inner.handle(request)
        raise ConnectionFailed("the line is dead", sent=True)

    async def close(self) -> None:
        await self._inner.close()


async def bind(to: Cluster, node: str, *, transport: Transport | None = None, view: Pod | None = None) -> PluginStatus:
    if view is None:
        view = await to.find(PODS, "p")
    line = transport or InProcess(to.server, SCHEDULER)
    return await DefaultBinder(Client(line, clock=to.clock)).bind(CycleState(view), view, node)


@on_loop
async def test_a_pod_is_bound() -> None:
    async with cluster() as here:
        await here.create(node("a"), pod("p"))
        assert (await bind(here, "a")).ok
        assert (await here.find(PODS, "p")).spec.node_name == "a"


@on_loop
async def test_a_pod_that_somebody_else_has_bound_is_a_failure_that_says_so() -> None:
    async with cluster() as here:
        await here.create(node("a"), node("b"), pod("p"))
        await bind(here, "a")
        status = await bind(here, "b")
        assert status.code is Code.ERROR
        assert 'pod p is already assigned to node "a"' in status.message
        assert (await here.find(PODS, "p")).spec.node_name == "a"


@on_loop
async def test_a_pod_that_is_gone_is_a_failure_that_says_so() -> None:
    async with cluster() as here:
        await here.create(node("a"), pod("p"))
        view = await here.find(PODS, "p")
        await here.delete(PODS, "p")
        status = await bind(here, "a", view=view)
        assert (status.code, status.message) == (Code.ERROR, 'pods "p" not found')


@on_loop
async def test_a_new_pod_of_the_same_name_is_left_alone() -> None:
    async with cluster() as here:
        await here.create(node("a"), pod("p"))
        view = await here.find(PODS, "p")
        await here.delete(PODS, "p")
        await here.create(pod("p"))
        assert (await bind(here, "a", view=view)).code is Code.ERROR
        assert (await here.find(PODS, "p")).spec.node_name == ""


@on_loop
async def test_a_binding_whose_answer_was_lost_counts_if_it_was_done() -> None:
    async with cluster() as here:
        await here.create(node("a"), pod("p"))
        line = InProcess(here.server, SCHEDULER)
        status = await bind(here, "a", transport=Deaf(line, lost=True))
        assert (status.code, status.message) == (Code.ERROR, "the line is dead")
        assert (await bind(here, "a", transport=Deaf(line, lost=False))).ok
