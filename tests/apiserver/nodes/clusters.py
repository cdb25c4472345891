"""An API server on a socket and a node behind it, each with its certificates, and a pod on that node."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp

from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.auth.identities import node_agent
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.apiserver.nodes import NodeClient, NodeFiles
from drakit.base.clock import RealClock
from drakit.client import Client, InProcess
from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.server import NodeAccess, NodeAuthentication, NodeAuthorization
from drakit.store import MemoryStore
from tests.nodeagent.server.hosts import POD, Node, a_node

POD_PATH = f"/api/v1/namespaces/{POD.namespace}/pods/{POD.name}"
SERVER_USER = "kube-apiserver-kubelet-client"


class Cluster:
    def __init__(self, directory: Path, authority: Authority) -> None:
        self.authority = authority
        self.directory = directory
        self.url = ""
        self.server: Server
        self.client: Client
        self.node: Node

    def context(self, user: str, *groups: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.files.certificate))
        pair = self.authority.client(user, groups, f"client-{user}")
        context.load_cert_chain(pair.certificate, pair.key)
        return context

    @asynccontextmanager
    async def session(self, user: str = "admin", *groups: str) -> AsyncIterator[aiohttp.ClientSession]:
        context = self.context(user, *(groups or (("system:masters",) if user == "admin" else ())))
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(self.url, connector=connector) as session:
            yield session

    async def get(self, path: str, user: str = "admin") -> tuple[int, str]:
        async with self.session(user) as session, session.get(path) as response:
            return response.status, await response.text()

    async def message(self, path: str, user: str = "admin") -> tuple[int, str]:
        """Code and words of a Status."""
        async with self.session(user) as session, session.get(path) as response:
            answer = await response.json()
            return response.status, answer["message"]

    async def let(self, user: str, verbs: list[str], *resources: str) -> None:
        api, about = "rbac.authorization.k8s.io/v1", {"name": user}
        rules = [{"apiGroups": [""], "resources": list(resources), "verbs": verbs}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        await self.client.create({"apiVersion": api, "kind": "ClusterRole", "metadata": about, "rules": rules})
        await self.client.create(
            {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": about, "roleRef": role, "subjects": [subject]}
        )

    def move_node(self, port: int) -> Any:
        """Let the Node object say another port."""
        endpoints = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        return self.client.patch_named(_nodes(), "node-a", {"status": endpoints}, subresource="status")


def _nodes() -> Any:
    from drakit.client import NODES

    return NODES


async def create_pod(client: Client, name: str, *, node: str = "", containers: tuple[str, ...] = ("main",)) -> str:
    """Its uid."""
    spec: dict[str, Any] = {"containers": [{"name": each, "image": "example.com/app:1"} for each in containers]}
    if node:
        spec["nodeName"] = node
    about = {"name": name, "namespace": POD.namespace}
    made = await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})
    uid: str = made.document["metadata"]["uid"]
    return uid


async def _objects(cluster: Cluster, port: int) -> None:
    status = {
        "addresses": [
            {"type": "Hostname", "address": "nowhere.invalid"},
            {"type": "InternalIP", "address": "127.0.0.1"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    await cluster.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}, "status": status})
    await create_pod(cluster.client, POD.name, node="node-a")


@asynccontextmanager
async def a_cluster(directory: Path, **settings: Any) -> AsyncIterator[Cluster]:
    node_authority = Authority(directory / "node" / "pki", RealClock().now())
    pair = node_authority.client(SERVER_USER, ("system:masters",), SERVER_USER)
    nodes = NodeClient(NodeFiles(node_authority.files.certificate, pair))
    cluster = Cluster(directory, node_authority)
    security = Security(node_authority.server(("127.0.0.1", "localhost")), (node_authority.files.certificate,))
    given = Settings(random=Random(7), modes=("Node", "RBAC"), nodes=nodes, **settings)
    bound = bind("127.0.0.1", 0)
    async with MemoryStore() as store, await build_server(store, settings=given) as cluster.server:
        cluster.client = Client(InProcess(cluster.server))
        agent = Client(InProcess(cluster.server, node_agent("node-a")))
        access = NodeAccess(NodeAuthentication(agent, RealClock()), NodeAuthorization(agent, RealClock(), "node-a"))
        async with (
            a_node(directory / "node", access=access) as cluster.node,
            Listener(cluster.server, bound, security).running(),
        ):
            cluster.url = f"https://127.0.0.1:{bound.getsockname()[1]}"
            cluster.node.log.write_text("")
            cluster.node.machine.add("main", ContainerState.RUNNING, cluster.node.log)
            await _objects(cluster, int(cluster.node.url.rpartition(":")[2]))
            yield cluster
