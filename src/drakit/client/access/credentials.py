"""Ways to prove who we are.

In:  tokens and certificates, in files or out of them.
Out: Credentials. Files are read again now and then: a service account's token is replaced every hour.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.base.inputfiles import read_settings_text
from drakit.client.access.endpoint import Certificate

REREAD_SECONDS = 60.0
_NOTHING: Mapping[str, str] = {}

V = TypeVar("V")


def bearer(token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


def basic(user: str, password: str) -> Mapping[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Reread(Generic[V]):
    """A value that stands in files, at most a minute old. An unreadable file is bridged by what was read before."""

    def __init__(self, clock: Clock, read: Callable[[], V]) -> None:
        self._clock = clock
        self._read = read
        self._value: V | None = None
        self._at = 0.0

    def get(self) -> V:
        now = self._clock.monotonic()
        if self._value is None or now - self._at >= REREAD_SECONDS:
            try:
                found = self._read()
            except OSError as error:
                if self._value is None:
                    raise Unavailable(f"credentials cannot be read: {error}") from None
            else:
                if found != self._value:
                    self._value = found
            self._at = now
        if self._value is None:
            raise Unavailable("credentials cannot be read")
        return self._value

    def expire(self) -> None:
        """Read again at the next use."""
        self._at = float("-inf")


class Fixed:
    """Credentials that never change: a token or password, a certificate, both, or none."""

    def __init__(self, headers: Mapping[str, str] = _NOTHING, certificate: Certificate | None = None) -> None:
        self._headers = headers
        self._certificate = certificate

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def certificate(self) -> Certificate | None:
        return self._certificate

    def refused(self) -> bool:
        return False


class Files:
    """A token file, certificate files, or both."""

    def __init__(
        self,
        clock: Clock,
        *,
        token: Path | None = None,
        certificate: Callable[[], Certificate] | None = None,
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        self._headers = headers
        self._token = Reread(clock, lambda: bearer(_read_token(token))) if token is not None else None
        self._certificate = Reread(clock, certificate) if certificate is not None else None

    async def headers(self) -> Mapping[str, str]:
        return self._token.get() if self._token is not None else self._headers

    async def certificate(self) -> Certificate | None:
        return self._certificate.get() if self._certificate is not None else None

    def refused(self) -> bool:
        for each in (self._token, self._certificate):
            if each is not None:
                each.expire()
        return True


def _read_token(path: Path) -> str:
    """Read a token. An empty file is being replaced: it counts as unreadable."""
    token = read_settings_text(path).strip()
    if not token:
        raise OSError(f"{path}: there is no token in it")
    return token
