"""What a page hears that comes back: exactly what it missed, or everything."""

from __future__ import annotations

from drakit.client import CLASSES, Client, InProcess
from drakit.controlplane import start_server
from drakit.dashboard.live import LiveView, live_view
from tests.builders.loop import on_loop
from tests.builders.podmanifests import device_class, node
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
