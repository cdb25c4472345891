"""How a command reaches an API server: by flags, a kubeconfig, or the service account of its pod.

In:  flags and the environment.
Out: an Access. What is named on the command line counts; else the pod's account, inside of one; else the kubeconfig
     that kubectl would use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.cli.host import explained
from drakit.client import Access, Certificate, Files, Trust, in_cluster, load_kubeconfig

_TOGETHER = "--client-certificate and --client-key go together"


class ServerFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags say."""

    kubeconfig: Path | None = None
    context: str = ""
    master: str = ""
    token_file: Path | None = None
    certificate_authority: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    insecure_skip_tls_verify: bool = False

    def access(self, environment: Mapping[str, str] | None = None, clock: Clock | None = None) -> Access:
        """Raise UsageError for flags that say nothing, too much, or name files that are not there."""
        environment = os.environ if environment is None else environment
        clock = clock or RealClock()
        if self.master:
            return self._by_flags(clock)
        if self.token_file or self.client_certificate or self.certificate_authority:
            raise UsageError("--token-file, --client-certificate and --certificate-authority go with --master")
        if self.kubeconfig is None and not self.context and environment.get("KUBERNETES_SERVICE_HOST"):
            return in_cluster(environment, clock=clock)
        return load_kubeconfig(self._files(environment), self.context, clock=clock, environment=environment)

    def _files(self, environment: Mapping[str, str]) -> list[Path]:
        if self.kubeconfig is not None:
            return [self.kubeconfig]
        listed = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
        return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]

    def _by_flags(self, clock: Clock) -> Access:
        if self.kubeconfig is not None or self.context:
            raise UsageError("--master says where the server is: --kubeconfig and --context do not go with it")
        if not self.master.startswith(("https://", "http://", "unix:///")):
            raise UsageError(f"--master: expected https://HOST:PORT, http://… or unix:///PATH, got {self.master!r}")
        if (self.client_certificate is None) != (self.client_key is None):
            raise UsageError(_TOGETHER)
        with explained("--certificate-authority"):
            ca = self.certificate_authority.read_bytes() if self.certificate_authority else b""
        for flag, path in (
            ("--token-file", self.token_file),
            ("--client-certificate", self.client_certificate),
            ("--client-key", self.client_key),
        ):
            with explained(flag):
                _ = path.read_bytes() if path is not None else b""
        certificate = self._certificate if self.client_certificate else None
        credentials = Files(clock, token=self.token_file, certificate=certificate)
        trust = Trust(ca=ca, insecure=self.insecure_skip_tls_verify)
        return Access(server=self.master, credentials=credentials, trust=trust)

    def _certificate(self) -> Certificate:
        certificate, key = self.client_certificate, self.client_key
        if certificate is None or key is None:
            raise UsageError(_TOGETHER)
        return Certificate(certificate.read_bytes(), key.read_bytes())
