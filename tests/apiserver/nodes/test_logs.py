"""pods/log through the API server: options, words, rights, followers, nodes that are not there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.http import protocol
from drakit.client import NODES, PODS
from drakit.nodeagent.runtimes.contract import ContainerState
from tests.apiserver.nodes.clusters import POD_PATH, a_cluster, create_pod
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import came_true, record

LOG = f"{POD_PATH}/log"


@on_loop
async def test_a_log_comes_as_text_with_every_option(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        cluster.node.log.write_text(record("one") + record("two", second=1) + record("three", second=2))
        async with cluster.session() as session, session.get(LOG) as response:
            assert response.headers["content-type"] == "text/plain"
            assert await response.text() == "one\ntwo\nthree\n"
        for query, text in (
            ("tailLines=1", "three\n"),
            ("limitBytes=2", "on"),
            ("sinceTime=2026-01-01T00:00:01Z", "two\nthree\n"),
            ("sinceSeconds=1", ""),
            ("container=main&tailLines=1&timestamps=true", "2026-01-01T00:00:02.000000000Z three\n"),
            ("insecureSkipTLSVerifyBackend=true&tailLines=1", "three\n"),
        ):
            assert await cluster.get(f"{LOG}?{query}") == (200, text)


@on_loop
async def test_the_log_of_the_attempt_before(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        answer = 'previous terminated container "main" in pod "web" not found'
        assert await cluster.message(f"{LOG}?previous=true") == (400, answer)
        cluster.node.log.write_text(record("before"))
        cluster.node.machine.add("main", ContainerState.RUNNING, tmp_path / "none", attempt=1)
        assert await cluster.get(f"{LOG}?previous=true") == (200, "before\n")


@on_loop
async def test_a_follower_gets_lines_as_they_come_until_the_container_ends(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        query = {"follow": "true"}
        async with session.get(LOG, params=query) as response:
            for text in ("one", "two"):
                with cluster.node.log.open("a") as file:
                    file.write(record(text))
                assert await response.content.readline() == f"{text}\n".encode()
            cluster.node.machine.set_state("main-0", ContainerState.EXITED)
            assert await response.content.read() == b""


@on_loop
async def test_a_follower_that_goes_is_let_go_of_everywhere(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        async with cluster.session() as session, session.get(f"{LOG}?follow=true") as response:
            assert response.status == 200
            assert _open_streams(cluster) == 1
        await came_true(lambda: _open_streams(cluster) == 0)


def _open_streams(cluster: Any) -> float:
    labels = {"group": "", "version": "v1", "resource": "pods/log"}
    value: float = cluster.server.registry.get_sample_value("apiserver_longrunning_requests", labels)
    return value


@on_loop
async def test_a_node_that_dies_in_the_middle_breaks_the_log_off(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none\n\r\n")
            await writer.drain()
            writer.transport.abort()

        server = await asyncio.start_server(half, "127.0.0.1", 0, ssl=cluster.node.certificates().context())
        async with server:
            await cluster.move_node(server.sockets[0].getsockname()[1])
            async with session.get(f"{LOG}?follow=true") as response:
                assert await response.content.readline() == b"one\n"
                with pytest.raises(aiohttp.ClientPayloadError):
                    await response.content.read()


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("tailLines=x", 400, 'tailLines: "x" is not a whole number'),
        (
            "tailLines=-1&limitBytes=0",
            422,
            (
                'PodLogOptions "web" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, '
                "limitBytes: Invalid value: 0: must be greater than 0]"
            ),
        ),
        (
            "sinceSeconds=0",
            422,
            'PodLogOptions "web" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
        ),
        ("stream=Stdout", 422, 'PodLogOptions "web" is invalid: stream: Forbidden: may not be specified'),
        ("container=side", 400, "container side is not valid for pod web"),
    ],
)
@on_loop
async def test_options_that_make_no_sense_are_told(tmp_path: Path, query: str, code: int, words: str) -> None:
    async with a_cluster(tmp_path) as cluster:
        assert await cluster.message(f"{LOG}?{query}") == (code, words)


@on_loop
async def test_of_several_containers_one_must_be_named(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await create_pod(cluster.client, "two", node="node-a", containers=("main", "side"))
        answer = "a container name must be specified for pod two, choose one of: [main side]"
        assert await cluster.message("/api/v1/namespaces/default/pods/two/log") == (400, answer)


@on_loop
async def test_the_log_of_a_pod_without_a_node_is_empty(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await create_pod(cluster.client, "pending")
        path = "/api/v1/namespaces/default/pods/pending/log"
        assert await cluster.get(path) == (200, "")
        assert (await cluster.message(f"{path}?container=other"))[0] == 400


@on_loop
async def test_what_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        path = "/api/v1/namespaces/default/pods/nobody/log"
        assert await cluster.message(path) == (404, 'pods "nobody" not found')
        await cluster.client.delete(NODES, "node-a")
        assert await cluster.message(LOG) == (404, 'nodes "node-a" not found')


@on_loop
async def test_a_container_that_waits_is_told_in_the_words_of_the_node(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        cluster.node.machine.list.clear()
        waiting = {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
        cluster.node.pods.documents[0]["status"] = waiting
        answer = 'container "main" in pod "web" is waiting to start: ContainerCreating'
        assert await cluster.message(LOG) == (400, answer)
        cluster.node.pods.documents.clear()
        assert await cluster.message(LOG) == (404, 'pod "web" does not exist')


@on_loop
async def test_a_node_that_does_not_answer_is_named(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.move_node(1)
        code, words = await cluster.message(LOG)
        assert code == 500
        assert words.startswith('Internal error occurred: error dialing backend: node "node-a" at 127.0.0.1:1: ')
        assert "Connect call failed" in words or "refused" in words


@on_loop
async def test_a_node_without_an_address_is_told(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.client.patch_named(NODES, "node-a", {"status": {"addresses": None}}, subresource="status")
        words = 'Internal error occurred: node "node-a": no preferred addresses found; known addresses: []'
        assert await cluster.message(LOG) == (500, words)


@on_loop
async def test_a_node_with_a_certificate_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        pair = cluster.node.stranger.server(("127.0.0.1",))
        certificates = type(cluster.node.certificates())(pair.certificate, pair.key)
        asked = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read())
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificates.context())
        async with server:
            await cluster.move_node(server.sockets[0].getsockname()[1])
            code, words = await cluster.message(LOG)
    assert code == 500
    assert "its certificate is not trusted" in words
    assert not any(asked)


@on_loop
async def test_a_user_without_the_right_reads_no_log(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.let("reader", ["get"], "pods")
        code, words = await cluster.message(LOG, "reader")
        assert code == 403
        assert 'User "reader" cannot get resource "pods/log"' in words
        await cluster.let("logger", ["get"], "pods/log")
        assert await cluster.get(LOG, "logger") == (200, "")


@on_loop
async def test_a_request_for_a_log_is_audited_and_counted_as_a_connection(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log") as audit:
        async with a_cluster(tmp_path, audit=audit) as cluster:
            await cluster.get(LOG)
            labels = {
                "verb": "CONNECT", "group": "", "version": "v1", "resource": "pods", "subresource": "log",
                "scope": "resource", "code": "200",
            }  # fmt: skip
            assert cluster.server.registry.get_sample_value("apiserver_request_total", labels) == 1
    (line,) = [line for line in (tmp_path / "audit.log").read_text().splitlines() if '"subresource":"log"' in line]
    assert '"stage":"ResponseStarted"' in line
    assert '"authorization.k8s.io/decision":"allow"' in line


@on_loop
async def test_a_slow_reader_holds_up_the_node_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "STALL_SECONDS", 0.02)  # others are hung up on after that
    size = 1500 * 16_001
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        with cluster.node.log.open("w") as file:
            file.writelines(record("x" * 16_000) for _ in range(1500))
        async with session.get(LOG, read_bufsize=65536) as response:
            total, first = 0, True
            async for chunk in response.content.iter_chunked(65536):
                if first:
                    await asyncio.sleep(0.3)
                    first = False
                total += len(chunk)
        assert total == size


@on_loop
async def test_the_head_of_a_log_has_no_body(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        cluster.node.log.write_text(record("one"))
        async with session.head(LOG) as response:
            assert (response.status, await response.read()) == (200, b"")
        async with session.get(LOG) as response:  # the connection is still good
            assert await response.text() == "one\n"


@on_loop
async def test_a_server_that_was_not_told_of_nodes_says_so(tmp_path: Path) -> None:
    from tests.client.servers import in_process

    async with in_process() as client:
        await create_pod(client, "web", node="node-a")
        with pytest.raises(Exception, match="no node serves it"):
            await client.call("GET", PODS, "web", "log", namespace="default")
