"""Prepare: what a driver answers for claims that are good, and for claims that are not."""

from __future__ import annotations

import asyncio

import msgspec

from drakit.api import DeviceRequestAllocationResult, ResourceClaim
from drakit.conformance.cdi import spec_files
from drakit.conformance.claims import REQUEST
from drakit.conformance.kubelet import AnsweredDevice, ClaimAnswer, ClaimKey, DriverCallFailed
from drakit.conformance.rules import rule
from drakit.conformance.testbed import DriverUnderTest, Testbed
from drakit.conformance.verdicts import Broken

_NOBODY = "00000000-0000-4000-8000-000000000000"
_NEEDS = ("registration", "slices-valid", "prepare")


@rule(
    "prepare",
    "a claim is prepared",
    why="The kubelet hands the answered CDI ids to the runtime; a device that is missing never reaches the container.",
    needs=("registration", "slices-valid"),
)
async def prepare(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    _judge(await driver.prepare(claim), claim, driver)


def _judge(answer: ClaimAnswer, claim: ResourceClaim, driver: DriverUnderTest) -> None:
    """Every device that was given has to be in the answer, with pool, request and share; and no other."""
    expected = {(each.pool, each.device, _share(each, driver)) for each in own_results(claim, driver.plugin.name)}
    told = {(each.pool, each.device, each.share_id) for each in answer.devices}
    if told != expected:
        raise Broken(f"the answer has {_words(told)}; the claim was given {_words(expected)}")
    for device in answer.devices:
        if device.requests and set(device.requests) != {REQUEST}:
            raise Broken(f"{_name(device)} is answered for request {list(device.requests)} instead of {[REQUEST]}")


def own_results(claim: ResourceClaim, driver: str) -> list[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return [each for each in allocation.devices.results if each.driver == driver] if allocation else []


def _share(result: DeviceRequestAllocationResult, driver: DriverUnderTest) -> str | None:
    # The message of v1beta1 has no field for it.
    return result.share_id if driver.plugin.services[0].startswith("v1.") else None


def _name(device: AnsweredDevice) -> str:
    return f"{device.pool}/{device.device}"


def _words(devices: set[tuple[str, str, str | None]]) -> str:
    named = (
        f"{pool}/{device}{f' (share {share})' if share else ''}" for pool, device, share in sorted(devices, key=str)
    )
    return ", ".join(named) or "no device"


@rule(
    "prepare-repeated",
    "a second prepare has the same answer",
    why="A kubelet that restarts, or starts a second pod of a claim, asks again and uses the later answer.",
    needs=_NEEDS,
)
async def repeated(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    first = await driver.prepare(claim)
    files = spec_files(bed.places.cdi).keys()
    second = await driver.prepare(claim)
    _same(first, second, "the second answer")
    if spec_files(bed.places.cdi).keys() != files:
        raise Broken("the second call left other CDI files than the first")


def _same(first: ClaimAnswer, second: ClaimAnswer, what: str) -> None:
    if sorted(first.devices) != sorted(second.devices):
        raise Broken(f"{what} differs: {_devices(second)} after {_devices(first)}")


def _devices(answer: ClaimAnswer) -> str:
    return ", ".join(f"{_name(each)} {list(each.cdi_ids)}" for each in answer.devices) or "no device"


@rule(
    "prepare-concurrent",
    "two calls at once for one claim have the same answer",
    why="Two pods of one claim that start together each cause a call.",
    needs=_NEEDS,
)
async def concurrent(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    with bed.slow_claim(claim):
        calls = [asyncio.create_task(driver.prepare(claim)) for _ in range(2)]
        # A call waits for the claim inside the driver by now, so the two overlap.
        await bed.underway()
    first, second = await asyncio.gather(*calls)
    _same(first, second, "the other answer")
    _judge(first, claim, driver)


@rule(
    "prepare-subrequest",
    "a prioritized list is answered with the name of the request",
    why="The container asks for the request; devices that are answered as request/subrequest are given to nobody.",
    needs=_NEEDS,
)
async def subrequest(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim(choice=True)
    _judge(await driver.prepare(claim), claim, driver)


@rule(
    "prepare-own-devices",
    "devices of other drivers are left to them",
    why="One claim may have devices of several drivers; each is asked about the whole claim.",
    needs=_NEEDS,
)
async def own_devices(bed: Testbed) -> None:
    driver = await bed.driver()
    other = DeviceRequestAllocationResult(
        request=REQUEST, driver="other.conformance.drakit.dev", pool="other", device="other"
    )
    claim = await bed.claim(others=(other,))
    _judge(await driver.prepare(claim), claim, driver)


@rule(
    "prepare-unknown-claim",
    "a claim that does not exist is refused",
    why="The pod would run with devices that nobody gave to it.",
    needs=_NEEDS,
)
async def unknown_claim(bed: Testbed) -> None:
    await _refused(await bed.driver(), ClaimKey(bed.cluster.namespace, "no-such-claim", _NOBODY))


@rule(
    "prepare-wrong-uid",
    "a claim of the same name and another uid is refused",
    why="The claim was deleted and made again: its devices may belong to somebody else by now.",
    needs=_NEEDS,
)
async def wrong_uid(bed: Testbed) -> None:
    driver = await bed.driver()
    key = ClaimKey.of(await bed.claim())
    await _refused(driver, msgspec.structs.replace(key, uid=_NOBODY))


@rule(
    "prepare-unallocated",
    "a claim without an allocation is refused",
    why="Nobody has decided which devices it gets.",
    needs=_NEEDS,
)
async def unallocated(bed: Testbed) -> None:
    driver = await bed.driver()
    await _refused(driver, ClaimKey.of(await bed.unallocated_claim()))


async def _refused(driver: DriverUnderTest, key: ClaimKey) -> None:
    """An error for the claim, or for the whole call: both keep the pod from starting."""
    try:
        answers = await driver.connection.prepare(key)
    except DriverCallFailed as error:
        # These mean that the driver did not answer, not that it refused.
        if error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED"):
            raise Broken(f"the claim was not refused: {error}") from None
        return
    answer = answers.get(key.uid)
    if answer is None:
        raise Broken("the answer has neither an error nor an entry for the claim")
    if not answer.error:
        raise Broken(f"the claim was prepared: {_devices(answer)}")


@rule(
    "prepare-partial-failure",
    "a bad claim does not fail its neighbours",
    why="Each claim has an answer of its own, so that a pod's message names the claim that is wrong and the good "
    "claims of the call stay prepared. (Drivers made with the Go helper fail the whole call.)",
    needs=(*_NEEDS, "prepare-unknown-claim"),
)
async def partial_failure(bed: Testbed) -> None:
    driver = await bed.driver()
    good = await bed.claim()
    bad = ClaimKey(bed.cluster.namespace, "no-such-claim", _NOBODY)
    try:
        answers = await driver.connection.prepare(bad, ClaimKey.of(good))
    except DriverCallFailed as error:
        raise Broken(f"the whole call failed: {error}") from None
    missing = [uid for uid in (bad.uid, good.metadata.uid) if uid not in answers]
    if missing:
        raise Broken(f"the answer has no entry for claim {missing[0]}")
    if not answers[bad.uid].error:
        raise Broken("the claim that does not exist has no error")
    if answers[good.metadata.uid].error:
        raise Broken(f"the good claim failed, too: {answers[good.metadata.uid].error}")
    _judge(answers[good.metadata.uid], good, driver)
