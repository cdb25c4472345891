"""`drakit dashboard`: the page of a cluster, for any Kubernetes.

In:  how to reach the API server.
Out: the page on an address of this machine until Ctrl-C. Whoever looks logs in with a bearer token of the cluster; the
     login token that is printed stands for the kubeconfig, and is only there on a loopback address.
"""

from __future__ import annotations

import ipaddress
import secrets
from typing import Annotated

import typer
import uvloop

from drakit.apiserver.http.listener import Listener, bind
from drakit.base.clock import RealClock
from drakit.base.errors import Unavailable, UsageError
from drakit.cli.flags import options
from drakit.cli.flags.cluster import live_access
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.processes.dashboards import ROOT
from drakit.cli.processes.logs import Logged, log_to_stderr
from drakit.client import Access
from drakit.dashboard import Dashboard, over_http
from drakit.drivers import PROFILE_TEMPLATES

_PORT = 8001


@with_groups
def dashboard(
    reach: ReachFlags,
    bind_address: options.BindAddress = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free one.")] = _PORT,
    allow_changes: options.AllowChanges = False,
    verbosity: options.Verbosity = 0,
) -> None:
    """Serve the page of a cluster: its devices, pods that wait and why, pods' lives, figures over time, what-if."""
    log_to_stderr(verbosity)
    if not _is_loopback(bind_address):
        raise UsageError(
            f"--bind-address {bind_address}: the page is served without TLS, on loopback addresses only; "
            "put a proxy with TLS in front of it"
        )
    uvloop.run(_serve(live_access(reach), bind_address, port, allow_changes=allow_changes))


async def _serve(access: Access, address: str, port: int, *, allow_changes: bool) -> None:
    try:
        bound = bind(address, port)
    except OSError as error:
        raise Unavailable(f"cannot listen on {address}:{port}: {error}") from None
    login = secrets.token_urlsafe(24)
    shown = Dashboard(
        over_http(access),
        clock=RealClock(),
        login=login,
        allow_changes=allow_changes,
        templates=PROFILE_TEMPLATES,
    )
    listener = Listener(Logged(shown), bound)
    with listener.stopped_by_signals():
        async with shown.running():
            host = f"[{address}]" if ":" in address else address
            url = f"http://{host}:{bound.getsockname()[1]}{ROOT}"
            typer.echo(f"drakit dashboard: {url} shows {access.server}")
            typer.echo(f"login token, as the user of the kubeconfig: {login}")
            await listener.serve()


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
