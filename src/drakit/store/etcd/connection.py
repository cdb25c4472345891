"""The connection to etcd: several endpoints, of which one is in use until it fails.

In:  addresses and certificates.
Out: stubs to call, and StoreUnavailable in place of what gRPC raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import grpc
import msgspec
from grpc import aio

from drakit.base.errors import UsageError
from drakit.store.errors import StoreUnavailable
from drakit.store.etcd.etcd_pb2 import StatusRequest
from drakit.store.etcd.etcd_pb2_grpc import KVStub, LeaseStub, MaintenanceStub, WatchStub

T = TypeVar("T")
READ_SECONDS = 2.0
"""How long one endpoint may take to answer a read before the next one is asked."""
ELECTION_SECONDS = 6.0
"""How long all endpoints together may refuse before the quorum counts as lost: an election takes a second or two, and
a machine with too much to do may take that long as well."""
_PAUSE = 0.05
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A machine that is gone without a word is noticed by these; etcd allows no more than one in five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # An endpoint that comes back is used again soon: gRPC would wait up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # gRPC must not repeat a write by itself: whether the first one was applied is for us to find out.
    ("grpc.enable_retries", 0),
)


class EtcdAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Where etcd is and how it is reached. All keys stand below `prefix`."""

    endpoints: tuple[str, ...]
    prefix: str = "/drakit"
    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None


class EtcdMember:
    """One member of the cluster."""

    def __init__(self, address: str, channel: aio.Channel) -> None:
        self.address = address
        self.channel = channel
        self.kv = KVStub(channel)
        self.watches = WatchStub(channel)
        self.leases = LeaseStub(channel)
        self.maintenance = MaintenanceStub(channel)


class Connection:
    """Invariant: `endpoint` is the one that answered last, or the next one to be tried."""

    def __init__(self, access: EtcdAccess) -> None:
        if not access.endpoints:
            raise UsageError("etcd needs at least one endpoint")
        self._endpoints = tuple(EtcdMember(each, _channel(each, access)) for each in access.endpoints)
        self._turn = 0
        self.patience = 0.0
        """Seconds for which endpoints that refuse are asked again; each is asked once in any case."""

    @property
    def endpoint(self) -> EtcdMember:
        return self._endpoints[self._turn % len(self._endpoints)]

    def leave(self, endpoint: EtcdMember) -> None:
        """Go on with the next endpoint. Whoever found the same one broken at the same time moves nobody again."""
        if endpoint is self.endpoint:
            self._turn += 1

    async def read(self, call: Callable[[EtcdMember], Awaitable[T]]) -> T:
        """Make a call that changes nothing, on each endpoint until one answers. Raises StoreUnavailable."""
        until, asked = time.monotonic() + self.patience, 0
        while True:
            endpoint = self.endpoint
            try:
                return await call(endpoint)
            except aio.AioRpcError as error:
                if not is_passing(error):
                    raise
                self.leave(endpoint)
                asked += 1
                if asked >= len(self._endpoints) and time.monotonic() >= until:
                    raise unavailable(error) from None
            if asked % len(self._endpoints) == 0:
                await asyncio.sleep(_PAUSE)

    async def version(self) -> tuple[int, ...]:
        """The version of the member that answers, as numbers; empty when it does not tell one."""
        told = await self.read(lambda each: each.maintenance.Status(StatusRequest(), timeout=READ_SECONDS))
        parts = told.version.partition("-")[0].split(".")
        return tuple(int(each) for each in parts) if all(each.isdigit() for each in parts) else ()

    async def close(self) -> None:
        for each in self._endpoints:
            await each.channel.close()


def is_passing(error: aio.AioRpcError) -> bool:
    """Whether the same call may succeed later, or elsewhere."""
    return error.code() in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        # etcd answers UNKNOWN for every error that it does not translate into a code of gRPC.
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
    )


def unavailable(error: aio.AioRpcError) -> StoreUnavailable:
    return StoreUnavailable(f"etcd does not answer: {error.details() or error.code().name}")


def _channel(address: str, access: EtcdAccess) -> aio.Channel:
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--etcd-servers: {address!r} is not an address like http://127.0.0.1:2379")
    target = f"{parts.hostname}:{parts.port or 2379}"
    if parts.scheme == "http":
        return aio.insecure_channel(target, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(access.ca, access.key, access.certificate)
    return aio.secure_channel(target, credentials, options=_OPTIONS)
