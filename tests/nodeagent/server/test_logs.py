"""Logs over HTTPS: options, errors, and readers that stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.server.logfiles import BLOCK, POLL_SECONDS
from tests.client.servers import on_loop, turns
from tests.nodeagent.server.hosts import Node, a_node, came_true, record, running_pod

PATH = "/containerLogs/default/web/main"


async def get(node: Node, path: str = PATH, **query: str) -> tuple[int, str]:
    async with node.session() as session, session.get(path, params=query) as response:
        return response.status, await response.text()


@on_loop
async def test_the_log_of_a_container_that_runs(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.log.write_text(record("one") + record("two", second=1))
        node.machine.add("main", ContainerState.RUNNING, node.log)
        assert await get(node) == (200, "one\ntwo\n")
        assert await get(node, tailLines="1") == (200, "two\n")
        assert await get(node, limitBytes="2") == (200, "on")
        assert await get(node, sinceTime="2026-01-01T00:00:01Z") == (200, "two\n")
        assert await get(node, timestamps="true", tailLines="1") == (200, "2026-01-01T00:00:01.000000000Z two\n")


@on_loop
async def test_since_so_many_seconds_is_counted_from_now(tmp_path: Path) -> None:
    clock = FakeClock()
    clock.advance(10)
    async with a_node(tmp_path, clock=clock) as node:
        node.log.write_text(record("old", second=4) + record("new", second=6))
        node.machine.add("main", ContainerState.EXITED, node.log)
        assert await get(node, sinceSeconds="5") == (200, "new\n")


@on_loop
async def test_the_log_of_the_attempt_before(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        for attempt, text in enumerate(("first", "second")):
            path = tmp_path / f"{attempt}.log"
            path.write_text(record(text))
            node.machine.add("main", ContainerState.EXITED, path, attempt=attempt)
        node.machine.add("main", ContainerState.CREATED, attempt=2)
        assert await get(node, previous="true") == (200, "first\n")
        assert await get(node) == (200, "second\n")


@on_loop
async def test_while_a_restart_is_awaited_the_last_attempt_is_the_one_before_too(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        for attempt, text in enumerate(("first", "second")):
            path = tmp_path / f"{attempt}.log"
            path.write_text(record(text))
            node.machine.add("main", ContainerState.EXITED, path, attempt=attempt)
        last = {"terminated": {"containerID": "machine://main-1", "exitCode": 1}}
        waiting = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last}
        node.pods.documents = [running_pod(status={"containerStatuses": [waiting]})]
        assert await get(node, previous="true") == (200, "second\n")
        assert await get(node) == (200, "second\n")


@on_loop
async def test_without_an_attempt_before_there_is_none_to_read(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING, node.log)
        assert await get(node, previous="true") == (
            400,
            'previous terminated container "main" in pod "web" not found',
        )


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/containerLogs/default/nobody/main", 404, 'pod "nobody" does not exist'),
        ("/containerLogs/default/web/side", 404, 'container "side" not found in pod "web"'),
        (PATH, 400, 'container "main" in pod "web" is not available'),
        (PATH + "?tailLines=many", 400, 'Unable to decode query: tailLines: "many" is not a whole number'),
        (PATH + "?sinceTime=today", 400, "Unable to decode query: sinceTime: "),
        (PATH + "?tailLines=-1", 422, "Invalid request: tailLines: Invalid value: -1"),
    ],
)
@on_loop
async def test_what_cannot_be_read_is_told(tmp_path: Path, path: str, code: int, text: str) -> None:
    async with a_node(tmp_path) as node:
        status, answer = await get(node, path)
    assert status == code
    assert answer.startswith(text)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("ContainerCreating", "ContainerCreating"),
        ("ErrImagePull", "image can't be pulled"),
        ("ImagePullBackOff", "trying and failing to pull image"),
    ],
)
@on_loop
async def test_a_container_that_waits_has_no_log_and_says_why(tmp_path: Path, reason: str, words: str) -> None:
    waiting = {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason}}}]}
    async with a_node(tmp_path) as node:
        node.pods.documents = [running_pod(status=waiting)]
        assert await get(node) == (400, f'container "main" in pod "web" is waiting to start: {words}')


@on_loop
async def test_a_log_file_that_is_gone_is_told(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING, node.log)
        status, text = await get(node)
    assert (status, text) == (400, f'failed to open log file "{node.log}": no such file')


@on_loop
async def test_a_follower_gets_lines_as_they_come_and_ends_with_the_container(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        node.log.write_text("")
        container = node.machine.add("main", ContainerState.RUNNING, node.log)
        async with session.get(PATH, params={"follow": "true"}) as response:
            assert response.status == 200  # before there is anything to read
            for text in ("one", "two"):
                with node.log.open("a") as file:
                    file.write(record(text))
                assert await response.content.readline() == f"{text}\n".encode()
            node.machine.set_state(container.id, ContainerState.EXITED)
            assert await response.content.read() == b""


@on_loop
async def test_a_reader_that_goes_away_is_not_followed_any_more(tmp_path: Path) -> None:
    clock = FakeClock()

    def is_followed() -> bool:
        """A follower sleeps as long as it lives, and wakes before anybody else of the server does."""
        deadline = clock.next_deadline()
        return deadline is not None and deadline <= clock.monotonic() + POLL_SECONDS

    async with a_node(tmp_path, clock=clock) as node:
        node.log.write_text("")
        node.machine.add("main", ContainerState.RUNNING, node.log)
        async with node.session() as session, session.get(PATH, params={"follow": "true"}) as response:
            assert response.status == 200
            await came_true(is_followed)
        await came_true(lambda: not is_followed())


@on_loop
async def test_a_server_that_stops_ends_its_followers(tmp_path: Path) -> None:
    async with asyncio.timeout(120):
        async with a_node(tmp_path) as node:
            node.log.write_text(record("one"))
            node.machine.add("main", ContainerState.RUNNING, node.log)
            port = int(node.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=node.client_context())
            writer.write(f"GET {PATH}?follow=1 HTTP/1.1\r\nHost: node\r\n\r\n".encode())
            await reader.readuntil(b"one\n")
        await reader.read()  # to its end
        writer.close()


@on_loop
async def test_a_huge_log_waits_for_a_slow_reader(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        with node.log.open("w") as file:
            for _ in range(2000):
                file.write(record("x" * 16_000))
        node.machine.add("main", ContainerState.RUNNING, node.log)
        async with session.get(PATH, read_bufsize=BLOCK) as response:
            await turns(2000)  # nobody reads: the server must not have read it all into memory
            assert _open_file_offset(node.log) < node.log.stat().st_size / 2
            total = 0
            async for chunk in response.content.iter_chunked(BLOCK):
                total += len(chunk)
        assert total == 2000 * 16_001


def _open_file_offset(path: Path) -> int:
    """How far this process has read in a file that it has open."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if entry.resolve() == path:
                text = (Path("/proc/self/fdinfo") / entry.name).read_text()
                return int(text.split()[1])
        except OSError:
            continue
    raise AssertionError("the log is not open")
