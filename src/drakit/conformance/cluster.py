"""The API server that the driver publishes to: one that the suite starts, or one that is given.

In:  a directory for files, the name of the node; or a kubeconfig.
Out: a client with every right for the suite, a kubeconfig file for the driver. A server of ours goes with the context.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from drakit.apiserver import Settings, build_server
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.auth.identities import ADMIN
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.apiserver.serving.kubeconfig import ServerAccess, write_kubeconfig
from drakit.base.clock import RealClock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.client import NODES, SERVICE_ACCOUNTS, AlreadyExists, Client, InProcess, load_kubeconfig
from drakit.client.transport.http import Http
from drakit.conformance.apiobserver import ApiObserver
from drakit.store import MemoryStore

_HOSTS = ("localhost", "127.0.0.1", "::1")


class ClusterWishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says about the cluster."""

    node_name: str = "conformance"
    node_labels: Mapping[str, str] = {}
    """Of the node that the suite makes; a given one has its own."""
    namespace: str = "default"
    manifests: Sequence[Mapping[str, Any]] = ()
    """Objects to create first: a driver's rights, its classes."""
    service_account: str = ""
    """`namespace/name` that the driver acts as; else it has the rights of the suite."""


class DriverCluster(msgspec.Struct, frozen=True, kw_only=True):
    """`observer` is there for a server that the suite started."""

    client: Client
    kubeconfig: Path
    node_name: str
    node_labels: Mapping[str, str]
    namespace: str
    observer: ApiObserver | None = None


@asynccontextmanager
async def own_cluster(directory: Path, wishes: ClusterWishes) -> AsyncIterator[DriverCluster]:
    """A server on a free port of the loopback, with every feature gate on."""
    authority = Authority(directory / "pki", RealClock().now())
    security = Security(authority.server(_HOSTS), (authority.files.certificate,))
    settings = Settings(gates=FeatureGates.all_on(), modes=("Node", "RBAC"))
    async with MemoryStore() as store, await build_server(store, settings=settings) as server:
        observer = ApiObserver(server)
        socket = bind("127.0.0.1", 0)
        url = f"https://127.0.0.1:{socket.getsockname()[1]}"
        kubeconfig = directory / "admin.kubeconfig"
        client_pair = authority.client(ADMIN.name, ADMIN.groups, "admin")
        write_kubeconfig(kubeconfig, ServerAccess(url=url, ca=authority.files.certificate, client=client_pair))
        # The driver goes through the observer; the suite talks to the server directly, and is never held up.
        async with Listener(observer, socket, security).running(), Client(InProcess(server, ADMIN)) as client:
            about = {"name": wishes.node_name, "labels": dict(wishes.node_labels)}
            await client.create({"apiVersion": "v1", "kind": "Node", "metadata": about})
            yield await _prepared(client, kubeconfig, directory, wishes, observer)


@asynccontextmanager
async def given_cluster(kubeconfig: Path, directory: Path, wishes: ClusterWishes) -> AsyncIterator[DriverCluster]:
    """Whatever server the kubeconfig reaches. Raise UsageError if the node is not there."""
    async with Client(Http(load_kubeconfig([kubeconfig]))) as client:
        if await client.find(NODES, wishes.node_name) is None:
            raise UsageError(f"there is no node {wishes.node_name!r} in the cluster of {kubeconfig}")
        yield await _prepared(client, kubeconfig, directory, wishes, None)


async def _prepared(
    client: Client, kubeconfig: Path, directory: Path, wishes: ClusterWishes, observer: ApiObserver | None
) -> DriverCluster:
    for manifest in wishes.manifests:
        try:
            await client.create(manifest)
        except AlreadyExists:
            continue
    if wishes.service_account:
        kubeconfig = await _account_kubeconfig(client, kubeconfig, directory, wishes)
    node = await client.get(NODES, wishes.node_name)
    return DriverCluster(
        client=client,
        kubeconfig=kubeconfig,
        node_name=wishes.node_name,
        node_labels=node.view.metadata.labels,
        namespace=wishes.namespace,
        observer=observer,
    )


async def _account_kubeconfig(client: Client, admin: Path, directory: Path, wishes: ClusterWishes) -> Path:
    """The same cluster, reached as a service account, on the node: as a pod of the driver would."""
    namespace, _, name = wishes.service_account.rpartition("/")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": wishes.node_name}},
    }
    answer = await client.call("POST", SERVICE_ACCOUNTS, name, "token", request, namespace=namespace or "default")
    written = directory / "driver.kubeconfig"
    _write_with_token(admin, written, answer["status"]["token"])
    return written


def _write_with_token(admin: Path, written: Path, token: str) -> None:
    document = yaml.safe_load(admin.read_text(encoding="utf-8"))
    wanted = document["current-context"]
    context = next(each["context"] for each in document["contexts"] if each["name"] == wanted)
    users = [{"name": context["user"], "user": {"token": token}}]
    # Before the token is in it: there is no moment in which others could read it.
    written.touch(mode=0o600)
    written.write_text(yaml.safe_dump(document | {"users": users}), encoding="utf-8")
