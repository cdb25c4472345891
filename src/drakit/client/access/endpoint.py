"""Where a server is and who we are to it: what a kubeconfig or a pod's service account comes down to.

In:  the files of one or the other.
Out: an address, trust, credentials that renew themselves, and what else a context says.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from drakit.base.errors import UsageError


class Certificate(msgspec.Struct, frozen=True):
    """A client's certificate and key, in PEM."""

    certificate: bytes
    key: bytes


class Credentials(Protocol):
    """Credentials. Both methods are called before every request, so they cache what does not change."""

    async def headers(self) -> Mapping[str, str]:
        """What goes with every request. Raise Unavailable when the proof cannot be had right now."""
        ...

    async def certificate(self) -> Certificate | None:
        """What goes with every connection; the same object as long as it is the same certificate."""
        ...

    def refused(self) -> bool:
        """The server answered 401. Whether to retry once with fresh credentials."""
        ...


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """How to verify the server. Without a CA, the system's CAs are used."""

    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    """The name in the server's certificate, when it is not that of the address."""

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """A context for connections, with the client's certificate in it."""
        try:
            context = ssl.create_default_context(cadata=self.ca.decode() or None)
            if certificate is not None:
                _load(context, certificate)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(f"a certificate or key cannot be read: {error}") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """`server` is `https://host:port/prefix`, `http://…` or `unix:///path`."""

    server: str
    credentials: Credentials
    others: tuple[str, ...] = ()
    """Further servers of the same cluster, which take over when one does not answer."""
    trust: Trust = Trust()
    namespace: str = "default"
    headers: Mapping[str, str] = {}
    """Further headers of every request. Several values of one header are separated by line ends."""
    proxy: str = ""
    compress: bool = True


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load the certificate by a temporary file of mode 0600: Python's ssl reads certificates from files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.certificate + b"\n" + certificate.key)
        file.flush()
        context.load_cert_chain(Path(file.name))
