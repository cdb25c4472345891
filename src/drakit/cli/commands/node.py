"""`drakit node`: run pods on this machine, with their devices.

In:  where the API server is and who we are to it; flags named as a kubelet names them; the runtime.
Out: a node, until told to stop. Its pods go on without it; the next start goes on with them.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
import uvloop
from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity, QuantityError
from drakit.cli.flags import options
from drakit.cli.flags.access import access_of
from drakit.cli.flags.groups import FlagGroup, ReachFlags, with_groups
from drakit.cli.processes.agent import PagesOf, issued_certificates, make_agent
from drakit.cli.processes.diagnostics import bind_port
from drakit.cli.processes.logs import log_to_stderr, note_warning
from drakit.cli.processes.runner import ComponentRun, fulfil
from drakit.client import Access, Client
from drakit.client.transport.http import Http
from drakit.nodeagent.containers.logrotation import LogBounds
from drakit.nodeagent.node.facts import DEFAULT_PODS, parse_reserved, this_machine
from drakit.nodeagent.node.thresholds import DEFAULT_EVICTION_HARD, parse_thresholds
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups, cgroup_name
from drakit.nodeagent.runtimes.contract import Runtime
from drakit.nodeagent.server import NodeCertificates
from drakit.nodeagent.settings import AgentPaths, AgentSettings

log = logging.getLogger("drakit.nodeagent")

DEFAULT_ROOT = Path("/var/lib/drakit/node")
DEFAULT_CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))


class RuntimeName(StrEnum):
    PROCESS = "process"
    CRUN = "crun"
    CRI = "cri"
    SIMULATED = "simulated"


class RuntimeFlags(FlagGroup, frozen=True, kw_only=True):
    """What runs the containers."""

    runtime: Annotated[RuntimeName, typer.Option(help="What runs the containers.")] = RuntimeName.PROCESS
    container_runtime_endpoint: Annotated[str, typer.Option(help="The socket of a CRI runtime.")] = (
        "unix:///run/containerd/containerd.sock"
    )
    assume_cdi: Annotated[
        bool, typer.Option("--assume-cdi", help="Believe that the CRI runtime applies CDI devices.")
    ] = False
    image_dir: Annotated[
        Path | None, typer.Option(help="Root file systems or OCI layouts by image name, for crun.")
    ] = None
    cdi_dir: Annotated[list[Path] | None, typer.Option(help="Directories of CDI files; may be repeated.")] = None
    cgroup_root: Annotated[
        str, typer.Option(help="The cgroup of all pods, of this agent alone; else by node and directory.")
    ] = ""
    allow_remote_api: Annotated[
        bool,
        typer.Option("--allow-remote-api", help="Run processes for an API server that listens beyond this machine."),
    ] = False


class PlaceFlags(FlagGroup, frozen=True, kw_only=True):
    """Where the node keeps its files."""

    root_dir: Annotated[Path, typer.Option(help="Where the node keeps its files.")] = DEFAULT_ROOT
    registry_dir: Annotated[Path | None, typer.Option(help="Where plugins register.")] = None
    plugin_dir: Annotated[Path | None, typer.Option(help="Where drivers have their sockets.")] = None
    pod_resources_socket: Annotated[Path | None, typer.Option(help="Where PodResources is served.")] = None

    def paths(self) -> AgentPaths:
        below = AgentPaths.below(self.root_dir.absolute())
        return replace(
            below,
            registry=self.registry_dir or below.registry,
            plugins=self.plugin_dir or below.plugins,
            pod_resources=self.pod_resources_socket or below.pod_resources,
        )


class ServeFlags(FlagGroup, frozen=True, kw_only=True):
    """How the node answers for logs, exec, attach and port-forward: over TLS, to callers that may."""

    secure_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of logs and exec; 0 is any free one.")] = (
        10250
    )
    tls_cert_file: Annotated[Path | None, typer.Option(help="The node's certificate.")] = None
    tls_private_key_file: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None
    client_ca_file: Annotated[Path | None, typer.Option(help="The CA of callers with a certificate.")] = None
    authority_dir: Annotated[
        Path | None, typer.Option(help="Where the API server has its CA: the node issues its certificate from it.")
    ] = None

    def certificates(self, node: str, address: str, now: datetime) -> NodeCertificates | None:
        """None when there is nothing to serve with. Raise UsageError."""
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            raise UsageError("--tls-cert-file and --tls-private-key-file go together")
        if self.tls_cert_file and self.tls_private_key_file:
            return NodeCertificates(self.tls_cert_file, self.tls_private_key_file, self.client_ca_file)
        if self.authority_dir is None:
            return None
        if not (self.authority_dir / "ca.key").is_file():
            raise UsageError(f"--authority-dir {self.authority_dir}: there is no ca.key")
        return issued_certificates(self.authority_dir, node, [node, address, "localhost", "127.0.0.1"], now)


class NodeFlags(FlagGroup, frozen=True, kw_only=True):
    """What the node is, and what of it is whose."""

    node_name: Annotated[str, typer.Option(help="The node's name; without it, this machine's.")] = ""
    node_ip: Annotated[str, typer.Option(help="The node's address.")] = "127.0.0.1"
    node_labels: Annotated[str, typer.Option(help="name=value,… of the node's own labels.")] = ""
    max_pods: Annotated[int, typer.Option(min=1, help="How many pods the node takes.")] = DEFAULT_PODS
    eviction_hard: Annotated[str, typer.Option(help="signal<amount,… at which pods are evicted; empty for never.")] = (
        DEFAULT_EVICTION_HARD
    )
    container_log_max_size: Annotated[
        str, typer.Option(help="How large a container's log grows before it is rotated.")
    ] = "10Mi"
    container_log_max_files: Annotated[
        int, typer.Option(min=2, help="How many files of a container's log are kept.")
    ] = 5
    system_reserved: Annotated[str, typer.Option(help="cpu=…,memory=… for the machine itself.")] = ""
    kube_reserved: Annotated[str, typer.Option(help="cpu=…,memory=… for the node agent.")] = ""
    shutdown_grace_period: Annotated[
        float, typer.Option(min=0, help="Seconds in which pods end when the node is told to stop; 0 leaves them.")
    ] = 0.0
    shutdown_grace_period_critical_pods: Annotated[
        float, typer.Option(min=0, help="Of these, the seconds that are for critical pods.")
    ] = 0.0
    limits_with_claims: Annotated[
        bool, typer.Option("--limits-with-claims", help="Cgroup limits and OOM score count claims too.")
    ] = False

    @property
    def name(self) -> str:
        return (self.node_name or socket.gethostname()).lower()

    def log_bounds(self) -> LogBounds:
        try:
            size = Quantity.parse(self.container_log_max_size).value
        except QuantityError as error:
            raise UsageError(f"--container-log-max-size: {self.container_log_max_size!r}: {error}") from None
        if size <= 0:
            raise UsageError(f"--container-log-max-size: {self.container_log_max_size!r} must be more than zero")
        return LogBounds(size, self.container_log_max_files)

    def labels(self) -> dict[str, str]:
        pairs = [each.partition("=") for each in options.names(self.node_labels)]
        if wrong := [name for name, separator, _ in pairs if not separator]:
            raise UsageError(f"--node-labels: {wrong[0]!r} is not of the form name=value")
        return {name: value for name, _, value in pairs}


@with_groups
def node(
    reach: ReachFlags,
    about: NodeFlags,
    place: PlaceFlags,
    running: RuntimeFlags,
    serving: ServeFlags,
    bind_address: options.ShownAddress = "127.0.0.1",
    port: options.ShownPort = 10248,
    feature_gates: options.Gates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run pods on this machine, with their devices."""
    log_to_stderr(verbosity)
    settings = _settings(about, place.paths(), FeatureGates.parse(feature_gates))
    access = access_of(reach)
    clock = RealClock()
    runtime = make_runtime(running, settings, clock, access.server)
    certificates = serving.certificates(settings.node, about.node_ip, clock.now())
    # Bound before the loop starts: a port that is taken is told at once.
    secure = bind_port(about.node_ip, serving.secure_port) if certificates is not None else None
    if certificates is None or secure is None:
        log.warning(
            "kubectl logs, exec, attach and port-forward do not reach this node: give it a certificate with "
            "--tls-cert-file and --tls-private-key-file, or the API server's CA with --authority-dir"
        )
    pages = PagesOf(certificates, secure) if certificates is not None and secure is not None else None
    uvloop.run(_run(access, settings, runtime, pages, bind_port(bind_address, port)))


