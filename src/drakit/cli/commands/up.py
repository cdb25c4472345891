"""`drakit up`: a whole cluster in one process: API server, controllers, scheduler, nodes with agents and drivers.

In:  flags, those of `drakit apiserver` as far as they matter here. Every feature gate is on.
Out: a server on a socket and its components, each with an identity and rights of its own, until told to stop.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.serving.composition import Settings
from drakit.base.clock import RealClock
from drakit.base.gates import FeatureGates
from drakit.cli.flags import options
from drakit.cli.flags.groups import EtcdFlags, FlagGroup, ServingFlags, with_groups
from drakit.cli.output.statusline import StatusLine
from drakit.cli.processes.agent import issued_certificates
from drakit.cli.processes.components import Component, control_plane
from drakit.cli.processes.dashboards import with_dashboard
from drakit.cli.processes.host import Host, ListenAddress, audit_log, directory_of, encryption_of, forsaken_directories
from drakit.cli.processes.logs import log_to_stderr
from drakit.cli.processes.nodes import NodePlan, end_forgotten, node_components
from drakit.cli.processes.schedulerfile import read_configuration
from drakit.cli.processes.server import ServerFiles, serve
from drakit.cli.processes.status import live_status
from drakit.drivers.inventory import ClusterInventory, load_inventory
from drakit.nodeagent.server import NodeCertificates

_EVERY_GATE = "AllAlpha=true,AllBeta=true"
_PLUGINS = ("ServiceAccount", "DeviceOwnership")
_EXAMPLE = Path("examples/gpu-pod.yaml")
_DASHBOARD = "\ndashboard: {url}/dashboard, log in with the token in {token}"


class DashboardFlags(FlagGroup, frozen=True, kw_only=True):
    """The page at /dashboard."""

    dashboard: Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="Serve the page at /dashboard.")] = True
    allow_changes: options.AllowChanges = False


class ClusterFlags(FlagGroup, frozen=True, kw_only=True):
    """What the cluster has beside its control plane."""

    nodes: Annotated[
        int | None, typer.Option(min=0, max=100, help="Nodes with agents and drivers; 1 unless --cluster is given.")
    ] = None
    profile: options.Profile = "gpu"
    gpus: Annotated[int | None, typer.Option(min=1, help="How many of the profile's cards a node has.")] = None
    cluster: Annotated[
        Path | None, typer.Option(help="A file with templates of simulated nodes: thousands, if you like.")
    ] = None
    config: options.SchedulerFile = None
    allow_remote_api: Annotated[
        bool,
        typer.Option("--allow-remote-api", help="Run pods as processes although others can reach the API server."),
    ] = False

    @property
    def node_count(self) -> int:
        return self.nodes if self.nodes is not None else int(self.cluster is None)

    @property
    def inventory(self) -> ClusterInventory:
        return load_inventory(self.cluster) if self.cluster else ClusterInventory(nodes=())


@with_groups
def up(
    serving: ServingFlags,
    etcd: EtcdFlags,
    cluster: ClusterFlags,
    dashboard: DashboardFlags,
    feature_gates: options.MoreGates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run a cluster in one process: API server, controllers, scheduler, nodes with GPUs. Every feature gate is on."""
    log_to_stderr(verbosity)
    place = ListenAddress(
        address=serving.bind_address,
        port=serving.secure_port,
        unix_socket=serving.unix_socket,
        insecure=serving.insecure,
    )
    gates = FeatureGates.parse(f"{_EVERY_GATE},{feature_gates}")
    configuration = read_configuration(cluster.config, gates)
    inventory = cluster.inventory
    with (
        directory_of(serving, default_directory(os.environ)) as directory,
        audit_log(serving.audit_log_path, serving.audit_policy_file, serving.audit_log_mode) as audit,
    ):
        settings = _settings(serving, gates, audit)
        plan = NodePlan(
            count=cluster.node_count,
            directory=directory / "nodes",
            address=place.address,
            profile=cluster.profile,
            cards=cluster.gpus,
            allow_remote=cluster.allow_remote_api,
        )
        # Before the server is built: a wrong profile is an error of usage, and nothing has been written yet.
        plan.check()
        line = StatusLine()
        # A browser cannot reach a Unix socket.
        shown = dashboard.dashboard and place.unix_socket is None

        def components(host: Host) -> list[Component]:
            nodes = node_components(replace(plan, certify=_certify(host)))
            return [*control_plane(configuration), *nodes, *_simulated(inventory, directory, line)]

        async def run() -> None:
            # Before the nodes start: processes of a killed cluster may still hold devices and ports.
            await _end_left_over(plan)
            await serve(
                "up",
                place,
                settings,
                ServerFiles(directory=directory, ephemeral=serving.ephemeral, kubeconfig=serving.kubeconfig, etcd=etcd),
                tokens=serving.token_auth_file,
                components=components,
                hint=_hint(cluster, place) + (_DASHBOARD if shown else ""),
                status=lambda around: live_status(around, line),
                pages=partial(with_dashboard, allow_changes=dashboard.allow_changes) if shown else None,
            )

        with line.giving_way():
            uvloop.run(run())


