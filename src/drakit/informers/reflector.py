"""Follow one kind on a server, for ever.

In:  lists and watches of a client.
Out: for a sink, the whole state now and then (first of all, and after a gap), and every change in between, in order.

A watch that ends is taken up where it ended. Where the server has no history that far back (410), or has forgotten it
all, the state is read anew; what was deleted in between shows by not being there.
"""

from __future__ import annotations

import logging
from random import Random
from typing import Generic, Protocol, TypeVar

import msgspec

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, Unavailable
from drakit.base.status import failure
from drakit.client import (
    DELETED,
    Answered,
    Client,
    Expired,
    FutureVersion,
    Key,
    Resource,
    TooManyRequests,
    Unauthorized,
    V,
    key_of,
)
from drakit.informers.backoff import Backoff
from drakit.informers.reachability import reachability_of

log = logging.getLogger("drakit.informers")

T = TypeVar("T")
WATCH_SECONDS = 300
_SAYS_NOTHING = (Expired, FutureVersion, TooManyRequests, Unauthorized)
"""Refusals that say nothing about streaming lists: a list would meet them as well."""
_OVERLOADED = 503


class ListScope(msgspec.Struct, frozen=True, kw_only=True):
    """What part of a kind's objects to follow; all by default."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


class Sink(Protocol[T]):
    """What a reflector fills. Nothing here waits: the next event comes after the call."""

    def replace(self, objects: dict[Key, T]) -> None:
        """The complete state: objects that are not in it were deleted."""
        ...

    def put(self, obj: T) -> None:
        """An object was added or changed."""
        ...

    def remove(self, obj: T) -> None:
        """An object was deleted; this is its last state."""
        ...


class Reflector(Generic[T]):
    """Invariant: the sink has seen everything up to `version`, once and in order."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        sink: Sink[T],
        *,
        scope: ListScope | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        streaming: bool = True,
    ) -> None:
        self.resource = resource
        self.version = ""
        """Empty: the state must be read anew."""
        self._client = client
        self._sink = sink
        self._scope = scope or ListScope()
        self._clock = clock or client.clock
        self._random = random or Random()
        self._streaming = streaming
        self._in_doubt = False
        self._backoff = Backoff(self._clock, self._random)

    async def run(self) -> None:
        """Until cancelled; nothing that a server does ends it."""
        while True:
            try:
                await self._follow()
                continue
            except (Expired, FutureVersion) as error:
                log.log(V[2], "%s: reading everything anew: %s", self.resource.name, error)
                self.version = ""
            except Unavailable as error:
                reachability_of(self._client).failed(error)
                log.log(V[2], "%s: %s", self.resource.name, error)
            except DrakitError as error:
                log.warning("%s cannot be followed right now: %s", self.resource.name, error)
            except Exception:
                log.exception("%s cannot be followed right now", self.resource.name)
            self._in_doubt = True
            await self._clock.sleep(self._backoff.failed())

    async def _follow(self) -> None:
        """Fetch the state if it is not known, then watch until the watch ends."""
        if self.version:
            if self._in_doubt:
                await self._check_memory()
            await self._watch()
        elif self._streaming:
            await self._stream_state()
        else:
            await self._list_state()
            await self._watch()

    async def _check_memory(self) -> None:
        """After a failure, check the server's revision. If it is behind ours, the server lost its data: list again."""
        scope = self._scope
        # With its selectors: a node may not list the pods of others.
        current = await self._client.current_version(
            self.resource, namespace=scope.namespace, labels=scope.labels, fields=scope.fields
        )
        if current.isdigit() and self.version.isdigit() and int(current) < int(self.version):
            raise FutureVersion(failure(504, "Timeout", f"the server went back from {self.version} to {current}"))

    async def _list_state(self) -> None:
        scope = self._scope
        found = await self._client.list(
            self.resource, namespace=scope.namespace, labels=scope.labels, fields=scope.fields
        )
        # The sink first: `version` says what the sink has seen, and may never run ahead of it.
        self._sink.replace({key_of(obj): obj for obj in found})
        self.version = found.resource_version

    async def _stream_state(self) -> None:
        """Read the state by a watch. A server that refuses this, in whatever way, is listed from then on.

        A server on an older etcd answers 200 and then sends an ERROR with code 500.
        """
        try:
            await self._watch(initial=True)
        except Answered as error:
            if self.version or isinstance(error, _SAYS_NOTHING) or error.status.code == _OVERLOADED:
                raise
            log.log(V[2], "%s: no streaming lists here: %s", self.resource.name, error)
            self._streaming = False
            await self._follow()

    async def _watch(self, *, initial: bool = False) -> None:
        begun, count = self._clock.monotonic(), 0
        state: dict[Key, T] | None = {} if initial else None
        async with self._client.watch(
            self.resource,
            namespace=self._scope.namespace,
            labels=self._scope.labels,
            fields=self._scope.fields,
            since=self.version,
            initial=initial,
            # Random, so that the watches of many components do not all end in the same moment.
            seconds=int(WATCH_SECONDS * (1 + self._random.random())),
        ) as changes:
            put, remove = self._sink.put, self._sink.remove
            self._in_doubt = False
            reachability_of(self._client).succeeded()
            async for change in changes:
                count += 1
                if state is not None:
                    if change.initial_end:
                        self._sink.replace(state)
                        state, self.version = None, change.resource_version
                    elif change.object is not None:
                        state[key_of(change.object)] = change.object
                    continue
                if change.object is not None:
                    if change.type == DELETED:
                        remove(change.object)
                    else:
                        put(change.object)
                self.version = change.resource_version
        if state is not None:
            self._streaming = False  # the server takes the parameters, but does not do what they say
        # A proxy may accept a watch and end it at once: without a failure here, no backoff would slow the loop.
        if not count and self._clock.monotonic() - begun < 1.0:
            raise Unavailable("the watch ended as soon as it had begun")
