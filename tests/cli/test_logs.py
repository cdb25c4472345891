"""What `-v` lets through: requests at 6, their bodies at 7, and never those of secrets."""

from __future__ import annotations

import pytest

from drakit.api.exchange import Request
from drakit.base.clock import FakeClock
from drakit.cli.processes.logs import Logged
from drakit.client import CONFIG_MAPS, Client, InProcess, V
from drakit.controllers import ALL
from tests.builders.cluster import cluster, on_loop
from tests.client.servers import a_server

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"colour": "green"}}


@on_loop
async def write(level: int, caplog: pytest.LogCaptureFixture) -> None:
    async with a_server(FakeClock()) as server:
        client = Client(InProcess(server))
        with caplog.at_level(level, logger="drakit.client"):
            await client.create(SECRET)
            await client.create(CONFIG)
            await client.find(CONFIG_MAPS, "none", namespace="default")


def test_at_six_there_is_a_line_per_request_of_a_client(caplog: pytest.LogCaptureFixture) -> None:
    write(V[6], caplog)
    assert caplog.messages == [
        "POST /api/v1/namespaces/default/secrets 201",
        "POST /api/v1/namespaces/default/configmaps 201",
        "GET /api/v1/namespaces/default/configmaps/none 404",
    ]


def test_at_seven_there_are_bodies_but_those_of_secrets(caplog: pytest.LogCaptureFixture) -> None:
    write(V[7], caplog)
    assert "green" in caplog.text
    assert "hunter2" not in caplog.text


def test_at_five_there_are_none(caplog: pytest.LogCaptureFixture) -> None:
    write(V[5], caplog)
    assert caplog.messages == []


@on_loop
async def _ask(caplog: pytest.LogCaptureFixture) -> None:
    async with a_server(FakeClock()) as server:
        with caplog.at_level(V[6], logger="drakit.cli"):
            await Logged(server).handle(Request(method="GET", path="/healthz"))


def test_a_server_tells_what_it_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    _ask(caplog)
    assert caplog.messages == ["GET /healthz 200"]


@on_loop
async def _work(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as it:
        with caplog.at_level(V[5], logger="drakit.informers"):
            await it.start(ALL)


def test_at_five_controllers_tell_what_they_look_at(caplog: pytest.LogCaptureFixture) -> None:
    _work(caplog)
    assert "namespace: looking at default" in caplog.messages
