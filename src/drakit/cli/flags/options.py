"""Options that several commands have: what each is called, takes and says in `--help`.

In:  nothing.
Out: annotated types for the parameters of commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drakit.cli.flags.completion import complete_contexts, complete_profiles, names_of

Verbosity = Annotated[int, typer.Option("-v", "--v", min=0, max=7, help="How much to log, from 0 to 7 (bodies).")]
BindAddress = Annotated[str, typer.Option(help="Address to listen on.")]
SecurePort = Annotated[int, typer.Option("--secure-port", "--port", min=0, max=65535, help="Port; 0 is any free one.")]
UnixSocket = Annotated[Path | None, typer.Option(help="Listen on this socket instead, without TLS.")]
DataDir = Annotated[Path | None, typer.Option(help="Keep data, certificates and kubeconfig here.")]
EtcdServers = Annotated[str, typer.Option(help="Keep data in etcd: comma-separated addresses.")]
EtcdPrefix = Annotated[str, typer.Option(help="What all keys in etcd begin with.")]
EtcdCa = Annotated[Path | None, typer.Option("--etcd-cafile", help="The CA of etcd's certificates.")]
EtcdCertificate = Annotated[Path | None, typer.Option("--etcd-certfile", help="Our certificate for etcd.")]
EtcdKey = Annotated[Path | None, typer.Option("--etcd-keyfile", help="The key of that certificate.")]
EtcdCompaction = Annotated[
    float, typer.Option("--etcd-compaction-interval", min=0, help="Seconds of history in etcd; 0 keeps all.")
]
Ephemeral = Annotated[bool, typer.Option("--ephemeral", help="Keep everything in memory.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Plain HTTP.")]
WrittenKubeconfig = Annotated[Path | None, typer.Option("--kubeconfig", help="Where to write the kubeconfig.")]
TokenAuthFile = Annotated[Path | None, typer.Option(help='Lines of token,user,uid,"groups".')]
AuditLogPath = Annotated[Path | None, typer.Option(help="Append a line of JSON per request to this file.")]
AuditPolicyFile = Annotated[Path | None, typer.Option(help="What to log of whom: a Policy of audit.k8s.io/v1.")]
AuditLogMode = Annotated[
    str, typer.Option(help="When a line cannot be written: blocking counts it, blocking-strict refuses the request.")
]
EncryptionConfig = Annotated[
    Path | None, typer.Option(help="Encrypt values at rest: a file of kind EncryptionConfiguration.")
]
MaxObjectBytes = Annotated[int, typer.Option(min=1024, help="Largest object that is stored.")]
EnablePlugins = Annotated[str, typer.Option("--enable-admission-plugins", help="Comma-separated.")]
DisablePlugins = Annotated[str, typer.Option("--disable-admission-plugins", help="Comma-separated.")]
EventTTL = Annotated[
    str, typer.Option("--event-ttl", help="How long events are kept after their last write: 1h0m0s, 30m, 90s.")
]
DrakitWarnings = Annotated[
    bool | None,
    typer.Option("--drakit-warnings/--no-drakit-warnings", help="Warn of what will not do what it looks like."),
]
RuntimeConfig = Annotated[str, typer.Option(help="group/version=bool,… also api/all, api/beta, api/alpha.")]
ReadKubeconfig = Annotated[Path | None, typer.Option("--kubeconfig", help="Reach the server by this file.")]
Context = Annotated[str, typer.Option(help="The context of the kubeconfig to use.", autocompletion=complete_contexts)]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", help="The namespace; else the context's.", autocompletion=names_of("NAMESPACES")),
]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="All namespaces.")]
Profile = Annotated[
    str, typer.Option(help="The GPUs of each node, by the name of a device profile.", autocompletion=complete_profiles)
]
Master = Annotated[str, typer.Option(help="Reach the server at this URL, with the next flags.")]
TokenFile = Annotated[Path | None, typer.Option(help="A bearer token; read again as it changes.")]
CertificateAuthority = Annotated[Path | None, typer.Option(help="The CA of the server's certificate.")]
ClientCertificate = Annotated[Path | None, typer.Option(help="A certificate to be known by.")]
ClientKey = Annotated[Path | None, typer.Option(help="The key of that certificate.")]
AnyServer = Annotated[bool, typer.Option("--insecure-skip-tls-verify", help="Believe any server.")]
ShownAddress = Annotated[str, typer.Option("--bind-address", help="Address of metrics and health.")]
ShownPort = Annotated[int, typer.Option("--port", min=0, max=65535, help="Their port; 0 is any free one.")]
AllowChanges = Annotated[
    bool, typer.Option("--allow-changes", help="Let viewers of the dashboard change what they have rights to.")
]
SchedulerFile = Annotated[Path | None, typer.Option("--config", help="A KubeSchedulerConfiguration file.")]
Gates = Annotated[str, typer.Option("--feature-gates", help="Name=bool,… also AllAlpha and AllBeta.")]
MoreGates = Annotated[str, typer.Option("--feature-gates", help="Name=bool,… where every gate is on.")]


def names(text: str) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
