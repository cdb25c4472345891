"""The short form of `python -m tests.chaos`: a few faults, the same checks. And what must go without any failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from drakit.client import CONFIG_MAPS, Client
from tests.builders.etcd import needs_etcd
from tests.builders.loop import on_loop
from tests.chaos.__main__ import CUT, KILL, PAUSE, run
from tests.chaos.load import NAMESPACE, client_of, config_map_of
from tests.chaos.replicas import ReplicatedCluster, replicated


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_replicas_that_are_killed_paused_and_cut_off_lose_nothing(tmp_path: Path) -> None:
    needs_etcd()
    rows, load, problems = asyncio.run(run(tmp_path, seconds=12.0, seed=3))
    assert problems == []
    assert {how for _, how in rows} == {KILL, PAUSE, CUT}
    assert sum(each.answered for each in rows.values()) > 10
    assert load.pods > 2


class Traffic:
    """Clients of both servers that write, read and watch, and want to see no failure."""

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self.written: dict[str, int] = {}
        self.read = 0
        self.seen: dict[str, list[int]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What fails in it ends it."""
        async with client_of(self._cluster.both, timeout=120.0) as client, asyncio.TaskGroup() as group:
            for number in range(4):
                await client.create(config_map_of(f"w{number}", 0))
            tasks = [group.create_task(self._write(client, f"w{number}")) for number in range(4)]
            tasks += [group.create_task(self._read(client)), group.create_task(self._watch(client))]
            yield
            for task in tasks:
                task.cancel()

    async def _write(self, client: Client, name: str) -> None:
        value = 0
        while True:
            value += 1
            await client.update(config_map_of(name, value))
            self.written[name] = value
            # Now and then a pause, in which the connection is idle.
            await asyncio.sleep(0.3 if value % 10 == 0 else 0)

    async def _read(self, client: Client) -> None:
        while True:
            before = self.written.get("w0", 0)
            found = await client.get(CONFIG_MAPS, "w0", namespace=NAMESPACE)
            assert int(found.document["data"]["value"]) >= before
            self.read += 1
            await asyncio.sleep(0.02)

    async def _watch(self, client: Client) -> None:
        """As informers do: a watch that ends is continued behind its last event, on whichever server there is."""
        since = (await client.list(CONFIG_MAPS, namespace=NAMESPACE)).resource_version
        while True:
            async with client.watch(CONFIG_MAPS, namespace=NAMESPACE, since=since) as changes:
                async for change in changes:
                    since = change.resource_version
                    if change.object is not None:
                        name = change.object.view.metadata.name
                        self.seen.setdefault(name, []).append(int(change.object.document["data"]["value"]))

    def complete(self) -> bool:
        return all(self.seen.get(name, [0])[-1] >= value for name, value in self.written.items())


@pytest.mark.slow
@pytest.mark.timeout(600)
@on_loop
async def test_servers_that_are_restarted_one_after_the_other_fail_no_request(tmp_path: Path) -> None:
    with replicated(tmp_path, members=1, followers=0, linked=False) as cluster:
        traffic = Traffic(cluster)
        async with traffic.running():
            for server in (*cluster.servers, *cluster.servers):
                before = dict(traffic.written)
                assert await asyncio.to_thread(server.end) == 0
                server.start()
                await asyncio.to_thread(server.wait_said, "listening on")
                while any(traffic.written[name] <= value for name, value in before.items()):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            while not traffic.complete():  # noqa: ASYNC110 - the watch is a little behind
                await asyncio.sleep(0.05)
    assert traffic.read > 0
    # No event is missed or doubled, although the watch went from server to server.
    for name, values in traffic.seen.items():
        assert values == [*range(values[0], values[-1] + 1)], name
