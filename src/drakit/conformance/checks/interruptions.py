"""Interruptions: calls that are slow or given up, drivers and machines that go and come back."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from drakit.api import ResourceClaim
from drakit.conformance.cdi import read_directory, spec_files
from drakit.conformance.kubelet import ClaimAnswer, ClaimKey, DriverCallFailed, get_info
from drakit.conformance.rules import rule
from drakit.conformance.testbed import DriverUnderTest, Testbed
from drakit.conformance.verdicts import Broken, NotApplicable

_ANSWER_SECONDS = 0.5
_NEEDS = ("registration", "slices-valid", "prepare", "unprepare")


@rule(
    "slow-call",
    "a call that takes long is answered, and keeps nobody from the registration socket",
    why="An API server under load answers late; a kubelet waits 45 s for a call, and one that restarts asks GetInfo "
    "meanwhile and takes no answer after a second.",
    needs=_NEEDS,
)
async def slow_call(bed: Testbed) -> None:
    if bed.cluster.observer is None:
        raise NotApplicable("only a server that the suite starts itself can be made slow")
    driver = await bed.driver()
    claim = await bed.claim()
    with bed.cluster.observer.holding(claim.metadata.name):
        call = asyncio.create_task(driver.prepare(claim))
        await bed.clock.sleep(bed.timeouts.slow)
        try:
            await get_info(driver.plugin.socket)
        except DriverCallFailed as error:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            raise Broken(f"while a call is under way: {error}") from None
    await call


@rule(
    "cancelled-call",
    "a call that is given up can be repeated",
    why="A kubelet gives up after 45 s and asks again; what the first call did until then must not stand in the way.",
    needs=_NEEDS,
)
async def cancelled_call(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    before = bed.files()
    with bed.slow_claim(claim):
        call = asyncio.create_task(driver.connection.prepare(ClaimKey.of(claim)))
        await bed.underway()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await _heard(bed, driver)
    await _complete(bed, driver, claim)
    await driver.unprepare(claim)
    bed.check_files(before)


async def _heard(bed: Testbed, driver: DriverUnderTest) -> None:
    """Wait until the driver has seen the cancellation: messages of one connection arrive in order.

    A driver that does one call at a time and lets none be cancelled does not answer; it has had its time then.
    """
    with suppress(DriverCallFailed):
        await driver.connection.prepare(seconds=max(bed.timeouts.settle, _ANSWER_SECONDS))


async def _complete(bed: Testbed, driver: DriverUnderTest, claim: ResourceClaim) -> ClaimAnswer:
    answer = await driver.prepare(claim)
    if not answer.devices:
        raise Broken("the claim is answered without devices")
    _resolved(bed, answer)
    return answer


def _resolved(bed: Testbed, answer: ClaimAnswer) -> None:
    """A runtime refuses a container with an id that no file has."""
    directory = read_directory(bed.places.cdi)
    for device in answer.devices:
        for identifier in device.cdi_ids:
            if not directory.find(identifier):
                raise Broken(f"no file in the CDI directory has {identifier}")


@rule(
    "restart",
    "a prepared claim survives a driver that is killed",
    why="Containers that run keep their devices; the next call for the claim must find them as they were.",
    needs=_NEEDS,
)
async def restart(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    before = bed.files()
    first = await driver.prepare(claim)
    await bed.kill(driver)
    driver = await bed.start()
    second = await _complete(bed, driver, claim)
    if sorted(first.devices) != sorted(second.devices):
        raise Broken(f"the answer after the restart is {second.devices}; before it was {first.devices}")
    await bed.kill(driver)
    driver = await bed.start()
    await driver.unprepare(claim)
    bed.check_files(before, "unprepare after a restart left CDI files behind")


@rule(
    "restart-during-prepare",
    "a driver that is killed in the middle of prepare starts again and finishes",
    why="What was written half must neither keep the driver from starting nor be taken for a prepared claim.",
    needs=_NEEDS,
)
async def restart_during_prepare(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    before = bed.files()
    with bed.slow_claim(claim):
        call = asyncio.create_task(driver.connection.prepare(ClaimKey.of(claim)))
        await bed.underway()
        # Killed while the call waits: closing the connection first would cancel the call.
        await driver.process.kill()
        await asyncio.gather(call, return_exceptions=True)
        await bed.kill(driver)
    driver = await bed.start()
    await _complete(bed, driver, claim)
    await driver.unprepare(claim)
    bed.check_files(before)


@rule(
    "reboot",
    "after a reboot, prepare writes its files again",
    why="The CDI directory is in memory and comes back empty, while the driver's own state is still on disk.",
    needs=_NEEDS,
)
async def reboot(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    answer = await driver.prepare(claim)
    if not any(each.cdi_ids for each in answer.devices):
        raise NotApplicable("the driver answers without CDI ids")
    await bed.kill(driver)
    for name in spec_files(bed.places.cdi):
        (bed.places.cdi / name).unlink()
    for socket in bed.places.root.rglob("*"):
        if socket.is_socket():
            socket.unlink()
    await _complete(bed, await bed.start(), claim)


@rule(
    "stop",
    "SIGTERM ends the driver in good order",
    why="A pod that does not end in time is killed, and a socket that is left behind keeps the kubelet dialling.",
    needs=_NEEDS,
)
async def stop(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    answer = await driver.prepare(claim)
    code = await driver.process.terminate(bed.timeouts.stop)
    if code is None:
        raise Broken(f"the driver still runs {bed.timeouts.stop:g} s after SIGTERM")
    await bed.kill(driver)
    # 0 for a driver that handles SIGTERM; -15 and 143 for one that, or whose shell, is ended by it.
    if code not in (0, -15, 143):
        raise Broken(f"the driver ended with exit code {code}; its last words: {driver.process.last_words()}")
    if driver.plugin.socket.exists():
        raise Broken(f"the registration socket {driver.plugin.socket.name} was left behind")
    _resolved(bed, answer)
