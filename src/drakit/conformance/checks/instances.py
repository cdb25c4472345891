"""Two instances of the driver on one node, as in a rolling update."""

from __future__ import annotations

from drakit.conformance.kubelet import DriverCallFailed, get_info
from drakit.conformance.rules import rule
from drakit.conformance.testbed import DriverUnderTest, Testbed
from drakit.conformance.verdicts import Broken, NotApplicable


@rule(
    "two-instances",
    "a new instance takes over while the old one still runs",
    why="In a rolling update the new pod starts first; it must unprepare claims that the old one prepared.",
    needs=("registration", "slices-valid", "prepare", "unprepare", "restart"),
)
async def two_instances(bed: Testbed) -> None:
    old = await bed.driver()
    claim = await bed.claim()
    first = await old.prepare(claim)
    new = await _second(bed, old)
    second = await new.prepare(claim)
    if sorted(first.devices) != sorted(second.devices):
        raise Broken(f"the new instance answers {second.devices}; the old one answered {first.devices}")
    await old.unprepare(claim)  # calls go to either of them for as long as both are there
    await new.prepare(claim)
    await bed.stop(old)
    try:
        await get_info(new.plugin.socket)
    except DriverCallFailed as error:
        raise Broken(f"after the old instance has stopped: {error}") from None
    if not new.plugin.service_socket.is_socket():
        raise Broken("the old instance took the socket of the new one with it")
    await new.unprepare(claim)
    if not await bed.published():
        raise Broken("the old instance took the slices with it")


async def _second(bed: Testbed, old: DriverUnderTest) -> DriverUnderTest:
    try:
        return await bed.start()
    except Broken as error:
        if old.process.ended:
            raise Broken("the old instance ended when the new one started") from None
        await bed.stop(old)  # the other may have taken its sockets
        raise NotApplicable(
            f"a second instance does not register beside the first ({error}); "
            "for rolling updates give {pod_uid} to the driver and let its sockets carry it"
        ) from None
