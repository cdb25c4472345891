"""Registration: how a kubelet gets to know the driver."""

from __future__ import annotations

from pathlib import Path

from drakit.base.names import check_dns_subdomain
from drakit.conformance.kubelet import PLUGIN_TYPE, DriverCallFailed, connected, get_info, notify
from drakit.conformance.rules import rule
from drakit.conformance.testbed import Testbed
from drakit.conformance.verdicts import Broken


@rule(
    "registration",
    "the driver registers",
    why="A kubelet calls only drivers that answer GetInfo at a socket in its registry directory within a second.",
    needs=(),
)
async def registration(bed: Testbed) -> None:
    plugin = (await bed.driver()).plugin
    if plugin.type != PLUGIN_TYPE:
        raise Broken(f"GetInfo has type {plugin.type!r} instead of {PLUGIN_TYPE!r}")
    if check_dns_subdomain(plugin.name):
        raise Broken(f"GetInfo has name {plugin.name!r}, which is no DNS subdomain")
    if plugin.endpoint and not Path(plugin.endpoint).is_absolute():
        raise Broken(f"GetInfo has endpoint {plugin.endpoint!r}, no absolute path")
    if not plugin.service_socket.is_socket():
        raise Broken(f"there is no socket at the endpoint {plugin.service_socket}")


@rule(
    "registration-repeated",
    "a second registration, and one that is refused, change nothing",
    why="A kubelet that restarts asks every driver again, and one that refuses a driver tries again later.",
)
async def registration_repeated(bed: Testbed) -> None:
    driver = await bed.driver()
    try:
        # A driver may answer a refusal with an error of its own; it must not end over it.
        await notify(driver.plugin, error="refused by drakit conformance")
    except DriverCallFailed as error:
        if error.code == "UNAVAILABLE":
            raise Broken(f"after a refused registration: {error}") from None
    await bed.clock.sleep(bed.timeouts.settle)
    if driver.process.ended:
        raise Broken(f"the driver ended after a refused registration; {driver.process.last_words()}")
    try:
        again = await get_info(driver.plugin.socket)
        await notify(again)
    except DriverCallFailed as error:
        raise Broken(f"the second time: {error}") from None
    if again != driver.plugin:
        raise Broken(f"GetInfo answered {again} after {driver.plugin}")


@rule(
    "service-versions",
    "every version that it lists is served",
    why="A kubelet takes the first version of the list that it knows and never tries another.",
)
async def service_versions(bed: Testbed) -> None:
    plugin = (await bed.driver()).plugin
    for service in plugin.services:
        async with connected(plugin, service, bed.timeouts.call) as connection:
            try:
                # A request without claims: it shows that the method is there, and changes nothing.
                answers = await connection.prepare()
                answers_too = await connection.unprepare()
            except DriverCallFailed as error:
                raise Broken(f"{service}: {error}") from None
        if answers or answers_too:
            raise Broken(f"{service}: the answer to a request without claims has entries")
