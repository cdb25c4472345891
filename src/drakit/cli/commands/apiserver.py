"""`drakit apiserver`: serve the Kubernetes API for dynamic resource allocation.

In:  flags, named as kube-apiserver names them where it has them.
Out: a server on a socket until it is told to stop; certificates and a kubeconfig beside its data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import uvloop

from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.nodes import NodeFiles
from drakit.apiserver.serving.access import MODES
from drakit.apiserver.serving.composition import Settings
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.flags import options
from drakit.cli.flags.groups import EtcdFlags, ServingFlags, with_groups
from drakit.cli.processes.host import ListenAddress, audit_log, directory_of, encryption_of
from drakit.cli.processes.logs import log_to_stderr
from drakit.cli.processes.server import ServerFiles, serve


@with_groups
def apiserver(
    serving: ServingFlags,
    etcd: EtcdFlags,
    client_ca_file: Annotated[Path | None, typer.Option(help="Take certificates of this CA for identities.")] = None,
    tls_cert_file: Annotated[Path | None, typer.Option(help="Serve with this certificate.")] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
    kubelet_certificate_authority: Annotated[Path | None, typer.Option(help="The CA of nodes' certificates.")] = None,
    kubelet_client_certificate: Annotated[Path | None, typer.Option(help="Ask nodes with this certificate.")] = None,
    kubelet_client_key: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
    anonymous_auth: Annotated[
        str, typer.Option(help="true or false: whether requests without credentials come in as anonymous.")
    ] = "true",
    feature_gates: options.Gates = "",
    authorization_mode: Annotated[str, typer.Option(help="Comma-separated, asked in order.")] = "Node,RBAC",
    aggregate_roles: Annotated[
        bool, typer.Option("--aggregate-roles", help="Gather the rules of aggregated roles: admin, edit, view, …")
    ] = False,
    verbosity: options.Verbosity = 0,
) -> None:
    """Serve the Kubernetes API for dynamic resource allocation."""
    log_to_stderr(verbosity)
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    place = ListenAddress(
        address=serving.bind_address,
        port=serving.secure_port,
        unix_socket=serving.unix_socket,
        insecure=serving.insecure,
        given=Pair(tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None,
        client_ca=client_ca_file,
        nodes=_node_files(kubelet_certificate_authority, kubelet_client_certificate, kubelet_client_key),
    )
    with (
        directory_of(serving) as directory,
        audit_log(serving.audit_log_path, serving.audit_policy_file, serving.audit_log_mode) as audit,
    ):
        settings = Settings(
            gates=FeatureGates.parse(feature_gates),
            runtime_config=serving.runtime_config,
            anonymous=_boolean("--anonymous-auth", anonymous_auth),
            modes=_modes(authorization_mode),
            aggregate_roles=aggregate_roles,
            audit=audit,
            encryption=encryption_of(serving.encryption_provider_config),
            largest_object=serving.max_object_bytes,
            enable_plugins=serving.enabled_plugins,
            disable_plugins=serving.disabled_plugins,
            event_ttl=serving.event_seconds,
            # Off: a Kubernetes server does not give them.
            drakit_warnings=bool(serving.drakit_warnings),
        )
        files = ServerFiles(directory=directory, ephemeral=serving.ephemeral, kubeconfig=serving.kubeconfig, etcd=etcd)
        uvloop.run(serve("apiserver", place, settings, files, tokens=serving.token_auth_file))


def _node_files(authority: Path | None, certificate: Path | None, key: Path | None) -> NodeFiles | None:
    if (certificate is None) != (key is None):
        raise UsageError("--kubelet-client-certificate and --kubelet-client-key go together")
    if authority is None and certificate is None:
        return None
    return NodeFiles(authority, Pair(certificate, key) if certificate and key else None)


def _modes(text: str) -> tuple[str, ...]:
    found = options.names(text)
    unknown = [name for name in found if name not in MODES]
    if unknown or not found:
        raise UsageError(f"--authorization-mode: unknown {text!r}; known are {', '.join(MODES)}")
    return found


def _boolean(flag: str, text: str) -> bool:
    """As Kubernetes' flags have them: `--anonymous-auth=false`."""
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{flag}: expected true or false, got {text!r}")
    return text.lower() == "true"
