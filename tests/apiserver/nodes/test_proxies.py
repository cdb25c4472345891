"""nodes/proxy, pods/proxy and services/proxy: what is reached, what is passed on, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from drakit.apiserver.verbs.proxy import split_name
from drakit.base.errors import DrakitError
from drakit.client import PODS
from tests.apiserver.nodes.clusters import POD_PATH, Cluster, a_cluster
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import POD

NODE = "/api/v1/nodes/node-a/proxy"
SERVICE = f"/api/v1/namespaces/{POD.namespace}/services"


@asynccontextmanager
async def a_web_server() -> AsyncIterator[int]:
    """Answers with what it was asked; its port."""

    async def echo(request: web.Request) -> web.Response:
        told = {
            "method": request.method, "path": request.path_qs, "body": await request.text(),
            "headers": sorted(name.lower() for name in request.headers),
        }  # fmt: skip
        return web.json_response(told, status=418, headers={"x-own": "yes"})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def give_address(cluster: Cluster, address: str, host: str) -> None:
    status = {"status": {"podIP": address, "podIPs": [{"ip": address}], "hostIP": host, "hostIPs": [{"ip": host}]}}
    await cluster.client.patch_named(PODS, POD.name, status, namespace=POD.namespace, subresource="status")


@on_loop
async def test_a_nodes_agent_is_asked_with_the_servers_certificate(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        assert await cluster.get(f"{NODE}/healthz") == (200, "ok")
        port = cluster.node.url.rpartition(":")[2]
        assert await cluster.get(f"/api/v1/nodes/https:node-a:{port}/proxy/healthz") == (200, "ok")
        code, text = await cluster.get(f"{NODE}/pods")
        assert code == 200
        assert '"PodList"' in text
        assert (await cluster.get(f"{NODE}/nowhere"))[0] == 404


@on_loop
async def test_the_right_to_the_proxy_is_one_of_its_own(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.let("reader", ["get"], "nodes", "pods", "services")
        await cluster.let("proxier", ["get"], "nodes/proxy")
        code, words = await cluster.message(f"{NODE}/healthz", "reader")
        refused = 'nodes "node-a" is forbidden: User "reader" cannot get resource "nodes/proxy" in API group ""'
        assert (code, words) == (403, f"{refused} at the cluster scope")
        assert await cluster.get(f"{NODE}/healthz", "proxier") == (200, "ok")
        async with cluster.session("proxier") as session, session.post(f"{NODE}/healthz") as response:
            assert response.status == 403


@on_loop
async def test_a_pod_is_asked_with_method_path_query_and_body_but_not_with_credentials(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, a_web_server() as port:
        await give_address(cluster, "127.0.0.1", "127.0.0.1")
        path = POD_PATH.replace(POD.name, f"{POD.name}:{port}") + "/proxy/a/b/?x=1&y=2"
        headers = {"authorization": "Bearer secret", "cookie": "a=b", "x-mine": "1"}
        async with cluster.session() as session, session.put(path, data=b"hello", headers=headers) as response:
            assert (response.status, response.headers["x-own"]) == (418, "yes")
            told: dict[str, Any] = await response.json()
        assert (told["method"], told["path"], told["body"]) == ("PUT", "/a/b/?x=1&y=2", "hello")
        assert "x-mine" in told["headers"]
        assert {"authorization", "cookie"} & set(told["headers"]) == set()


@on_loop
async def test_addresses_of_this_machine_are_refused(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        for address, host in (("127.0.0.1", "10.0.0.1"), ("169.254.169.254", "169.254.169.254"), ("0.0.0.0", "")):
            await give_address(cluster, address, host or "10.0.0.1")
            assert await cluster.message(f"{POD_PATH}/proxy/") == (
                500, "Internal error occurred: address not allowed"
            )  # fmt: skip


@on_loop
async def test_a_service_needs_a_port_that_it_has_and_an_endpoint(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        about = {"name": "web", "namespace": POD.namespace}
        spec = {"ports": [{"name": "http", "port": 80}, {"name": "other", "port": 81}]}
        await cluster.client.create({"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec})
        code, words = await cluster.message(f"{SERVICE}/web:nope/proxy/")
        assert (code, words) == (503, 'no service port "nope" found for service "web"')
        code, words = await cluster.message(f"{SERVICE}/web:http/proxy/")
        assert (code, words) == (503, 'no endpoints available for service "web"')
        await cluster.client.create(
            {
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {**about, "labels": {"kubernetes.io/service-name": "web"}},
                "endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [{"name": "http", "port": 8080}],
            }
        )  # fmt: skip
        assert (await cluster.message(f"{SERVICE}/web:http/proxy/"))[1].endswith("address not allowed")
        assert (await cluster.message(f"{SERVICE}/none/proxy/"))[0] == 404


def lead(monkeypatch: pytest.MonkeyPatch, host: str, port: int, *, to: int) -> None:
    """Connections to an address of the pods' network end at a port of this machine."""
    connect = asyncio.open_connection

    async def connected(*address: Any, **options: Any) -> Any:
        return (
            await connect("127.0.0.1", to, **options) if address == (host, port) else await connect(*address, **options)
        )

    monkeypatch.setattr(asyncio, "open_connection", connected)


