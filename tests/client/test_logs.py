"""Logs through the client: in process and over HTTP, whole and followed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from drakit.api.podstreams import PodLogOptions
from drakit.client import Access, Certificate, Client, Fixed, NotFound, Rejected, Trust, read_log
from drakit.client.transport.http import Http
from drakit.nodeagent.runtimes.contract import ContainerState
from tests.apiserver.nodes.clusters import Cluster, a_cluster
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import record


@asynccontextmanager
async def a_client(cluster: Cluster, way: str) -> AsyncIterator[Client]:
    if way == "in process":
        yield cluster.client
        return
    pair = cluster.authority.client("admin", ("system:masters",), "client-admin")
    certificate = Certificate(pair.certificate.read_bytes(), pair.key.read_bytes())
    trust = Trust(ca=cluster.authority.files.certificate.read_bytes())
    access = Access(server=cluster.url, credentials=Fixed(certificate=certificate), trust=trust)
    async with Client(Http(access)) as client:
        yield client


@pytest.mark.parametrize("way", ["in process", "over HTTP"])
@on_loop
async def test_a_log_and_its_end(tmp_path: Path, way: str) -> None:
    options = PodLogOptions(container="main", tail_lines=1)
    async with a_cluster(tmp_path) as cluster, a_client(cluster, way) as client:
        cluster.node.log.write_text(record("one") + record("two"))
        async with read_log(client, "web", namespace="default", options=options) as pieces:
            assert b"".join([piece async for piece in pieces]) == b"two\n"


@pytest.mark.parametrize("way", ["in process", "over HTTP"])
@on_loop
async def test_a_log_that_grows(tmp_path: Path, way: str) -> None:
    async with a_cluster(tmp_path) as cluster, a_client(cluster, way) as client:
        cluster.node.log.write_text(record("one"))
        async with read_log(client, "web", namespace="default", options=PodLogOptions(follow=True)) as pieces:
            assert await anext(pieces) == b"one\n"
            with cluster.node.log.open("a") as file:
                file.write(record("two"))
            assert await anext(pieces) == b"two\n"
            cluster.node.machine.set_state("main-0", ContainerState.EXITED)
            assert [piece async for piece in pieces] == []


@pytest.mark.parametrize("way", ["in process", "over HTTP"])
@on_loop
async def test_a_reader_may_leave_at_any_time(tmp_path: Path, way: str) -> None:
    async with a_cluster(tmp_path) as cluster, a_client(cluster, way) as client:
        cluster.node.log.write_text(record("one"))
        async with read_log(client, "web", namespace="default", options=PodLogOptions(follow=True)) as pieces:
            await anext(pieces)


@pytest.mark.parametrize("way", ["in process", "over HTTP"])
@on_loop
async def test_a_log_that_is_not_there_is_an_error_of_its_kind(tmp_path: Path, way: str) -> None:
    async with a_cluster(tmp_path) as cluster, a_client(cluster, way) as client:
        with pytest.raises(NotFound, match="nobody"):
            async with read_log(client, "nobody", namespace="default"):
                pass
        cluster.node.machine.list.clear()
        with pytest.raises(Rejected, match="is not available"):
            async with read_log(client, "web", namespace="default"):
                pass
