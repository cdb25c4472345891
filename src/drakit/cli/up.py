"""`drakit up`: a cluster's control plane in one process: the API server, and what reacts to its objects.

In:  flags, those of `drakit apiserver` as far as they matter here. Every feature gate is on.
Out: a server on a socket and its components, each with an identity and rights of its own, until told to stop.
"""

from __future__ import annotations

from typing import Annotated

import typer
import uvloop

from drakit.apiserver.serving.composition import Settings
from drakit.base.gates import FeatureGates
from drakit.cli import options
from drakit.cli.components import COMPONENTS
from drakit.cli.flags import ServingFlags, with_groups
from drakit.cli.host import ListenAddress, audit_log, directory_of
from drakit.cli.localnode import local_node
from drakit.cli.logs import log_to_stderr
from drakit.cli.server import ServerFiles, serve

_EVERY_GATE = "AllAlpha=true,AllBeta=true"
_PLUGINS = ("ServiceAccount",)


@with_groups
def up(
    serving: ServingFlags,
    node: Annotated[str, typer.Option(help="Run a node of this name too: its pods are processes of yours.")] = "",
    feature_gates: options.MoreGates = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run API server, controllers and scheduler in one process, with every feature gate on."""
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
        )
        files = ServerFiles(directory=directory, ephemeral=serving.ephemeral, kubeconfig=serving.kubeconfig)
        components = (*COMPONENTS, *((local_node(node, directory, serving.bind_address),) if node else ()))
        uvloop.run(serve("up", place, settings, files, tokens=serving.token_auth_file, components=components))
