"""`drakit scheduler`: place pods of an API server, drakit's or another.

In:  where the server is and who we are to it; a KubeSchedulerConfiguration; flags named as kube-scheduler names them.
Out: pods bound until told to stop; of several replicas, one works.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import msgspec
import typer
import uvloop
from prometheus_client import CollectorRegistry

from drakit.base.clock import RealClock
from drakit.base.gates import FeatureGates
from drakit.cli import options
from drakit.cli.hosting import explained
from drakit.cli.logs import log_to_stderr, note_warning
from drakit.cli.observing import bind_port
from drakit.cli.reaching import Reach
from drakit.cli.working import Duty, fulfil
from drakit.client import Access, Client
from drakit.client.transport.http import Http
from drakit.informers import LeaderElector, Timing
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration, default_configuration, load_configuration


def scheduler(
    config: Annotated[Path | None, typer.Option(help="A KubeSchedulerConfiguration file.")] = None,
    kubeconfig: options.ReadKubeconfig = None,
    context: options.Context = "",
    master: options.Master = "",
    token_file: options.TokenFile = None,
    certificate_authority: options.CertificateAuthority = None,
    client_certificate: options.ClientCertificate = None,
    client_key: options.ClientKey = None,
    insecure_skip_tls_verify: options.AnyServer = False,
    leader_elect: Annotated[
        bool | None, typer.Option(help="Of several replicas, let one work; without it, as the configuration says.")
    ] = None,
    bind_address: options.ShownAddress = "127.0.0.1",
    port: options.ShownPort = 10259,
    feature_gates: options.Gates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run the scheduler against an API server."""
    log_to_stderr(verbosity)
    gates = FeatureGates.parse(feature_gates)
    configuration = _configuration(config, gates)
    named = configuration.client_connection.kubeconfig
    access = Reach(
        kubeconfig=kubeconfig or (Path(named) if named and not master else None),
        context=context,
        master=master,
        token_file=token_file,
        certificate_authority=certificate_authority,
        client_certificate=client_certificate,
        client_key=client_key,
        insecure_skip_tls_verify=insecure_skip_tls_verify,
    ).access()
    if leader_elect is not None:
        election = msgspec.structs.replace(configuration.leader_election, leader_elect=leader_elect)
        configuration = msgspec.structs.replace(configuration, leader_election=election)
    uvloop.run(_run(access, gates, configuration, bind_port(bind_address, port)))


def _configuration(path: Path | None, gates: FeatureGates) -> SchedulerConfiguration:
    if path is None:
        return default_configuration(gates)
    with explained("--config"):
        data = path.read_bytes()
    return load_configuration(data, source=str(path), gates=gates)


async def _run(access: Access, gates: FeatureGates, config: SchedulerConfiguration, bound: socket.socket) -> None:
    async with Client(Http(access), on_warning=note_warning) as client:
        registry, clock = CollectorRegistry(), RealClock()
        work = Scheduler(client, clock=clock, gates=gates, registry=registry, config=config)
        duty = Duty("scheduler", work, registry, clock, _elector(client, config, registry))
        await fulfil(duty, client, access.server, bound)


def _elector(client: Client, config: SchedulerConfiguration, registry: CollectorRegistry) -> LeaderElector | None:
    election = config.leader_election
    if not election.leader_elect:
        return None
    timing = Timing(
        lease_duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
    )
    return LeaderElector(
        client,
        name=election.resource_name,
        namespace=election.resource_namespace,
        identity=f"{socket.gethostname()}_{uuid4()}",
        timing=timing,
        registry=registry,
    )
