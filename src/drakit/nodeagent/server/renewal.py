"""Certificates of a running server follow their files.

In:  the files, and whoever can issue them anew.
Out: new connections get the new certificate; those that are open go on.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from drakit.base.clock import Clock
from drakit.base.errors import UsageError

log = logging.getLogger("drakit.nodeagent.server")

LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class NodeCertificates:
    """Files: the node's certificate with its key, and the CA of those who may call with a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    renew: Callable[[datetime], object] | None = None
    """Issue the files anew if they end soon. Without it, somebody else replaces them, and the node notices."""

    def context(self) -> ssl.SSLContext:
        """Raise UsageError for a file that is not what it should be."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """From now on, serve with what is in the files now. Raise UsageError."""
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                # Optional, as callers may come with a token instead. A certificate of another CA is still refused.
                context.verify_mode = ssl.CERT_OPTIONAL
        except OSError as error:
            files = ", ".join(str(path) for path in (self.certificate, self.key, self.client_ca) if path)
            raise UsageError(f"the node's server cannot use its certificates ({files}): {error}") from None

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Changes with the files."""
        return tuple((each.stat().st_mtime_ns, each.stat().st_ino) for each in (self.certificate, self.key))


class CertificateRenewal:
    """Looks once a minute."""

    def __init__(self, certificates: NodeCertificates, context: ssl.SSLContext, clock: Clock) -> None:
        self._certificates = certificates
        self._context = context
        self._clock = clock
        self._loaded = certificates.stamp()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await asyncio.to_thread(self.look)
            except (OSError, ValueError, UsageError) as error:
                # Half of a new pair may be there already: the old one serves on until the other half is.
                log.warning("the node's certificate is not renewed: %s", error)

    def look(self) -> None:
        """Renew what ends soon, and take what is new. Raise OSError, ValueError, UsageError."""
        if self._certificates.renew is not None:
            self._certificates.renew(self._clock.now())
        stamp = self._certificates.stamp()
        if stamp != self._loaded:
            # A context may be loaded while it is in use: handshakes that begin later use the new certificate.
            self._certificates.load(self._context)
            self._loaded = stamp
            log.info("the node serves with a new certificate: %s", self._certificates.certificate)
