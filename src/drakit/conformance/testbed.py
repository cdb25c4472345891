"""What a check has at hand: a driver that runs and is registered, its slices, claims with its devices.

In:  a cluster, a way to start the driver, directories.
Out: everything that a check makes is undone after it; after a check that failed the driver starts from nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import msgspec

from drakit.api import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from drakit.base.clock import Clock
from drakit.client import CLAIMS, SLICES, NotFound
from drakit.conformance.cdi import spec_files
from drakit.conformance.claims import PublishedDevice, allocated, claim_for, claim_with_choice, published_devices
from drakit.conformance.cluster import DriverCluster
from drakit.conformance.kubelet import (
    ClaimAnswer,
    ClaimKey,
    DriverCallFailed,
    PluginConnection,
    RegisteredPlugin,
    RegistryWatch,
    notify,
)
from drakit.conformance.launch import DriverPlaces, Launcher, RunningDriver
from drakit.conformance.pools import incomplete_pools
from drakit.conformance.settings import DriverHints, Timeouts
from drakit.conformance.verdicts import Broken, NotApplicable

_POLL_SECONDS = 0.05
_MOMENT_SECONDS = 0.2
_READ_SECONDS = 3.0  # a driver that reads claims from a cache of its own never comes


class DriverUnderTest(msgspec.Struct, frozen=True):
    """One process of the driver, registered; `connection` speaks the version that a kubelet would choose."""

    process: RunningDriver
    plugin: RegisteredPlugin
    connection: PluginConnection

    async def prepare(self, claim: ResourceClaim) -> ClaimAnswer:
        """The answer for that claim. Raise Broken if there is none, or an error."""
        key = ClaimKey.of(claim)
        try:
            answers = await self.connection.prepare(key)
        except DriverCallFailed as error:
            raise Broken(str(error)) from None
        if key.uid not in answers:
            raise Broken(f"the answer has no entry for the claim: {_keys(answers)} instead of {key.uid}")
        if answers[key.uid].error:
            raise Broken(f"a claim that should be prepared was refused: {answers[key.uid].error}")
        return answers[key.uid]

    async def unprepare(self, claim: ResourceClaim) -> None:
        """Raise Broken if the claim has no entry in the answer, or an error."""
        key = ClaimKey.of(claim)
        try:
            answers = await self.connection.unprepare(key)
        except DriverCallFailed as error:
            raise Broken(str(error)) from None
        if key.uid not in answers:
            raise Broken(f"the answer has no entry for the claim: {_keys(answers)} instead of {key.uid}")
        if answers[key.uid]:
            raise Broken(f"unprepare was refused: {answers[key.uid]}")


def _keys(answers: dict[str, Any]) -> str:
    return ", ".join(sorted(answers)) or "nothing"


class Testbed:
    """Invariant: `_instances` are the processes that run, `_claims` those that exist in the cluster."""

    __test__ = False  # pytest would take it for a test

    def __init__(
        self,
        cluster: DriverCluster,
        launcher: Launcher,
        places: DriverPlaces,
        *,
        clock: Clock,
        timeouts: Timeouts,
        hints: DriverHints,
    ) -> None:
        self.cluster = cluster
        self.places = places
        self.clock = clock
        self.timeouts = timeouts
        self.hints = hints
        self.driver_name = ""
        """Known once the driver has registered."""
        self._launcher = launcher
        self._registry = RegistryWatch(places.registry, clock)
        self._instances: list[DriverUnderTest] = []
        self._claims: list[ResourceClaim] = []
        self._numbers = count(1)
        self._waits_in_vain = False
        """Set once pools stayed incomplete until the timeout, so that later checks do not wait again."""

    # The driver

    async def driver(self) -> DriverUnderTest:
        """The instance that runs; a new one when there is none. Raise Broken if it does not register."""
        if self._instances and not self._instances[-1].process.ended:
            return self._instances[-1]
        return await self.start()

    async def start(self, *, further: Sequence[str] = (), pod_uid: str = "") -> DriverUnderTest:
        """Start one more instance and register it, as a kubelet would when its socket appears."""
        self.places.make()
        # Sockets of instances that run already: only a new one can be that of this instance.
        present = [each.plugin.socket for each in self._instances if not each.process.ended]
        process = await self._launcher.start(self.places, pod_uid or str(uuid4()), further)
        try:
            plugin = await self._registered(process, present)
        except BaseException:
            await process.kill()
            raise
        self.driver_name = plugin.name
        connection = PluginConnection(plugin.service_socket, plugin.services[0], self.timeouts.call)
        instance = DriverUnderTest(process, plugin, connection)
        self._instances.append(instance)
        return instance

    async def _registered(self, process: RunningDriver, present: Sequence[Any]) -> RegisteredPlugin:
        deadline = self.clock.monotonic() + self.timeouts.start
        found: RegisteredPlugin | str = ""
        while isinstance(found, str):
            found = await self._registry.wait(0.0, exclude=present)
            if isinstance(found, str) and (process.ended or self.clock.monotonic() >= deadline):
                how = "ended" if process.ended else f"did not register within {self.timeouts.start:g} s"
                raise Broken(f"the driver {how}: {found}{_said(process)}")
            await self.clock.sleep(_POLL_SECONDS)
        if not found.services:
            raise Broken(f"none of its versions {list(found.versions)} is one that a kubelet knows")
        try:
            await notify(found)
        except DriverCallFailed as error:
            raise Broken(str(error)) from None
        return found

    async def stop(self, instance: DriverUnderTest) -> None:
        """SIGTERM, and SIGKILL if that is not heeded."""
        await self._leave(instance)
        if not instance.process.ended:
            await instance.process.terminate(self.timeouts.stop)
        await instance.process.kill()

    async def kill(self, instance: DriverUnderTest) -> None:
        await self._leave(instance)
        await instance.process.kill()

    async def kill_all(self) -> None:
        for instance in list(self._instances):
            await self.kill(instance)

    def crashed(self) -> str:
        """What is known of an instance that nobody has ended; empty when all is well."""
        for instance in self._instances:
            if instance.process.ended:
                return f"the driver has ended by itself{_said(instance.process)}"
        return ""

    async def _leave(self, instance: DriverUnderTest) -> None:
        await instance.connection.close()
        if instance in self._instances:
            self._instances.remove(instance)

    # Slices

    async def slices(self) -> list[ResourceSlice]:
        """What the driver has published for this node, or for more than this node."""
        found = await self.cluster.client.list(SLICES, fields=f"spec.driver={self.driver_name}")
        mine = (None, "", self.cluster.node_name)
        return sorted((each for each in found if each.spec.node_name in mine), key=lambda each: each.metadata.name)

    async def published(self) -> list[ResourceSlice]:
        """The slices once every pool is complete; what is there when that takes too long."""
        await self.driver()
        self._waits_in_vain |= not await self.until(self._is_published, self.timeouts.publish)
        return await self.slices()

    async def _is_published(self) -> bool:
        if self.cluster.observer is not None and self.cluster.observer.refused_slices:
            return True  # it will not become better by waiting
        slices = await self.slices()
        return bool(slices) and (self._waits_in_vain or not incomplete_pools(slices))

    async def until(self, holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        """Whether it came to hold within that time."""
        deadline = self.clock.monotonic() + seconds
        while not await holds():
            if self.clock.monotonic() >= deadline:
                return False
            await self.clock.sleep(_POLL_SECONDS)
        return True

    # Claims

    async def device(self) -> PublishedDevice:
        """A device for a claim. Raise NotApplicable if none is published that can be used on the node."""
        wanted, cluster = self.hints.devices, self.cluster
        found = [each for each in published_devices(await self.published()) if not wanted or each.device.name in wanted]
        if not found:
            named = f" named {' or '.join(wanted)}" if wanted else ""
            raise NotApplicable(f"the driver has published no device{named}")
        for each in found:
            if each.is_reached_from(cluster.node_name, cluster.node_labels):
                return each
        raise NotApplicable(f"no device that is published can be reached from node {cluster.node_name} (--node-label)")

    async def claim(
        self, *, choice: bool = False, others: Sequence[DeviceRequestAllocationResult] = ()
    ) -> ResourceClaim:
        """A claim that has been given a device of the driver."""
        chosen = await self.device()
        made = await self.unallocated_claim(choice=choice)
        given = allocated(
            made,
            chosen,
            driver=self.driver_name,
            node_name=self.cluster.node_name,
            parameters=self.hints.parameters,
            others=others,
        )
        return await self.cluster.client.update_status(given)

    async def unallocated_claim(self, *, choice: bool = False) -> ResourceClaim:
        make = claim_with_choice if choice else claim_for
        name = f"conformance-{next(self._numbers)}-{uuid4().hex[:6]}"
        made = await self.cluster.client.create(make(name, self.cluster.namespace))
        self._claims.append(made)
        return made

    def files(self) -> frozenset[str]:
        """The names of the CDI files that are there now."""
        return frozenset(spec_files(self.places.cdi))

    def check_files(self, before: Collection[str], what: str = "CDI files were left behind") -> None:
        """Raise Broken when there are files that were not there before."""
        if left := sorted(self.files() - set(before)):
            raise Broken(f"{what}: {', '.join(left)}")

    @contextmanager
    def slow_claim(self, claim: ResourceClaim) -> Iterator[None]:
        """Whoever reads the claim waits, if the server is ours; a given one cannot be made slow."""
        if self.cluster.observer is None:
            yield
            return
        with self.cluster.observer.holding(claim.metadata.name):
            yield

    async def underway(self) -> None:
        """Let calls that were begun come as far as the API server, or a moment into the driver."""
        observer = self.cluster.observer
        if observer is None:
            await self.clock.sleep(_MOMENT_SECONDS)
            return

        async def waits() -> bool:
            return observer.waiting > 0

        await self.until(waits, _READ_SECONDS)

    async def delete_claim(self, claim: ResourceClaim) -> None:
        """Remove it from the cluster, as it is removed when nobody uses it any more."""
        kept = await self.cluster.client.find(CLAIMS, claim.metadata.name, namespace=claim.metadata.namespace)
        if kept is not None:
            # Deallocated first, as the claim controller does it.
            emptied = msgspec.structs.replace(kept, status=type(kept.status)())
            await self.cluster.client.update_status(emptied)
            await self.cluster.client.delete(CLAIMS, claim.metadata.name, namespace=claim.metadata.namespace)

    # Afterwards

    async def clean(self) -> None:
        """Undo what a check made: claims are unprepared if anybody can, and deleted."""
        for claim in self._claims:
            # Only the newest: after an update the kubelet talks to that one.
            for instance in self._instances[-1:]:
                try:
                    await instance.connection.unprepare(ClaimKey.of(claim))
                except DriverCallFailed:
                    break
            try:
                await self.delete_claim(claim)
            except NotFound:
                continue
        self._claims.clear()
        for instance in self._instances[:-1]:
            await self.stop(instance)

    async def reset(self) -> None:
        """Forget the driver with all that it has written: the next check starts from nothing."""
        await self.kill_all()
        for each in (self.places.plugins, self.places.registry, self.places.cdi):
            shutil.rmtree(each, ignore_errors=True)
        await self._delete_slices()
        if self.cluster.observer is not None:
            self.cluster.observer.refused_slices.clear()

    async def _delete_slices(self) -> None:
        """Delete the slices of the driver. In a given cluster only those of this node: shared pools may be in use."""
        for slice_ in await self.slices() if self.driver_name else ():
            if slice_.spec.node_name or self.cluster.observer is not None:
                try:
                    await self.cluster.client.delete(SLICES, slice_.metadata.name)
                except NotFound:
                    continue


def _said(process: RunningDriver) -> str:
    words = process.last_words()
    return f"; its last words: {words}" if words else ""


@asynccontextmanager
async def running_testbed(testbed: Testbed) -> AsyncIterator[Testbed]:
    """What the testbed started ends with the context; the files and slices that it made go too."""
    try:
        yield testbed
    except BaseException:
        # Whoever interrupts does not wait for a driver that may hang; its process comes first.
        await testbed.kill_all()
        raise
    finally:
        await testbed.clean()
        await testbed.reset()
