"""Credentials of a service account that we may ask tokens for.

In:  a client that may create tokens (and accounts), the account's namespace and name.
Out: a token of that account, asked for anew before it runs out, or when the server does not believe it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from drakit.api.text.times import parse_time
from drakit.client.access.credentials import bearer
from drakit.client.access.endpoint import Certificate
from drakit.client.client import Client
from drakit.client.failures import AlreadyExists, NotFound
from drakit.client.subresources import IssuedToken, request_token

SECONDS = 3600
_EARLY = 0.8
"""The part of a token's life after which the next one is asked for."""


class AccountToken:
    """Invariant: however many requests wait for a token, it is asked for once."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._headers: Mapping[str, str] = {}
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        async with self._lock:
            if self._client.clock.monotonic() >= self._until:
                await self._renew()
        return self._headers

    async def certificate(self) -> Certificate | None:
        return None

    def refused(self) -> bool:
        self._until = 0.0
        return True

    async def _renew(self) -> None:
        clock = self._client.clock
        begun, now = clock.monotonic(), clock.now()
        try:
            token = await self._ask()
        except NotFound:
            await self._create()
            token = await self._ask()
        self._headers = bearer(token.token)
        self._until = begun + _EARLY * (parse_time(token.expires) - now).total_seconds()

    async def _ask(self) -> IssuedToken:
        return await request_token(self._client, self._name, namespace=self._namespace, seconds=SECONDS)

    async def _create(self) -> None:
        about = {"name": self._name, "namespace": self._namespace}
        try:
            await self._client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
        except AlreadyExists:
            return
