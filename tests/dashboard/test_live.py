"""What a page hears that comes back: exactly what it missed, or everything."""

from __future__ import annotations

from drakit.apiserver.auth.identities import ADMIN
from drakit.client import CLASSES, NODES, Client, InProcess
from drakit.controlplane import start_server
from drakit.dashboard.live import LiveView, live_view
from drakit.dashboard.sessions import ViewerSessions
from drakit.dashboard.viewers import Viewer, within_process
from drakit.informers import Informers
from tests.builders.loop import on_loop
from tests.builders.podmanifests import device_class, node, pod
from tests.dashboard.shown import DRIVER, gpu_slice, until


async def keys(live: LiveView, last: str) -> tuple[str, list[tuple[bool, list[str]]]]:
    found = await live.changes_since(last)
    return found[-1].id if found else last, [(each.whole, [cell.device for cell in each.cells]) for each in found]


@on_loop
async def test_a_page_hears_what_it_missed_and_nothing_twice() -> None:
    async with start_server() as plane, live_view(plane.client) as live:
        last, heard = await keys(live, "")
        assert heard == [(True, [])]
        assert await keys(live, last) == (last, [])
        await plane.client.create(device_class(DRIVER, DRIVER))
        await plane.client.create(node("node-1"))
        await plane.client.create(gpu_slice("node-1", "gpu-0", "gpu-1"))

        async def seen() -> bool:
            return len((await live.cells()).cells) == 2

        assert await until(seen)
        latest, heard = await keys(live, last)
        assert [device for _, devices in heard for device in devices] == ["gpu-0", "gpu-1"]
        assert not any(whole for whole, _ in heard)
        assert await keys(live, latest) == (latest, [])
        assert (await keys(live, "none"))[1] == [(True, ["gpu-0", "gpu-1"])]


@on_loop
async def test_a_version_that_stands_for_two_maps_is_never_resumed_from() -> None:
    async with start_server() as plane, live_view(plane.client) as live:
        last, _ = await keys(live, "")
        # A list that came up short: something is gone, and no version says so.
        live.revision += 1
        await live.cells()
        _, heard = await keys(live, last)
        assert [whole for whole, _ in heard] == [True]
        _, heard = await keys(live, last)
        assert [whole for whole, _ in heard] == [True]


@on_loop
async def test_a_server_that_does_not_answer_is_told() -> None:
    async with start_server() as plane, live_view(Client(InProcess(plane.server))) as live:
        assert live.problem == ""
        assert live.document(CLASSES, "none", "") is None
        await plane.server.close()
        assert "does not answer" in await until(lambda: _problem(live))


async def _problem(live: LiveView) -> str:
    return live.problem


@on_loop
async def test_a_pod_that_is_there_is_told_once() -> None:
    async with start_server() as plane:
        await plane.client.create(pod("there"))
        async with live_view(plane.client) as live:
            told: list[str] = []
            live.follow_pods(lambda _, new: told.append(new.metadata.name if new is not None else ""))
            assert told == ["there"]


@on_loop
async def test_a_view_of_shared_caches_ends_without_them() -> None:
    async with start_server() as plane, Informers(plane.client).running() as informers:
        nodes = informers.of(NODES)
        async with live_view(plane.client, informers=informers) as live:
            await plane.client.create(node("node-1"))
            assert await until(lambda: _named(live, "node-1"))
            assert live.document(NODES, "node-1", "") is nodes.cache.named("node-1")
        before = live.revision
        await plane.client.create(node("node-2"))
        assert await until(lambda: _named(live, "node-2"))
        assert live.revision == before


@on_loop
async def test_only_whoever_started_the_dashboard_reads_the_caches_of_the_process() -> None:
    async with start_server() as plane, Informers(plane.client).running() as informers:
        await plane.client.create(node("node-1"))
        assert await until(lambda: _cached(informers, "node-1"))
        ours = informers.of(NODES).cache
        sessions = ViewerSessions(within_process(plane.server, ADMIN), plane.client.clock, informers=informers)
        impersonating = Viewer(own=True, acting_as=(("impersonate-user", "system:admin"),))
        for viewer, shared in ((Viewer(own=True), True), (Viewer(own=True, namespace="a"), False)):
            async with sessions.view(viewer) as live:
                assert (live._informers[NODES].cache is ours) == shared
        async with sessions.view(impersonating) as live:
            assert NODES not in live._informers or live._informers[NODES].cache is not ours
        await sessions.close()


async def _named(live: LiveView, name: str) -> object:
    return live.document(NODES, name, "")


async def _cached(informers: Informers, name: str) -> object:
    return informers.of(NODES).cache.named(name)
