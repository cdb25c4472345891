"""Who may call a node: certificates, tokens, rights; and the pages that are answered at once."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from drakit.api.exchange import Request, Response
from drakit.apiserver import Settings
from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.client import Client, ConnectionFailed, InProcess, request_token
from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.server import NodeAccess, NodeAuthentication, NodeAuthorization, NodeCertificates
from drakit.nodeagent.server.authorization import subresources, verb
from tests.client.servers import a_server, on_loop
from tests.nodeagent.server.hosts import Node, a_node


class Counting:
    """An API server that counts the questions it is asked, and can be away."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.asked: list[str] = []
        self.down = False

    async def handle(self, request: Request) -> Response:
        if self.down:
            raise ConnectionFailed("the line is down", sent=False)
        self.asked.append(request.path.rpartition("/")[2])
        response: Response = await self._server.handle(request)
        return response


@asynccontextmanager
async def a_guarded_node(directory: Path) -> AsyncIterator[tuple[Node, Client, Counting, FakeClock]]:
    """A node whose callers a real API server knows, with real rules."""
    clock = FakeClock()
    async with a_server(clock, Settings(random=Random(7), modes=("RBAC",))) as server:
        counting = Counting(server)
        client = Client(InProcess(counting), clock=clock)
        access = NodeAccess(NodeAuthentication(client, clock), NodeAuthorization(client, clock, "node-a"))
        async with a_node(directory, access=access) as node:
            yield node, client, counting, clock


async def get(node: Node, path: str, user: str = "", **headers: str) -> tuple[int, str]:
    async with node.session(user, **headers) as session, session.get(path) as response:
        return response.status, await response.text()


