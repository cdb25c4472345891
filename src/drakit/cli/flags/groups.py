"""Groups of flags that several commands have.

In:  a command whose parameters are flags and groups of them.
Out: the same command with every flag of each group as a parameter of its own, as the command line needs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, get_type_hints

import msgspec

from drakit.base.errors import UsageError
from drakit.cli.flags import options
from drakit.scheduler.config.durations import seconds

Command = Callable[..., None]


class FlagGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group: each field is a flag, with its type, help and default."""


class ServingFlags(FlagGroup, frozen=True, kw_only=True):
    """How an API server of this machine listens, what it keeps, and what it admits."""

    bind_address: options.BindAddress = "127.0.0.1"
    secure_port: options.SecurePort = 6443
    unix_socket: options.UnixSocket = None
    data_dir: options.DataDir = None
    ephemeral: options.Ephemeral = False
    insecure: options.Insecure = False
    kubeconfig: options.WrittenKubeconfig = None
    token_auth_file: options.TokenAuthFile = None
    audit_log_path: options.AuditLogPath = None
    audit_policy_file: options.AuditPolicyFile = None
    audit_log_mode: options.AuditLogMode = "blocking"
    encryption_provider_config: options.EncryptionConfig = None
    max_object_bytes: options.MaxObjectBytes = 1536 * 1024
    enable_admission_plugins: options.EnablePlugins = ""
    disable_admission_plugins: options.DisablePlugins = ""
    runtime_config: options.RuntimeConfig = ""
    drakit_warnings: options.DrakitWarnings = None
    event_ttl: options.EventTTL = "1h0m0s"

    @property
    def event_seconds(self) -> float:
        """Raise UsageError for what is no length of time, or none at all."""
        length = seconds(self.event_ttl)
        if length is None or length <= 0:
            raise UsageError(f"--event-ttl: expected a length of time such as 1h0m0s, got {self.event_ttl!r}")
        return length

    @property
    def enabled_plugins(self) -> tuple[str, ...]:
        return options.names(self.enable_admission_plugins)

    @property
    def disabled_plugins(self) -> tuple[str, ...]:
        return options.names(self.disable_admission_plugins)


class EtcdFlags(FlagGroup, frozen=True, kw_only=True):
    """Where etcd is, for servers that share it. Named as kube-apiserver names them."""

    etcd_servers: options.EtcdServers = ""
    etcd_prefix: options.EtcdPrefix = "/drakit"
    etcd_cafile: options.EtcdCa = None
    etcd_certfile: options.EtcdCertificate = None
    etcd_keyfile: options.EtcdKey = None
    etcd_compaction_interval: options.EtcdCompaction = 300.0


class ReachFlags(FlagGroup, frozen=True, kw_only=True):
    """Where an API server is, and who we are to it. `drakit.cli.flags.access` reads them."""

    kubeconfig: options.ReadKubeconfig = None
    context: options.Context = ""
    master: options.Master = ""
    token_file: options.TokenFile = None
    certificate_authority: options.CertificateAuthority = None
    client_certificate: options.ClientCertificate = None
    client_key: options.ClientKey = None
    insecure_skip_tls_verify: options.AnyServer = False


def with_groups(command: Command) -> Command:
    """The command with its groups spread out. The help shows the flags in the order of the parameters."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if inspect.isclass(hint) and issubclass(hint, FlagGroup)}

    @wraps(command)
    def spread(**values: Any) -> None:
        made = {
            name: group(**{field: values.pop(field) for field in group.__struct_fields__})
            for name, group in groups.items()
        }
        command(**values, **made)

    parameters = list(_parameters(command, hints, groups))
    # typer reads both, and would look through a wrapper to what it wraps.
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in parameters}
    del spread.__wrapped__
    return spread


def _parameters(
    command: Command, hints: dict[str, Any], groups: dict[str, type[FlagGroup]]
) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            yield from _flags(groups[parameter.name])
        else:
            yield parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)


def _flags(group: type[FlagGroup]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for name, default in zip(group.__struct_fields__, group.__struct_defaults__, strict=True):
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
