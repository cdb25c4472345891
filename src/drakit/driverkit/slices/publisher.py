"""Keep the server's slices as the driver's devices are.

In:  the driver's pools, whenever they change; the server's slices, whenever somebody changes them.
Out: slices. What others edit or delete is put back at once, with growing pauses if they insist. Prepare never waits for
     any of this.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge

from drakit.api import OwnerReference, ResourceSlice, ResourceSliceSpec, set_defaults
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, Forbidden, InvalidObject, Terminal, Unavailable
from drakit.base.fields import FieldError, duplicate
from drakit.base.fields import Path as FieldPath
from drakit.client import NODES, SLICES, Client, NotFound, V
from drakit.driverkit.calls.inventory import PublishedDevices
from drakit.driverkit.pools import DevicePool
from drakit.driverkit.slices.dropped import dropped_fields
from drakit.driverkit.slices.plan import Publication, SlicePlan, desired_slices, plan_pool
from drakit.driverkit.state.files import FileSystem, LockFile
from drakit.driverkit.state.locks import try_hold
from drakit.informers import Backoff, Controller, Informers, ListScope, Result
from drakit.validation import validate_create

log = logging.getLogger("drakit.driverkit")

RESYNC = 600.0
"""Seconds after which everything is compared again, whether anything has happened or not."""
_SECOND_LOOK = 60.0
"""Seconds until what cannot be published is tried again without a word of the driver."""
_TURN = 1.0
_KEY = "slices"
_DEVICES = FieldPath("spec") / "devices"


class SlicePublisher:
    def __init__(
        self,
        client: Client,
        inventory: PublishedDevices,
        *,
        driver: str,
        node_name: str,
        clock: Clock,
        registry: CollectorRegistry,
        random: Random | None = None,
        files: FileSystem,
        remembered: Path,
        lock: Path,
    ) -> None:
        """`remembered` is a file with the names of shared pools; `lock` one by which instances agree who publishes."""
        self._client = client
        self._inventory = inventory
        self._driver = driver
        self._node_name = node_name
        self._clock = clock
        self._lock = lock
        self._files = files
        self._remembered = remembered
        self._informers = Informers(client, clock=clock, random=random)
        self._controller: Controller[str] = Controller(f"slices of {driver}", self._reconcile, clock=clock)
        self._owner: OwnerReference | None = None
        self._published: tuple[DevicePool, ...] | None = None
        self._shared: set[str] | None = None
        """Pools that we have published ever and that other nodes reach too; none before they are read."""
        self._stored: dict[str, tuple[ResourceSliceSpec, ResourceSliceSpec]] = {}
        """By slice name: what was sent last, and what the server made of it."""
        self._repairs = Backoff(clock, random or Random(), first=1.0)
        self._no_repair_before = 0.0
        self.problem = ""
        """Why the slices are not as they should be; empty when they are."""
        self.dropped: set[str] = set()
        """Fields that the server does not keep."""
        self._writes = Counter(
            "drakit_driver_slice_writes",
            "Writes of ResourceSlices.",
            ("driver_name", "verb"),
            registry=registry,
        )
        self._devices = Gauge(
            "drakit_driver_published_devices",
            "Devices that are published.",
            ("driver_name",),
            registry=registry,
        ).labels(driver)

    def trigger(self) -> None:
        """Compare and write soon, without waiting for the next change."""
        self._controller.queue.add(_KEY)

    async def run(self) -> None:
        """Until cancelled; of several instances, only the one that holds the lock publishes."""
        async with self._turn():
            self._watch(ListScope(fields=f"spec.driver={self._driver},spec.nodeName={self._node_name}"))
            self.trigger()
            self._informers.start()
            try:
                await self._controller.run()
            finally:
                await self._informers.stop()

    async def publish(self) -> SlicePlan:
        """Compare and write, once. Raise what keeps it from being done."""
        pools = self._inventory.refresh()
        self._check(pools)
        return await self._bring_about(pools)

    async def remove(self) -> None:
        """Delete every slice that this driver has published for its node."""
        shared = await self._follow_shared(self._published or ())
        for found in await self._current(shared):
            await self._delete(found)

    # The loop

    async def _reconcile(self, _: str) -> Result:
        try:
            pools = self._inventory.refresh()
            self._check(pools)
            if pools == self._published and (wait := self._no_repair_before - self._clock.monotonic()) > 0:
                return Result.after(wait)
            is_repair = pools == self._published
            plan = await self._bring_about(pools)
        except DrakitError as error:
            self.problem = str(error)
            if isinstance(error, NotFound):  # a slice went while it was written: a kubelet that starts wipes them
                return Result.retry()
            if not isinstance(error, Terminal) or isinstance(error, Forbidden):
                raise
            log.error("the slices stay as they are: %s", error)
            return Result.after(_SECOND_LOOK)
        except Exception as error:
            self.problem = f"devices() failed: {error}"
            raise
        # Somebody else changes our slices. Wait longer each time, or two writers would fight without end.
        if is_repair and plan:
            self._no_repair_before = self._clock.monotonic() + self._repairs.failed()
        return Result.after(RESYNC)

    async def _bring_about(self, pools: Sequence[DevicePool]) -> SlicePlan:
        before, self._published = self._published, tuple(pools)
        shared = await self._follow_shared(pools)
        if before != self._published:
            log.log(V[2], "publishing pools=%d devices=%d", len(pools), sum(len(each.devices) for each in pools))
        current = await self._current(shared)
        plan = SlicePlan()
        who = await self._who(pools, fresh=not current)
        for pool in pools:
            of_pool = [each for each in current if each.spec.pool.name == pool.name]
            plan += plan_pool(pool, of_pool, who, same=self._is_stored)
        names = {pool.name for pool in pools}
        plan += SlicePlan(delete=tuple(each for each in current if each.spec.pool.name not in names))
        await self._carry_out(plan)
        self.problem = ""
        self._devices.set(sum(len(pool.devices) for pool in pools))
        return plan

    async def _current(self, shared: Collection[str]) -> list[ResourceSlice]:
        """The slices from the server, not from a cache: they include what was just written."""
        local = await self._client.list(SLICES, fields=f"spec.driver={self._driver},spec.nodeName={self._node_name}")
        if not shared:
            return list(local)
        every = await self._client.list(SLICES, fields=f"spec.driver={self._driver}")
        return [*local, *(each for each in every if not each.spec.node_name and each.spec.pool.name in shared)]

    async def _carry_out(self, plan: SlicePlan) -> None:
        # Deletes come last: the new generation is complete before anything of the old one goes.
        for wanted in plan.create:
            self._learn(wanted, await self._client.create(wanted))
            self._writes.labels(self._driver, "create").inc()
        for wanted in plan.update:
            self._learn(wanted, await self._client.update(wanted))
            self._writes.labels(self._driver, "update").inc()
        for found in plan.delete:
            await self._delete(found)

    async def _delete(self, found: ResourceSlice) -> None:
        try:
            # With uid and resourceVersion: a slice that somebody wrote meanwhile is looked at again, not deleted.
            await self._client.delete(
                SLICES, found.metadata.name, uid=found.metadata.uid, resource_version=found.metadata.resource_version
            )
        except NotFound:
            return
        self._stored.pop(found.metadata.name, None)
        self._writes.labels(self._driver, "delete").inc()

    def _learn(self, sent: ResourceSlice, stored: ResourceSlice) -> None:
        self._stored[stored.metadata.name] = (sent.spec, stored.spec)
        for path in dropped_fields(sent, stored):
            if path not in self.dropped:
                log.warning("the server does not keep %s: the feature gate for it is off there", path)
                self.dropped.add(path)

    def _is_stored(self, wanted: ResourceSliceSpec, found: ResourceSlice) -> bool:
        """Whether a slice of the server is what it makes of `wanted`: with defaults, or as it stored it last time.

        A server that drops fields stores something else than was sent; that must not count as a difference.
        """
        filled = set_defaults(ResourceSlice(spec=wanted), self._clock.now()).spec
        return filled == found.spec or self._stored.get(found.metadata.name) == (wanted, found.spec)

    # Around it

    def _check(self, pools: Sequence[DevicePool]) -> None:
        if pools != self._published:
            check_pools(pools, Publication(driver=self._driver, node_name=self._node_name), self._clock.now())

    def _watch(self, scope: ListScope) -> None:
        self._informers.of(SLICES, scope).subscribe(lambda _old, _new: self.trigger())

    async def _follow_shared(self, pools: Sequence[DevicePool]) -> Collection[str]:
        """Names of the shared pools of this node, from earlier processes too: their slices do not name the node."""
        known = self._shared if self._shared is not None else await self._read_shared()
        shared = known | {pool.name for pool in pools if not pool.is_local}
        if shared and not self._shared:
            self._watch(ListScope(fields=f"spec.driver={self._driver}"))
        # On disk before the slices are created: after a crash somebody must know that they are ours.
        if shared != known:
            await self._files.write(self._remembered, msgspec.json.encode(sorted(shared)))
        self._shared = shared
        return shared

    async def _read_shared(self) -> set[str]:
        content = await self._files.read(self._remembered)
        try:
            return msgspec.json.decode(content or b"[]", type=set[str])
        except msgspec.DecodeError as error:
            log.error("%s is damaged, and is begun anew: %s", self._remembered, error)
            return set()

    async def _who(self, pools: Sequence[DevicePool], *, fresh: bool) -> Publication:
        """The node is looked up once; and again when its slices are gone, since it may be another one by now."""
        if any(pool.is_local for pool in pools) and (self._owner is None or fresh):
            node = await self._client.find(NODES, self._node_name)
            if node is None:
                raise Unavailable(f"node {self._node_name} does not exist yet")
            self._owner = OwnerReference(
                api_version="v1", kind="Node", name=self._node_name, uid=node.view.metadata.uid, controller=True
            )
        return Publication(driver=self._driver, node_name=self._node_name, owner=self._owner)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Until another instance on this node, if there is one, has ended."""
        held = await self._hold(self._lock)
        try:
            yield
        finally:
            held.close()

    async def _hold(self, lock: Path) -> LockFile:
        told = ""
        while True:
            try:
                held = try_hold(self._files, lock)
            except OSError as error:
                held, why = None, f"the lock {lock} cannot be used: {error.strerror}"
            else:
                why = "another instance publishes the slices; waiting for it to end"
            if held is not None:
                return held
            if why != told:
                log.warning("%s", why)
            told = why
            await self._clock.sleep(_TURN)


def check_pools(pools: Sequence[DevicePool], who: Publication, now: datetime) -> None:
    """What a server would refuse, with the pool and the device. Raise InvalidObject."""
    for pool in pools:
        names = [device.name for device in pool.devices]
        errors: list[FieldError] = []
        for each in desired_slices(pool, who):
            errors.extend(validate_create(set_defaults(each, now)))
        if errors:
            raise InvalidObject("ResourceSlice", f"pool {pool.name}", errors)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidObject("ResourceSlice", f"pool {pool.name}", [duplicate(_DEVICES, twice)])
