"""Unprepare: everything that prepare made goes, however often and for whatever a driver is asked."""

from __future__ import annotations

from uuid import uuid4

from drakit.conformance.kubelet import ClaimKey, DriverCallFailed
from drakit.conformance.rules import rule
from drakit.conformance.testbed import Testbed
from drakit.conformance.verdicts import Broken

_NEEDS = ("registration", "slices-valid", "prepare", "unprepare")
_STUCK = "The pod stays until unprepare succeeds: a refusal would keep it for ever."


@rule(
    "unprepare",
    "a claim is unprepared and its files are gone",
    why="What is left behind gives the next container devices that are not its own.",
    needs=("registration", "slices-valid", "prepare"),
)
async def unprepare(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    before = bed.files()
    await driver.prepare(claim)
    await driver.unprepare(claim)
    bed.check_files(before)
    # A claim may be unprepared and used by another pod later.
    again = await driver.prepare(claim)
    if not again.devices:
        raise Broken("the claim cannot be prepared again after unprepare: the answer has no device")


@rule("unprepare-repeated", "a second unprepare succeeds", why=_STUCK, needs=_NEEDS)
async def repeated(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    await driver.prepare(claim)
    await driver.unprepare(claim)
    await driver.unprepare(claim)


@rule(
    "unprepare-without-prepare",
    "unprepare of a claim that was never prepared succeeds",
    why="A kubelet asks for it when prepare only ever failed. " + _STUCK,
    needs=_NEEDS,
)
async def without_prepare(bed: Testbed) -> None:
    driver = await bed.driver()
    await driver.unprepare(await bed.claim())
    nobody = ClaimKey(bed.cluster.namespace, "never-heard-of", str(uuid4()))
    try:
        answers = await driver.connection.unprepare(nobody)
    except DriverCallFailed as error:
        raise Broken(f"for a claim that does not exist: {error}") from None
    if answers.get(nobody.uid, "the answer has no entry for it"):
        raise Broken(f"a claim that does not exist: {answers.get(nobody.uid, 'the answer has no entry for it')}")


@rule(
    "unprepare-deleted-claim",
    "a claim that is gone from the API can be unprepared",
    why="A pod may be deleted by force, and its claim with it, while its devices are still prepared.",
    needs=_NEEDS,
)
async def deleted_claim(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim()
    before = bed.files()
    await driver.prepare(claim)
    await bed.delete_claim(claim)
    await driver.unprepare(claim)
    bed.check_files(before)
