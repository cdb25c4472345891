"""`drakit controllers`: run the control loops of DRA against an API server, drakit's or another.

In:  where the server is and who we are to it; flags named as kube-controller-manager names them where it has them.
Out: controllers at work until told to stop; of several replicas, one works.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from prometheus_client import CollectorRegistry

from drakit.base.clock import RealClock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.base.inputfiles import read_settings, read_settings_text
from drakit.cli.flags import options
from drakit.cli.flags.access import access_of
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.processes.diagnostics import bind_port
from drakit.cli.processes.logs import log_to_stderr, note_warning
from drakit.cli.processes.runner import ComponentRun, Election, elector_of, fulfil
from drakit.client import Access, Client
from drakit.client.accounts import AccountToken
from drakit.client.transport.http import Http
from drakit.controllers import Controllers, Make, chosen
from drakit.controllers.authority import SigningAuthority
from drakit.informers import Timing

SYSTEM = "kube-system"


@with_groups
def controllers(
    reach: ReachFlags,
    names: Annotated[
        str, typer.Option("--controllers", help="Comma-separated; * is all of them, -NAME is not that one.")
    ] = "*",
    use_service_account_credentials: Annotated[
        bool, typer.Option("--use-service-account-credentials", help="Each controller acts under its own account.")
    ] = False,
    root_ca_file: Annotated[
        Path | None, typer.Option(help="What pods know the server by; without it, what we know it by.")
    ] = None,
    cluster_signing_cert_file: Annotated[
        Path | None, typer.Option(help="The authority that signs certificates; without it, none are signed.")
    ] = None,
    cluster_signing_key_file: Annotated[Path | None, typer.Option(help="The authority's key.")] = None,
    leader_elect: Annotated[bool, typer.Option(help="Of several replicas, let one work.")] = True,
    leader_elect_lease_duration: Annotated[float, typer.Option(help="Seconds a standby waits.")] = 15.0,
    leader_elect_renew_deadline: Annotated[float, typer.Option(help="Seconds a leader tries to renew.")] = 10.0,
    leader_elect_retry_period: Annotated[float, typer.Option(help="Seconds between tries.")] = 2.0,
    leader_elect_resource_namespace: Annotated[str, typer.Option(help="Where the lease is.")] = SYSTEM,
    leader_elect_resource_name: Annotated[str, typer.Option(help="What it is called.")] = "drakit-controllers",
    bind_address: options.ShownAddress = "127.0.0.1",
    port: options.ShownPort = 10257,
    feature_gates: options.Gates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run the controllers against an API server."""
    log_to_stderr(verbosity)
    access = access_of(reach)
    timing = Timing(
        lease_duration=leader_elect_lease_duration,
        renew_deadline=leader_elect_renew_deadline,
        retry_period=leader_elect_retry_period,
    )
    election = Election(name=leader_elect_resource_name, namespace=leader_elect_resource_namespace, timing=timing)
    with explained("--root-ca-file"):
        root_ca = read_settings_text(root_ca_file) if root_ca_file else access.trust.ca.decode()
    plan = _Plan(
        access=access,
        gates=FeatureGates.parse(feature_gates),
        makers=chosen(options.names(names)),
        own_accounts=use_service_account_credentials,
        root_ca=root_ca,
        authority=_authority(cluster_signing_cert_file, cluster_signing_key_file),
        election=election if leader_elect else None,
    )
    uvloop.run(plan.run(bind_port(bind_address, port)))


def _authority(certificate: Path | None, key: Path | None) -> SigningAuthority | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("--cluster-signing-cert-file and --cluster-signing-key-file are given together or not at all")
    with explained("--cluster-signing-cert-file"):
        try:
            return SigningAuthority(read_settings(certificate), read_settings(key), RealClock())
        except ValueError as error:
            raise UsageError(f"--cluster-signing-cert-file {certificate}: {error}") from None


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags come down to."""

    access: Access
    gates: FeatureGates
    makers: tuple[Make, ...]
    own_accounts: bool
    root_ca: str
    authority: SigningAuthority | None
    election: Election | None

    async def run(self, bound: socket.socket) -> None:
        async with Clients(self.access, own_accounts=self.own_accounts) as clients:
            registry, clock = CollectorRegistry(), RealClock()
            work = Controllers(
                clients.shared,
                clock=clock,
                gates=self.gates,
                registry=registry,
                root_ca=self.root_ca,
                authority=self.authority,
                client_of=clients.of,
                makers=self.makers,
            )
            duty = ComponentRun(
                "controllers", work, registry, clock, elector_of(self.election, clients.shared, registry)
            )
            await fulfil(duty, clients.shared, self.access.server, bound)


class Clients:
    """The client of all, and of each controller by its account; the same one unless accounts are asked for."""

    def __init__(self, access: Access, *, own_accounts: bool) -> None:
        self.shared = Client(Http(access), on_warning=note_warning)
        self._access = access
        self._own_accounts = own_accounts
        self._made: dict[str, Client] = {}

    def of(self, account: str) -> Client:
        if not self._own_accounts:
            return self.shared
        found = self._made.get(account)
        if found is None:
            # Without the headers of the shared access: they may carry its own identity.
            access = msgspec.structs.replace(
                self._access, credentials=AccountToken(self.shared, SYSTEM, account), headers={}
            )
            found = self._made[account] = Client(Http(access), on_warning=note_warning)
        return found

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(self, *_: object) -> None:
        # The shared one last: the others get their tokens through it.
        for each in (*self._made.values(), self.shared):
            await each.close()
