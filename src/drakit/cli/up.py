"""`drakit up`: a cluster's control plane in one process: the API server, and what reacts to its objects.

In:  flags, those of `drakit apiserver` as far as they matter here. Every feature gate is on.
Out: a server on a socket and its components, each with an identity and rights of its own, until told to stop.
"""

from __future__ import annotations

import uvloop

from drakit.apiserver.serving.composition import Settings
from drakit.base.gates import FeatureGates
from drakit.cli import options
from drakit.cli.components import COMPONENTS
from drakit.cli.hosting import Place, audit_log, directory_of
from drakit.cli.logs import log_to_stderr
from drakit.cli.serving import Keeping, serve

_EVERY_GATE = "AllAlpha=true,AllBeta=true"
_PLUGINS = ("ServiceAccount",)


def up(
    bind_address: options.BindAddress = "127.0.0.1",
    secure_port: options.SecurePort = 6443,
    unix_socket: options.UnixSocket = None,
    data_dir: options.DataDir = None,
    ephemeral: options.Ephemeral = False,
    insecure: options.Insecure = False,
    kubeconfig: options.WrittenKubeconfig = None,
    token_auth_file: options.TokenAuthFile = None,
    feature_gates: options.MoreGates = "",
    audit_log_path: options.AuditLogPath = None,
    enable_admission_plugins: options.EnablePlugins = "",
    disable_admission_plugins: options.DisablePlugins = "",
    runtime_config: options.RuntimeConfig = "",
    verbosity: options.Verbosity = 0,
) -> None:
    """Run API server, controllers and scheduler in one process, with every feature gate on."""
    log_to_stderr(verbosity)
    place = Place(address=bind_address, port=secure_port, unix_socket=unix_socket, insecure=insecure)
    disabled = options.names(disable_admission_plugins)
    with directory_of(data_dir, ephemeral=ephemeral) as directory, audit_log(audit_log_path) as audit:
        settings = Settings(
            gates=FeatureGates.parse(f"{_EVERY_GATE},{feature_gates}"),
            runtime_config=runtime_config,
            modes=("Node", "RBAC"),
            aggregate_roles=True,
            audit=audit,
            enable_plugins=(
                *(name for name in _PLUGINS if name not in disabled),
                *options.names(enable_admission_plugins),
            ),
            disable_plugins=disabled,
        )
        keeping = Keeping(directory=directory, ephemeral=ephemeral, kubeconfig=kubeconfig)
        uvloop.run(serve("up", place, settings, keeping, tokens=token_auth_file, components=COMPONENTS))
