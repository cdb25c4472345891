"""`drakit up`: a whole cluster in one process: API server, controllers, scheduler, nodes with agents and drivers.

In:  flags, those of `drakit apiserver` as far as they matter here. Every feature gate is on.
Out: a server on a socket and its components, each with an identity and rights of its own, until told to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer
import uvloop

from drakit.apiserver.serving.composition import Settings
from drakit.base.gates import FeatureGates
from drakit.cli.flags import options
from drakit.cli.flags.groups import FlagGroup, ServingFlags, with_groups
from drakit.cli.processes.components import COMPONENTS
from drakit.cli.processes.host import Host, ListenAddress, audit_log, directory_of
from drakit.cli.processes.logs import log_to_stderr
from drakit.cli.processes.nodes import NodePlan, node_components
from drakit.cli.processes.server import ServerFiles, serve
from drakit.nodeagent.server import NodeCertificates

_EVERY_GATE = "AllAlpha=true,AllBeta=true"
_PLUGINS = ("ServiceAccount",)


_HINT = "next: kubectl --kubeconfig {kubeconfig} apply -f examples/gpu-pod.yaml"


class ClusterFlags(FlagGroup, frozen=True, kw_only=True):
    """What the cluster has beside its control plane."""

    nodes: Annotated[int, typer.Option(min=0, max=100, help="Nodes with agents and drivers; 0 for none.")] = 1
    profile: Annotated[str, typer.Option(help="The GPUs of each node, by the name of a device profile.")] = "gpu"
    gpus: Annotated[int | None, typer.Option(min=1, help="How many of the profile's cards a node has.")] = None
    allow_remote_api: Annotated[
        bool,
        typer.Option("--allow-remote-api", help="Run pods as processes although others can reach the API server."),
    ] = False


@with_groups
def up(
    serving: ServingFlags,
    cluster: ClusterFlags,
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
    disabled = serving.disabled_plugins
    with directory_of(serving) as directory, audit_log(serving.audit_log_path) as audit:
        settings = Settings(
            gates=FeatureGates.parse(f"{_EVERY_GATE},{feature_gates}"),
            runtime_config=serving.runtime_config,
            modes=("Node", "RBAC"),
            aggregate_roles=True,
            audit=audit,
            enable_plugins=(
                *(name for name in _PLUGINS if name not in disabled),
                *serving.enabled_plugins,
            ),
            disable_plugins=disabled,
            drakit_warnings=serving.drakit_warnings is not False,
        )
        files = ServerFiles(directory=directory, ephemeral=serving.ephemeral, kubeconfig=serving.kubeconfig)
        plan = NodePlan(
            count=cluster.nodes,
            directory=directory / "nodes",
            address=place.address,
            profile=cluster.profile,
            cards=cluster.gpus,
            allow_remote=cluster.allow_remote_api,
        )
        plan.check()
        uvloop.run(
            serve(
                "up",
                place,
                settings,
                files,
                tokens=serving.token_auth_file,
                components=lambda host: (*COMPONENTS, *node_components(replace(plan, certify=_certify(host)))),
                hint=_HINT if cluster.nodes else "",
            )
        )


def _certify(host: Host) -> Callable[[str], NodeCertificates | None]:
    """A node's certificate by our own CA, and that CA for those who call it."""

    def certify(node: str) -> NodeCertificates | None:
        if host.authority is None:
            return None
        pair = host.authority.node(node, ("127.0.0.1", node))
        return NodeCertificates(pair.certificate, pair.key, host.authority.files.certificate)

    return certify