def _settings(serving: ServingFlags, gates: FeatureGates, audit: AuditLog | None) -> Settings:
    plugins = (*(name for name in _PLUGINS if name not in serving.disabled_plugins), *serving.enabled_plugins)
    return Settings(
        gates=gates,
        runtime_config=serving.runtime_config,
        modes=("Node", "RBAC"),
        aggregate_roles=True,
        audit=audit,
        encryption=encryption_of(serving.encryption_provider_config),
        largest_object=serving.max_object_bytes,
        enable_plugins=plugins,
        disable_plugins=serving.disabled_plugins,
        event_ttl=serving.event_seconds,
        drakit_warnings=serving.drakit_warnings is not False,
    )


def default_directory(environment: Mapping[str, str]) -> Path:
    """The default data directory, by the XDG rules: $XDG_STATE_HOME/drakit or ~/.local/state/drakit."""
    state = environment.get("XDG_STATE_HOME", "")
    home = Path(environment.get("HOME", "~")).expanduser()
    return (Path(state) if state else home / ".local" / "state") / "drakit"


async def _end_left_over(plan: NodePlan) -> None:
    """After a kill -9: containers of nodes that do not come up again, and of clusters that nobody keeps."""
    await end_forgotten(plan.directory, plan.names)
    for each in forsaken_directories():
        await end_forgotten(each / "nodes")
        shutil.rmtree(each, ignore_errors=True)


def _simulated(inventory: ClusterInventory, directory: Path, line: StatusLine) -> list[Component]:
    if not inventory.size:
        return []
    from drakit.cli.processes.fleet import fleet_components

    def progress(done: int, count: int) -> None:
        line.show(f"starting: {done} of {count} simulated nodes are up")

    return fleet_components(inventory, directory / "simulated", progress)


def _hint(cluster: ClusterFlags, place: ListenAddress) -> str:
    """What to type next; `{kubeconfig}` and `{pki}` are known later."""
    if not cluster.node_count and cluster.cluster is None:
        logs = " --authority-dir {pki}" if place.secure else ""
        return f"next: drakit node --kubeconfig {{kubeconfig}} --node-name node-1 --root-dir /tmp/node-1{logs}"
    if cluster.node_count and _EXAMPLE.is_file():
        return f"next: kubectl --kubeconfig {{kubeconfig}} apply -f {_EXAMPLE}"
    return "next: kubectl --kubeconfig {kubeconfig} get nodes,resourceslices"


def _certify(host: Host) -> Callable[[str], NodeCertificates | None]:
    """A node's certificate by our own CA, and that CA for those who call it."""

    def certify(node: str) -> NodeCertificates | None:
        if host.authority is None:
            return None
        return issued_certificates(host.authority.directory, node, ["127.0.0.1", node], RealClock().now())

    return certify
