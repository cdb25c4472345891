"""The class that a driver author writes.

In:  claims to prepare and unprepare.
Out: what to publish, what containers get, how healthy devices are. Everything else is done by the kit.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeVar

from drakit.base.errors import DrakitError
from drakit.client import Client
from drakit.driverkit.claims import AllocatedClaim, AllocatedDevice, PreparedClaim, PreparedDevice
from drakit.driverkit.config import DeviceConfig
from drakit.driverkit.health import HealthReport
from drakit.driverkit.pools import Published

Prepared = Mapping[str, Sequence[PreparedDevice] | Exception]
"""By claim uid: the devices, or why not."""
Unprepared = Mapping[str, Exception | None]
"""By claim uid: nothing, or why not."""

K = TypeVar("K", AllocatedClaim, PreparedClaim)
R = TypeVar("R")


class BindingFailed(DrakitError):
    """`Driver.bind` cannot make a device ready on the node: the pod is to be scheduled again, elsewhere."""

    def __init__(self, message: str, *, reason: str = "BindingFailed", condition: str = "") -> None:
        """`condition` is one of the device's binding failure conditions; without it, the first of them."""
        self.reason = reason
        self.condition = condition
        super().__init__(message)


class Kit(Protocol):
    """What a driver can tell the kit that runs it."""

    def devices_changed(self) -> None: ...

    async def update(self, uid: str, devices: Sequence[PreparedDevice]) -> None: ...


class Driver(ABC):
    """One driver on one node.

    The kit calls `prepare` only for claims that are not prepared, and remembers what it returned; a repeated call of
    the kubelet never gets here. When prepare fails for a claim, or the process dies in the middle of it, `unprepare`
    is called for that claim before anything else is done with it: cleaning up is written in one place.
    """

    name: str = ""
    """The driver's name: a DNS name of at most 63 characters, such as `gpu.example.com`."""
    configs: ClassVar[tuple[type[DeviceConfig], ...]] = ()
    """Types of configuration that claims and classes may carry for this driver."""
    serialize: ClassVar[bool] = True
    """Whether calls come one at a time. If not, calls for different claims may overlap; for one claim they never do."""
    metadata: ClassVar[bool] = False
    """Whether containers get a file with the metadata of their devices (KEP-5304)."""

    # Set by the kit before the first call.
    node_name: str = ""
    client: Client

    @abstractmethod
    def devices(self) -> Published:
        """What to publish now. Called at the start, after `changed`, and now and then."""

    @abstractmethod
    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        """Make the devices of each claim ready for containers. Return an entry per claim uid.

        Raise only when all claims failed. `each` calls a function per claim and turns what it raises into entries.
        """

    @abstractmethod
    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared | None:
        """Undo prepare for each claim, whatever there is of it: after a crash it may be half done, or done already.

        Return nothing when all went well, else an entry per claim that failed; it is tried again.
        """

    def health(self) -> AsyncIterator[Sequence[HealthReport]]:
        """Optional: yield the health of all devices, at once and whenever it changes.

        It runs as long as the driver, whether or not a kubelet listens.
        """
        raise NotImplementedError

    async def bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        """Optional, for devices with binding conditions: make the device reachable from the node that was chosen.

        When it returns, the device's binding conditions become true, and the pod is bound. Raise BindingFailed to have
        the pod scheduled again. Safe to repeat. Of a pool that several nodes reach, the chosen node's driver is asked.
        When prepare never comes, `unprepare` is called for the claim once it goes or has other devices.
        """
        raise NotImplementedError

    def changed(self) -> None:
        """Tell the kit that `devices` returns something else now."""
        if self._kit is not None:
            self._kit.devices_changed()

    async def update(self, uid: str, *devices: PreparedDevice) -> None:
        """Say more about devices of a prepared claim: its metadata files and its status follow.

        What containers got when they started stays as it is. Raise NotFound when the claim is not prepared.
        """
        if self._kit is not None:
            await self._kit.update(uid, devices)

    _kit: Kit | None = None


def overrides(driver: Driver, method: str) -> bool:
    """Whether the author wrote this optional method."""
    return getattr(type(driver), method) is not getattr(Driver, method)


async def each(claims: Sequence[K], function: Callable[[K], R | Awaitable[R]]) -> dict[str, R | Exception]:
    """Call a function for every claim, one after the other: its result or what it raised, by claim uid."""
    answers: dict[str, R | Exception] = {}
    for claim in claims:
        try:
            result = function(claim)
            answers[claim.uid] = await result if inspect.isawaitable(result) else result
        except Exception as error:
            # Kept by claim: a bad claim does not fail the others of the call.
            answers[claim.uid] = error
    return answers
