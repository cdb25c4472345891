"""A control plane inside a Python program: the API server, and controllers and scheduler if they are wanted.

In:  where data goes, whether to listen, which components run.
Out: a ControlPlane for as long as the context is open; every task, thread and socket of it ends with the context.

`drakit up` is the same with flags, signals and a process of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.http.listener import Listener
from drakit.apiserver.serving.kubeconfig import write_kubeconfig
from drakit.base.clock import Clock, RealClock
from drakit.base.gates import FeatureGates
from drakit.cli.processes.components import Surroundings, control_plane, running
from drakit.cli.processes.host import Host, ListenAddress, signing_key
from drakit.client import Client, InProcess
from drakit.store import MemoryStore, SQLiteStore, Store


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running API server. `client` is an administrator's, in process; `url` and `kubeconfig` are for everybody else.

    Without a port, `url` is empty and there is no kubeconfig. `failed` is set when a component has ended with an error,
    which the end of the context raises.
    """

    server: Server
    client: Client
    failed: asyncio.Event
    url: str = ""
    kubeconfig: Path | None = None


@asynccontextmanager
async def start_server(
    *,
    data_dir: str | Path | None = None,
    port: int | None = None,
    controllers: bool = False,
    scheduler: bool = False,
    gates: FeatureGates | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[ControlPlane]:
    """An API server for as long as the context is open.

    With `data_dir`, data is kept there, else in memory. With `port`, it serves HTTPS on 127.0.0.1 (0 is any free port).
    Every feature gate is on unless `gates` says otherwise.
    """
    settings = Settings(
        gates=gates or FeatureGates.all_on(),
        modes=("Node", "RBAC"),
        aggregate_roles=True,
        # Pods are admitted with their service account, which a controller makes.
        enable_plugins=("ServiceAccount",) if controllers else (),
    )
    clock = clock or RealClock()
    chosen = {"controllers": controllers, "scheduler": scheduler}
    components = [each for each in control_plane() if chosen.get(each.name)]
    async with AsyncExitStack() as stack:
        directory = _directory(data_dir, stack)
        settings.signing_key = signing_key(directory / "service-account.key")
        host = Host(ListenAddress(port=port), directory) if port is not None else None
        if host is not None:
            stack.callback(host.socket.close)
        store: Store = MemoryStore() if data_dir is None else await SQLiteStore.open(directory / "drakit.db")
        await stack.enter_async_context(store)
        server = await stack.enter_async_context(await build_server(store, clock=clock, settings=settings))
        kubeconfig = await _listen(server, host, directory, stack) if host is not None else None
        failed = asyncio.Event()
        around = Surroundings.of(server, settings.gates, clock, host.root_ca() if host is not None else "")
        await stack.enter_async_context(running(components, around, ended=failed.set))
        client = await stack.enter_async_context(Client(InProcess(server), clock=clock))
        yield ControlPlane(server, client, failed, host.url if host is not None else "", kubeconfig)


async def _listen(server: Server, host: Host, directory: Path, stack: AsyncExitStack) -> Path:
    """Serve on the host's socket; the path of a kubeconfig that reaches it."""
    await server.announce(host.url.rpartition("//")[2], client_ca=host.root_ca())
    path = directory / "admin.kubeconfig"
    write_kubeconfig(path, host.access(""))
    await stack.enter_async_context(Listener(server, host.socket, host.security()).running())
    return path


def _directory(data_dir: str | Path | None, stack: AsyncExitStack) -> Path:
    """Where keys and certificates are; of a server that keeps nothing, one that goes with it."""
    if data_dir is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drakit-")))
    Path(data_dir).mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(data_dir)
