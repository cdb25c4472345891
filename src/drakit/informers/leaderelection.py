"""Leader election by Lease: of several replicas, one works.

In:  a client, a lease's name, an identity.
Out: `work` runs while this replica holds the lease, and is cancelled before anybody else can hold it.

Invariant: nobody compares clocks. The leader counts from the moment before it sent its last good renewal, and stops
after `renew_deadline`; a candidate counts from the moment when it saw that renewal, and waits for `lease_duration`.
The second count begins later and is longer, so there are never two leaders, as long as no clock runs faster than
another by `lease_duration / renew_deadline`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from random import Random
from typing import Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from drakit.api.objects.cluster import Lease
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_micro_time
from drakit.base.clock import Clock
from drakit.base.errors import Conflict, DrakitError, Retryable, Terminal, UsageError
from drakit.client import LEASES, AlreadyExists, Client, V
from drakit.informers.leadermetrics import LeaderMetrics

log = logging.getLogger("drakit.informers")

R = TypeVar("R")
Work = Callable[[], Awaitable[None]]


class LeaseLost(Retryable):
    """The lease could not be renewed in time; the work has been stopped."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream's defaults. `jitter`: a candidate asks again after `retry_period` and up to that many times more."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 1.2

    def check(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * self.jitter > 0:
            raise UsageError(
                f"leader election: expected lease duration ({self.lease_duration:g} s) > renew deadline "
                f"({self.renew_deadline:g} s) > retry period times {self.jitter:g} ({self.retry_period:g} s)"
            )


class LeaderElector:
    def __init__(
        self,
        client: Client,
        *,
        name: str,
        identity: str,
        namespace: str = "kube-system",
        timing: Timing | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        on_leader: Callable[[str], None] | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """`identity` is this replica's and nobody else's. `on_leader` is told whenever another one leads."""
        self.timing = timing or Timing()
        self.timing.check()
        self.identity = identity
        self.leading = False
        self._client = client
        self._name = name
        self._namespace = namespace
        self._clock = clock or client.clock
        self._random = random or Random()
        self._on_leader = on_leader
        self._seen: Partial[Lease] | None = None
        self._seen_at = 0.0
        self._renewed = 0.0
        self._in_doubt = True
        self._metrics = LeaderMetrics(registry or CollectorRegistry(), name)

    @property
    def leader(self) -> str:
        """Who led when the lease was last looked at."""
        return (self._seen.view.spec.holder_identity or "") if self._seen is not None else ""

    async def run(self, work: Work) -> None:
        """Wait for the lease, then work. Return when the work ends; raise LeaseLost when the lease is lost first.

        Cancelled, or when the work ends, the lease is given back after the work has stopped.
        """
        while not await self._acquire():
            await self._clock.sleep(self.timing.retry_period * (1 + self.timing.jitter * self._random.random()))
        log.info("%s leads by lease %s/%s", self.identity, self._namespace, self._name)
        task = asyncio.ensure_future(work())
        self._lead(True)
        try:
            await self._hold(task)
        finally:
            # In this order: the lease is given back only after the work has ended, or two replicas would work.
            await self._stop(task)
            self._lead(False)
            await self._bounded(self._release())
        task.result()

    @property
    def is_overdue(self) -> bool:
        """Whether the lease has run out and the work has not ended: nobody should count on this process."""
        return self.leading and self._clock.monotonic() > self._renewed + self.timing.lease_duration

    def _lead(self, leading: bool) -> None:
        self.leading = leading
        self._metrics.lead(leading)

    async def _hold(self, task: asyncio.Future[None]) -> None:
        """Renew until the work ends. Raise LeaseLost at the deadline, or when another one has the lease."""
        while await self._pause(task):
            while not await self._renew(task):
                if task.done():
                    return
                if self.leader != self.identity or self._left() <= 0:
                    raise LeaseLost(f"lease {self._namespace}/{self._name}: {self.identity} could not renew it in time")
                if not await self._pause(task):
                    return

    async def _pause(self, task: asyncio.Future[None]) -> bool:
        """Wait for the next try, no longer than the deadline; whether the work goes on."""
        sleeping = asyncio.ensure_future(self._clock.sleep(min(self.timing.retry_period, self._left())))
        try:
            await asyncio.wait((task, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
        return not task.done()

    async def _renew(self, task: asyncio.Future[None]) -> bool:
        return await self._bounded(self._acquire(), task) or False

    async def _bounded(self, doing: Coroutine[Any, Any, R], *others: asyncio.Future[None]) -> R | None:
        """Run a request, but not beyond the renew deadline: a server that does not answer must not keep us leading."""
        done = asyncio.ensure_future(doing)
        sleeping = asyncio.ensure_future(self._clock.sleep(self._left()))
        try:
            awaited: list[asyncio.Future[Any]] = [done, sleeping, *others]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            return done.result() if done.done() else None
        finally:
            done.cancel()
            sleeping.cancel()
            await asyncio.gather(done, sleeping, return_exceptions=True)

    async def _stop(self, task: asyncio.Future[None]) -> None:
        """Cancel the work and wait until it has ended. Its exceptions are not raised here."""
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        late = self._clock.monotonic() - self._renewed - self.timing.lease_duration
        if late > 0:
            log.error("%s worked for %.1f s after its lease had run out", self.identity, late)

    def _left(self) -> float:
        """Seconds until the work must stop, unless the lease is renewed."""
        return self._renewed + self.timing.renew_deadline - self._clock.monotonic()

    async def _acquire(self) -> bool:
        """Try once to have the lease, or to keep it."""
        # Taken before the request is sent: others count from when they see the renewal, which is later.
        begun = self._clock.monotonic()
        try:
            held = await self._write()
        except (Conflict, AlreadyExists):
            self._in_doubt = True
            return False
        except DrakitError as error:
            level = logging.WARNING if isinstance(error, Terminal) else V[2]
            log.log(level, "lease %s/%s: %s", self._namespace, self._name, error)
            return False
        if held:
            self._renewed = begun
        return held and self._left() > 0

    async def _write(self) -> bool:
        """The leader writes over what it wrote last; everybody else, and who has met another writer, looks first."""
        if self.leading and not self._in_doubt and self._seen is not None:
            self._note(await self._client.update(self._renewal(self._seen)))
            return True
        if self.leading:
            self._metrics.looked()
        found = await self._client.find(LEASES, self._name, namespace=self._namespace)
        self._in_doubt = False
        if found is None:
            return await self._create()
        self._note(found)
        if not self._may_take(found.view):
            return False
        self._note(await self._client.update(self._renewal(found)))
        return True

    async def _create(self) -> bool:
        self._seen = None
        if self.leading:
            return False  # somebody took the lease away: others may have led meanwhile
        self._note(await self._client.create(self._fresh()))
        return True

    def _may_take(self, lease: Lease) -> bool:
        holder = lease.spec.holder_identity
        if self.leading:  # whoever led in between has ended our term, also if it is over again
            return holder == self.identity
        if not holder or holder == self.identity:
            return True
        duration = float(lease.spec.lease_duration_seconds or 0)
        return self._clock.monotonic() >= self._seen_at + duration

    def _note(self, lease: Partial[Lease]) -> None:
        """Remember a lease, and since when it is as it is."""
        known, leader = self._seen, self.leader
        # By our own clock, and only when the lease moved: times in the lease are of another machine's clock.
        if known is None or known.view.metadata.resource_version != lease.view.metadata.resource_version:
            self._seen, self._seen_at = lease, self._clock.monotonic()
        if self._on_leader is not None and self.leader != leader:
            self._on_leader(self.leader)

    def _fresh(self) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {**self._claim(), "acquireTime": now, "renewTime": now, "leaseTransitions": 0},
        }

    def _renewal(self, lease: Partial[Lease]) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        spec: Mapping[str, Any] = lease.document.get("spec") or {}
        changed = {**spec, **self._claim(), "renewTime": now}
        if lease.view.spec.holder_identity != self.identity:
            changed |= {"acquireTime": now, "leaseTransitions": (lease.view.spec.lease_transitions or 0) + 1}
        return {**lease.document, "spec": changed}

    def _claim(self) -> dict[str, Any]:
        # Whole seconds on the wire: candidates may wait longer than we count, never shorter.
        return {"holderIdentity": self.identity, "leaseDurationSeconds": -int(-self.timing.lease_duration // 1)}

    async def _release(self) -> None:
        """Give the lease back, so that another replica need not wait for it to expire. Failing to do so is no error."""
        if self._seen is None or self.leader != self.identity or self._left() <= 0:
            return
        document = self._renewal(self._seen)
        document["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._client.update(document)
            log.info("%s gave back lease %s/%s", self.identity, self._namespace, self._name)
        except DrakitError as error:
            log.log(V[2], "lease %s/%s is not given back: %s", self._namespace, self._name, error)
