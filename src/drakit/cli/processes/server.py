"""Run an API server in this process, alone or with components around it, until a signal comes.

In:  a host, settings, where data and kubeconfig go; the components that share the process.
Out: HTTP, and whatever the components do. They are ready when the server is announced, and end after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec
import typer

from drakit.api.exchange import Handler
from drakit.apiserver import Server
from drakit.apiserver.http.listener import GRACE_SECONDS, Listener
from drakit.apiserver.serving.composition import Settings, build_server
from drakit.apiserver.serving.kubeconfig import write_kubeconfig
from drakit.base.clock import RealClock
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import EtcdFlags
from drakit.cli.processes.collector import load_without_collector, share_the_interpreter, spare_the_collector
from drakit.cli.processes.components import Component, Surroundings, running
from drakit.cli.processes.diagnostics import hide_creation_times
from drakit.cli.processes.host import Host, ListenAddress, kept_token, signing_key, static_tokens
from drakit.cli.processes.logs import Logged
from drakit.cli.processes.storage import opened
from drakit.store import Store

_REPLICA_GRACE_SECONDS = 30.0
"""What requests have to finish when one of several servers stops: longer than etcd may take for a write."""
Pages = Callable[[Server, Path], AbstractAsyncContextManager[Handler]]


class ServerFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are kept: certificates and keys in the directory, data too unless it is in memory or in etcd."""

    directory: Path
    ephemeral: bool
    kubeconfig: Path | None = None
    etcd: EtcdFlags = EtcdFlags()

    @property
    def database(self) -> Path | None:
        return None if self.ephemeral else self.directory / "drakit.db"

    @property
    def kubeconfig_path(self) -> Path:
        """The kubeconfig that reaches the server."""
        return self.kubeconfig or self.directory / "admin.kubeconfig"

    @property
    def login_token(self) -> Path:
        """What the administrator logs in with to the dashboard."""
        return self.directory / "dashboard.token"


async def serve(
    title: str,
    place: ListenAddress,
    settings: Settings,
    files: ServerFiles,
    *,
    tokens: Path | None = None,
    components: Sequence[Component] | Callable[[Host], Sequence[Component]] = (),
    hint: str = "",
    status: Callable[[Surroundings], AbstractAsyncContextManager[None]] = lambda _: nullcontext(),
    pages: Pages | None = None,
) -> None:
    """`settings` get their tokens and keys here; `title` is what the announcement calls us, `hint` what comes next.

    Components that depend on where the server listens are made when that is known. `status` is open while it serves.
    `pages` stands in front of the server and answers some paths itself; it gets the file of the login token.
    """
    load_without_collector()
    admin_token = "" if place.secure else kept_token(files.directory / "admin.token")
    settings.tokens = static_tokens(tokens, admin_token)
    settings.signing_key = signing_key(files.directory / "service-account.key")
    # The store before the socket: who still has the file has the port, too, and lets go of the file last.
    async with opened(files.database, files.etcd) as store:
        host = Host(place, files.directory)
        settings.nodes = host.node_client()
        await _serve(title, host, settings, files, store, admin_token, components, hint, status, pages)
    if place.unix_socket:
        place.unix_socket.unlink(missing_ok=True)


async def _serve(
    title: str,
    host: Host,
    settings: Settings,
    files: ServerFiles,
    store: Store,
    admin_token: str,
    components: Sequence[Component] | Callable[[Host], Sequence[Component]],
    hint: str,
    status: Callable[[Surroundings], AbstractAsyncContextManager[None]],
    pages: Pages | None,
) -> None:
    async with (
        await build_server(store, settings=settings) as server,
        pages(server, files.login_token) if pages is not None else nullcontext(server) as front,
    ):
        await server.announce(host.url.rpartition("//")[2], client_ca=host.root_ca())
        grace = _REPLICA_GRACE_SECONDS if files.etcd.etcd_servers else GRACE_SECONDS
        listener = Listener(Logged(front), host.socket, host.security(), grace=grace)
        with explained("--kubeconfig"):
            # Before the announcement: scripts read the file as soon as they see the line.
            write_kubeconfig(files.kubeconfig_path, host.access(admin_token))
        around = Surroundings.of(server, settings.gates, RealClock(), host.root_ca(), host.signer())
        with listener.stopped_by_signals():
            made = components(host) if callable(components) else components
            async with running(made, around, ended=listener.stop, stop_asked=listener.stop_asked):
                if not listener.stop_asked.is_set():
                    typer.echo(f"drakit {title}: listening on {host.url}, kubeconfig {files.kubeconfig_path}")
                    if hint:
                        typer.echo(_filled(hint, host, files))
                spare_the_collector()
                share_the_interpreter()
                hide_creation_times()
                async with status(around):
                    await listener.serve()


def _filled(hint: str, host: Host, files: ServerFiles) -> str:
    return hint.format(
        kubeconfig=files.kubeconfig_path,
        pki=files.directory / "pki",
        url=host.url,
        token=files.login_token,
    )