async def create_service(cluster: Cluster, slices: dict[str, dict[str, Any]]) -> None:
    """A service `web` with the ports http and other, and its endpoint slices."""
    about = {"name": "web", "namespace": POD.namespace}
    spec = {"ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "other", "port": 81}]}
    await cluster.client.create({"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec})
    for name, parts in slices.items():
        labels = {"kubernetes.io/service-name": "web"}
        own = {"name": name, "namespace": POD.namespace, "labels": labels}
        kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
        await cluster.client.create({**kind, "metadata": own, **parts})


@on_loop
async def test_a_service_is_asked_at_a_ready_endpoint_of_its_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, other = {"name": "http", "port": 8080}, {"name": "other", "port": 9090}
    not_ready = {"addresses": ["10.7.0.4"], "conditions": {"ready": False}}
    slices = {
        "web-1": {"endpoints": [{"addresses": ["10.7.0.9"]}], "ports": [other]},
        "web-2": {"endpoints": [not_ready, {"addresses": ["10.7.0.5"]}], "ports": [other, http]},
    }
    async with a_cluster(tmp_path) as cluster, a_web_server() as port:
        lead(monkeypatch, "10.7.0.5", 8080, to=port)
        await create_service(cluster, slices)
        for name in ("web:http", "web:80", "http:web:http"):
            async with cluster.session() as session:
                path, headers = f"{SERVICE}/{name}/proxy/api/v1/items?limit=2", {"impersonate-user": "nobody"}
                async with session.post(path, data=b"hello") as response:
                    assert (response.status, response.headers["x-own"]) == (418, "yes"), name
                    told: dict[str, Any] = await response.json()
                async with session.post(path, data=b"hello", headers=headers) as response:
                    assert response.status == 403  # the right is asked of who is impersonated
            assert (told["method"], told["path"], told["body"]) == ("POST", "/api/v1/items?limit=2", "hello")
            assert {"authorization", "cookie", "impersonate-user"} & set(told["headers"]) == set()


@on_loop
async def test_a_backend_that_is_gone_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = {"web-1": {"endpoints": [{"addresses": ["10.7.0.5"]}], "ports": [{"name": "http", "port": 8080}]}}
    async with a_cluster(tmp_path) as cluster:
        async with a_web_server() as port:
            lead(monkeypatch, "10.7.0.5", 8080, to=port)
            await create_service(cluster, slices)
            assert (await cluster.get(f"{SERVICE}/web:http/proxy/"))[0] == 418
        code, words = await cluster.message(f"{SERVICE}/web:http/proxy/")
        assert (code, words.partition(":")[0]) == (503, "error trying to reach service")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("n", ("", "n", "")),
        ("n:80", ("", "n", "80")),
        ("https:n:80", ("https", "n", "80")),
        ("http:n:", ("http", "n", "")),
    ],
)
def test_a_name_may_say_scheme_and_port(name: str, parts: tuple[str, str, str]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize("name", ["ftp:n:80", "a:b:c:d"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DrakitError):
        split_name(name)
