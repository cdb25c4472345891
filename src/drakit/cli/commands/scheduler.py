"""`drakit scheduler`: place pods of an API server, drakit's or another.

In:  where the server is and who we are to it; a KubeSchedulerConfiguration; flags named as kube-scheduler names them.
Out: pods bound until told to stop; of several replicas, one works.
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
from drakit.base.gates import FeatureGates
from drakit.cli.flags import options
from drakit.cli.flags.access import access_of
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.processes.diagnostics import bind_port
from drakit.cli.processes.logs import log_to_stderr, note_warning
from drakit.cli.processes.runner import ComponentRun, Election, elector_of, fulfil
from drakit.cli.processes.schedulerfile import read_configuration
from drakit.client import Access, Client
from drakit.client.transport.http import Http
from drakit.informers import Timing
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration


@with_groups
def scheduler(
    reach: ReachFlags,
    config: options.SchedulerFile = None,
    leader_elect: Annotated[
        bool | None, typer.Option(help="Of several replicas, let one work; without it, as the configuration says.")
    ] = None,
    hints: Annotated[
        bool,
        typer.Option("--hints/--no-hints", help="Events name the claim, the request and the most frequent reason."),
    ] = True,
    bind_address: options.ShownAddress = "127.0.0.1",
    port: options.ShownPort = 10259,
    feature_gates: options.Gates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run the scheduler against an API server."""
    log_to_stderr(verbosity)
    gates = FeatureGates.parse(feature_gates)
    configuration = read_configuration(config, gates)
    named = configuration.client_connection.kubeconfig
    # What is said on the command line wins over the configuration file.
    if named and not reach.kubeconfig and not reach.master:
        reach = msgspec.structs.replace(reach, kubeconfig=Path(named))
    access = access_of(reach)
    if leader_elect is not None:
        election = msgspec.structs.replace(configuration.leader_election, leader_elect=leader_elect)
        configuration = msgspec.structs.replace(configuration, leader_election=election)
    uvloop.run(_run(access, gates, configuration, bind_port(bind_address, port), hints=hints))


async def _run(
    access: Access, gates: FeatureGates, config: SchedulerConfiguration, bound: socket.socket, *, hints: bool
) -> None:
    async with Client(Http(access), on_warning=note_warning) as client:
        registry, clock = CollectorRegistry(), RealClock()
        work = Scheduler(client, clock=clock, gates=gates, registry=registry, config=config, hints=hints)
        elector = elector_of(_election(config), client, registry)
        run = ComponentRun("scheduler", work, registry, clock, elector, work.pod_resources)
        await fulfil(run, client, access.server, bound)


def _election(config: SchedulerConfiguration) -> Election | None:
    given = config.leader_election
    if not given.leader_elect:
        return None
    timing = Timing(
        lease_duration=given.lease_duration, renew_deadline=given.renew_deadline, retry_period=given.retry_period
    )
    return Election(name=given.resource_name, namespace=given.resource_namespace, timing=timing)
