"""Health: the stream of what the driver knows about its devices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from drakit.conformance.kubelet import HEALTH, DriverCallFailed
from drakit.conformance.launch import filled
from drakit.conformance.rules import rule
from drakit.conformance.testbed import DriverUnderTest, Testbed
from drakit.conformance.verdicts import Broken, NotApplicable
from drakit.pluginapi import health_v1alpha1_pb2

Message = health_v1alpha1_pb2.NodeWatchResourcesResponse
_VALUES = frozenset(health_v1alpha1_pb2.HealthStatus.values())


@rule(
    "health-stream",
    "the health stream tells of devices that are published",
    why="The kubelet shows it in the pod's status; it opens the stream anew whenever it restarts.",
    needs=("registration", "slices-valid"),
)
async def stream(bed: Testbed) -> None:
    driver = await bed.driver()
    async with aclosing(driver.connection.watch_health()) as first:
        _judge(await _next(bed, driver, first), await _published(bed))
        # While the first is still open: after a restart of the kubelet both exist for a while.
        async with aclosing(driver.connection.watch_health()) as second:
            _judge(await _next(bed, driver, second), await _published(bed))


async def _published(bed: Testbed) -> set[tuple[str, str]]:
    return {(each.spec.pool.name, device.name) for each in await bed.published() for device in each.spec.devices}


async def _next(
    bed: Testbed, driver: DriverUnderTest, messages: AsyncIterator[Message], *, seconds: float | None = None
) -> Message:
    """The next message. Raise NotApplicable for a driver that never said it had a stream."""
    limit = bed.timeouts.health if seconds is None else seconds
    try:
        return await asyncio.wait_for(anext(messages), limit)
    except DriverCallFailed as error:
        if error.code == "UNIMPLEMENTED" and HEALTH not in driver.plugin.versions:
            raise NotApplicable("the driver does not offer the health service") from None
        raise Broken(str(error)) from None
    except StopAsyncIteration:
        raise Broken("the stream ended by itself") from None
    except TimeoutError:
        raise Broken(f"no message within {limit:g} s") from None


def _judge(message: Message, published: set[tuple[str, str]]) -> None:
    told = [(each.device.pool_name, each.device.device_name) for each in message.devices]
    for name in told:
        if name not in published:
            raise Broken(f"it tells of device {'/'.join(name)}, which is in no slice")
        if told.count(name) > 1:
            raise Broken(f"one message tells of device {'/'.join(name)} twice")
    for each in message.devices:
        if each.health not in _VALUES:
            raise Broken(f"device {each.device.device_name} has health {each.health}, which means nothing")


@rule(
    "health-change",
    "a device that becomes sick, and well again, is told",
    why="Whoever watches the pod learns from it that the device, and not the program, is the trouble.",
    needs=("registration", "slices-valid", "health-stream"),
)
async def change(bed: Testbed) -> None:
    hints = bed.hints
    if not (hints.break_command and hints.heal_command):
        raise NotApplicable("nothing says how a device is made sick and well (--break-command, --heal-command)")
    driver = await bed.driver()
    await bed.published()
    async with aclosing(driver.connection.watch_health()) as messages:
        await _until(bed, driver, messages, _is_well, "before anything was done, a device is sick")
        await _run(bed, hints.break_command)
        await _until(bed, driver, messages, _is_sick, "no device is told to be unhealthy")
        await _run(bed, hints.heal_command)
        await _until(bed, driver, messages, _is_well, "a device is still told to be unhealthy")


async def _until(
    bed: Testbed,
    driver: DriverUnderTest,
    messages: AsyncIterator[Message],
    holds: Callable[[Message], bool],
    otherwise: str,
) -> None:
    deadline = bed.clock.monotonic() + bed.timeouts.health
    try:
        while not holds(await _next(bed, driver, messages, seconds=max(deadline - bed.clock.monotonic(), 0.1))):
            if bed.clock.monotonic() >= deadline:
                raise Broken(f"within {bed.timeouts.health:g} s: {otherwise}")
    except Broken as error:
        raise Broken(f"{otherwise}: {error}") from None


def _is_sick(message: Message) -> bool:
    return any(each.health == health_v1alpha1_pb2.UNHEALTHY for each in message.devices)


def _is_well(message: Message) -> bool:
    return not _is_sick(message)


async def _run(bed: Testbed, command: Sequence[str]) -> None:
    values = bed.places.values("")
    process = await asyncio.create_subprocess_exec(
        *(filled(each, values) for each in command), stdout=asyncio.subprocess.DEVNULL
    )
    if code := await process.wait():
        raise Broken(f"{' '.join(command)} ended with {code}")