def _settings(about: NodeFlags, paths: AgentPaths, gates: FeatureGates) -> AgentSettings:
    try:
        paths.make()
    except OSError as error:
        raise UsageError(f"--root-dir {paths.root}: {error.strerror}") from None
    return AgentSettings(
        node=about.name,
        paths=paths,
        machine=this_machine(paths.root, hostname=about.name, node_ip=about.node_ip, max_pods=about.max_pods),
        gates=gates,
        system_reserved=parse_reserved(about.system_reserved, "--system-reserved"),
        kube_reserved=parse_reserved(about.kube_reserved, "--kube-reserved"),
        labels=about.labels(),
        eviction_hard=parse_thresholds(about.eviction_hard, "--eviction-hard"),
        logs=about.log_bounds(),
        limits_with_claims=about.limits_with_claims,
        shutdown_grace=about.shutdown_grace_period,
        shutdown_grace_critical=about.shutdown_grace_period_critical_pods,
    )


async def _run(
    access: Access, settings: AgentSettings, runtime: Runtime, pages: PagesOf | None, bound: socket.socket
) -> None:
    async with Client(Http(access), on_warning=note_warning) as client:
        registry, clock = CollectorRegistry(), RealClock()
        agent = make_agent(client, runtime, settings, clock=clock, registry=registry, pages=pages)
        await fulfil(ComponentRun(f"node {settings.node}", agent, registry, clock), client, access.server, bound)