async def let(client: Client, user: dict[str, str], verbs: list[str], *resources: str) -> None:
    about = {"name": user["name"]}
    rules = [{"apiGroups": [""], "resources": list(resources), "verbs": verbs}]
    api = "rbac.authorization.k8s.io/v1"
    await client.create({"apiVersion": api, "kind": "ClusterRole", "metadata": about, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user["name"]}
    await client.create(
        {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": about, "roleRef": role, "subjects": [user]}
    )


async def token_of(client: Client, name: str) -> str:
    about = {"name": name, "namespace": "default"}
    await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    return (await request_token(client, name, namespace="default")).token


def account(name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": "default"}


@on_loop
async def test_the_api_server_is_known_by_its_certificate(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, _, counting, _clock):
        assert await get(node, "/healthz", "kube-apiserver") == (200, "ok")
        assert counting.asked == ["subjectaccessreviews"]


@on_loop
async def test_a_certificate_of_another_authority_does_not_get_in(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, _, counting, _clock):
        context = node.client_context("somebody", authority=node.stranger)
        async with aiohttp.ClientSession(node.url, connector=aiohttp.TCPConnector(ssl=context)) as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get("/healthz")
        assert counting.asked == []


@on_loop
async def test_a_caller_does_not_trust_a_node_of_another_authority(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, *_):
        context = ssl.create_default_context(cafile=str(node.stranger.files.certificate))
        async with aiohttp.ClientSession(node.url, connector=aiohttp.TCPConnector(ssl=context)) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get("/healthz")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer nonsense"}])
@on_loop
async def test_callers_that_nobody_knows_are_turned_away(tmp_path: Path, headers: dict[str, str]) -> None:
    async with a_guarded_node(tmp_path) as (node, *_):
        assert await get(node, "/healthz", **headers) == (401, "Unauthorized")


@on_loop
async def test_a_token_is_asked_about_once_and_then_remembered_for_a_while(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, client, counting, clock):
        headers = {"Authorization": f"Bearer {await token_of(client, 'reader')}"}
        await let(client, account("reader"), ["get"], "nodes/healthz")
        counting.asked.clear()
        for _ in range(3):
            assert await get(node, "/healthz", **headers) == (200, "ok")
        assert counting.asked == ["tokenreviews", "subjectaccessreviews"]
        clock.advance(121)
        await get(node, "/healthz", **headers)
        assert counting.asked[2:] == ["tokenreviews"]


@on_loop
async def test_a_user_without_the_right_is_told_which_one_it_lacks(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, client, *_):
        headers = {"Authorization": f"Bearer {await token_of(client, 'reader')}"}
        await let(client, account("reader"), ["get"], "nodes/metrics")
        assert await get(node, "/metrics", **headers) == (200, "up 1\n")
        user = "system:serviceaccount:default:reader"
        refusal = f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[pods proxy])"
        assert await get(node, "/pods", **headers) == (403, refusal)


@on_loop
async def test_who_may_only_read_through_the_node_runs_no_command(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, client, *_):
        headers = {"Authorization": f"Bearer {await token_of(client, 'reader')}"}
        await let(client, account("reader"), ["get"], "nodes/proxy")
        node.machine.add("main", ContainerState.RUNNING)
        status, text = await get(node, "/exec/default/web/main?output=1&command=ls", **headers)
        assert (status, node.machine.started) == (403, [])
        assert "verb=create, resource=nodes, subresource(s)=[proxy]" in text
        assert (await get(node, "/containerLogs/default/web/main", **headers))[0] == 400


@on_loop
async def test_a_refusal_is_remembered_for_a_shorter_while_than_a_right(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, client, counting, clock):
        headers = {"Authorization": f"Bearer {await token_of(client, 'late')}"}
        assert (await get(node, "/metrics", **headers))[0] == 403
        await let(client, account("late"), ["get"], "nodes/metrics")
        assert (await get(node, "/metrics", **headers))[0] == 403
        clock.advance(31)
        assert (await get(node, "/metrics", **headers))[0] == 200
        counting.asked.clear()
        clock.advance(60)
        assert (await get(node, "/metrics", **headers))[0] == 200
        assert "subjectaccessreviews" not in counting.asked


@on_loop
async def test_nobody_gets_in_while_nobody_can_be_asked(tmp_path: Path) -> None:
    async with a_guarded_node(tmp_path) as (node, _, counting, _clock):
        counting.down = True
        status, text = await get(node, "/healthz", "kube-apiserver")
        assert status == 500
        assert "the line is down" in text
        counting.down = False
        assert (await get(node, "/healthz", "kube-apiserver"))[0] == 200  # the failure is not remembered


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("GET", "/pods", ("get", ("pods", "proxy"))),
        ("GET", "/runningpods/", ("get", ("pods", "proxy"))),
        ("GET", "/healthz", ("get", ("healthz", "proxy"))),
        ("GET", "/stats/summary", ("get", ("stats",))),
        ("GET", "/metrics", ("get", ("metrics",))),
        ("GET", "/containerLogs/a/b/c", ("get", ("proxy",))),
        ("GET", "/exec/a/b/c", ("create", ("proxy",))),
        ("POST", "/run/a/b/c", ("create", ("proxy",))),
        ("GET", "/portForward/a/b", ("create", ("proxy",))),
        ("DELETE", "/", ("delete", ("proxy",))),
        ("GET", "/podsandmore", ("get", ("proxy",))),
    ],
)
def test_each_path_belongs_to_a_subresource_of_the_node(method: str, path: str, asked: Any) -> None:
    assert (verb(method, path), subresources(path)) == asked


@on_loop
async def test_the_pages_of_a_node(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        node.machine.add("main", ContainerState.RUNNING)
        async with session.get("/pods") as response:
            listed = await response.json()
        assert [pod["metadata"]["name"] for pod in listed["items"]] == ["web"]
        async with session.get("/stats/summary") as response:
            summary = await response.json()
        assert summary["node"] == {"nodeName": "node-a"}
        assert summary["pods"] == [
            {
                "podRef": {"name": "web", "namespace": "default", "uid": "uid-1"},
                "containers": [{"name": "main", "startTime": "2026-01-01T00:00:00Z"}],
            }
        ]
        for path in ("/nowhere", "/exec/default"):
            async with session.get(path) as response:
                assert response.status == 404


@on_loop
async def test_pods_that_run_are_those_of_which_the_runtime_runs_something(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        for state, count in ((ContainerState.EXITED, 0), (ContainerState.RUNNING, 1)):
            node.machine.add("main", state)
            async with session.get("/runningpods/") as response:
                assert len((await response.json())["items"]) == count


def test_files_that_are_no_certificates_are_told(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.crt"
    wrong.write_text("nothing")
    with pytest.raises(UsageError, match=r"wrong\.crt"):
        NodeCertificates(wrong, wrong).context()
