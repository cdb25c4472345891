"""How a command reaches an API server: by flags, a kubeconfig, or the service account of its pod.

In:  flags and the environment.
Out: an Access. What is named on the command line counts; else the pod's account, inside of one; else the kubeconfig
     that kubectl would use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import ReachFlags
from drakit.client import Access, Certificate, Files, Trust, in_cluster, load_kubeconfig

_TOGETHER = "--client-certificate and --client-key go together"


def access_of(flags: ReachFlags, environment: Mapping[str, str] | None = None, clock: Clock | None = None) -> Access:
    """Raise UsageError for flags that say nothing, too much, or name files that are not there."""
    environment = os.environ if environment is None else environment
    clock = clock or RealClock()
    if flags.master:
        return _by_flags(flags, clock)
    if flags.token_file or flags.client_certificate or flags.certificate_authority:
        raise UsageError("--token-file, --client-certificate and --certificate-authority go with --master")
    if flags.kubeconfig is None and not flags.context and environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, clock=clock)
    return load_kubeconfig(
        kubeconfig_files(flags.kubeconfig, environment), flags.context, clock=clock, environment=environment
    )


def kubeconfig_files(given: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """The file that was given, else those that kubectl would read."""
    if given is not None:
        return [given]
    listed = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def _by_flags(flags: ReachFlags, clock: Clock) -> Access:
    if flags.kubeconfig is not None or flags.context:
        raise UsageError("--master says where the server is: --kubeconfig and --context do not go with it")
    if not flags.master.startswith(("https://", "http://", "unix:///")):
        raise UsageError(f"--master: expected https://HOST:PORT, http://… or unix:///PATH, got {flags.master!r}")
    if (flags.client_certificate is None) != (flags.client_key is None):
        raise UsageError(_TOGETHER)
    with explained("--certificate-authority"):
        ca = read_settings(flags.certificate_authority) if flags.certificate_authority else b""
    # Read once now, although they are read again later: a missing file is told at the start, with its flag.
    for flag, path in (
        ("--token-file", flags.token_file),
        ("--client-certificate", flags.client_certificate),
        ("--client-key", flags.client_key),
    ):
        with explained(flag):
            _ = read_settings(path) if path is not None else b""
    certificate = (lambda: _certificate(flags)) if flags.client_certificate else None
    credentials = Files(clock, token=flags.token_file, certificate=certificate)
    trust = Trust(ca=ca, insecure=flags.insecure_skip_tls_verify)
    return Access(server=flags.master, credentials=credentials, trust=trust)


def _certificate(flags: ReachFlags) -> Certificate:
    """Read anew each time: certificates are renewed while a component runs."""
    certificate, key = flags.client_certificate, flags.client_key
    if certificate is None or key is None:
        raise UsageError(_TOGETHER)
    return Certificate(read_settings(certificate), read_settings(key))