def make_runtime(flags: RuntimeFlags, settings: AgentSettings, clock: Clock, server: str) -> Runtime:
    """The runtime that the flags ask for; only its modules are loaded."""
    makers: dict[RuntimeName, Callable[[], Runtime]] = {
        RuntimeName.PROCESS: lambda: _process(flags, settings, clock, server),
        RuntimeName.CRUN: lambda: _crun(flags, settings, clock),
        RuntimeName.CRI: lambda: _cri(flags, clock),
        RuntimeName.SIMULATED: lambda: _simulated(clock),
    }
    return makers[flags.runtime]()


def _cgroups(flags: RuntimeFlags, settings: AgentSettings) -> Cgroups:
    return Cgroups(flags.cgroup_root or cgroup_name(settings.node, settings.paths.root))


def _process(flags: RuntimeFlags, settings: AgentSettings, clock: Clock, server: str) -> Runtime:
    from drakit.nodeagent.runtimes.process import ProcessRuntime, refuse_remote

    addresses = [urlsplit(server).hostname or "localhost"]
    # Before that server is asked for anything, or has to answer.
    refuse_remote(addresses, allowed=flags.allow_remote_api)
    return ProcessRuntime(
        settings.paths.root / "runtime",
        clock=clock,
        cdi=CdiRegistry(flags.cdi_dir or DEFAULT_CDI),
        host_ip=settings.machine.internal_ip,
        cgroups=_cgroups(flags, settings),
        api_addresses=addresses,
        allow_remote=flags.allow_remote_api,
    )


def _crun(flags: RuntimeFlags, settings: AgentSettings, clock: Clock) -> Runtime:
    from drakit.nodeagent.runtimes.crun import CrunRuntime, ImageStore

    return CrunRuntime(
        settings.paths.root / "runtime",
        clock=clock,
        cdi=CdiRegistry(flags.cdi_dir or DEFAULT_CDI),
        host_ip=settings.machine.internal_ip,
        cgroups=_cgroups(flags, settings),
        images=ImageStore(settings.paths.root / "images", root=flags.image_dir),
    )


def _cri(flags: RuntimeFlags, clock: Clock) -> Runtime:
    from drakit.nodeagent.runtimes.cri import CriRuntime

    return CriRuntime(flags.container_runtime_endpoint, clock=clock, assume_cdi=flags.assume_cdi)


def _simulated(clock: Clock) -> Runtime:
    from drakit.nodeagent.runtimes.simulated import SimulatedRuntime

    return SimulatedRuntime(clock=clock)
