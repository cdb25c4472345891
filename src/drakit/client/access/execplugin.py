"""Credentials from a program that the kubeconfig names (`client.authentication.k8s.io`).

In:  the program, its arguments and environment, what the server is.
Out: a token or a certificate, until the time that the program says, or until the server does not believe it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from drakit.api.text.times import TimeError, parse_time
from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.client.access.credentials import bearer
from drakit.client.access.endpoint import Certificate

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_SECONDS = 60.0
_LAST_SECONDS = 1.0


class ExecCommand(msgspec.Struct, frozen=True, kw_only=True):
    """`environment` is the whole environment that it runs in, its own variables included."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    api_version: str = VERSIONS[0]
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    source: str = ""
    """Where it is named, for messages: file and field."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status


class _Held(msgspec.Struct, frozen=True):
    headers: Mapping[str, str]
    certificate: Certificate | None
    expires: datetime | None


class ExecPlugin:
    """Runs the program when its answer is needed, once however many wait for it."""

    def __init__(self, program: ExecCommand, clock: Clock, *, seconds: float = _SECONDS) -> None:
        """`seconds` is how long the program may take, by the real clock."""
        self._program = program
        self._seconds = seconds
        self._clock = clock
        self._held: _Held | None = None
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        return (await self._credential()).headers

    async def certificate(self) -> Certificate | None:
        return (await self._credential()).certificate

    def refused(self) -> bool:
        self._held = None
        return True

    async def _credential(self) -> _Held:
        if (held := self._held) is not None and self._is_good(held):
            return held
        async with self._lock:
            if (held := self._held) is None or not self._is_good(held):
                held = self._held = self._read(await self._run())
        return held

    def _is_good(self, held: _Held) -> bool:
        return held.expires is None or self._clock.now() < held.expires

    async def _run(self) -> bytes:
        program = self._program
        info: dict[str, Any] = {"interactive": False}
        if program.cluster is not None:
            info["cluster"] = program.cluster
        asked = {"apiVersion": program.api_version, "kind": "ExecCredential", "spec": info}
        environment = {**program.environment, "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                program.command,
                *program.arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            hint = f"\n{program.install_hint}" if program.install_hint else ""
            raise self._failed(f"{getattr(error, 'strerror', None) or error}{hint}") from None
        return await self._output(process)

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                output, errors = await process.communicate()
        except TimeoutError:
            await _end(process)
            raise self._failed(f"no answer within {self._seconds:g} s") from None
        except asyncio.CancelledError:
            await _end(process)
            raise
        if process.returncode:
            raise self._failed(f"exit code {process.returncode}: {errors.decode(errors='replace').strip()[-500:]}")
        return output

    def _read(self, output: bytes) -> _Held:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
            expires = parse_time(answer.status.expiration_timestamp) if answer.status.expiration_timestamp else None
        except (msgspec.DecodeError, TimeError) as error:
            raise self._failed(f"its answer is no ExecCredential: {error}") from None
        status = answer.status
        if answer.kind != "ExecCredential" or answer.api_version != self._program.api_version:
            raise self._failed(f"its answer is {answer.api_version} {answer.kind}, not {self._program.api_version}")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("its answer has a certificate without a key, or a key without a certificate")
        if not status.token and not status.client_key_data:
            raise self._failed("its answer has neither a token nor a certificate")
        certificate = None
        if status.client_key_data:
            certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        return _Held(bearer(status.token) if status.token else {}, certificate, expires)

    def _failed(self, why: str) -> Unavailable:
        where = f"{self._program.source}: " if self._program.source else ""
        return Unavailable(f"{where}{self._program.command}: {why}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a program and what it has started: whoever of them lives on would keep its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_SECONDS):
            await process.communicate()
