"""Run a driver until the process is told to stop.

In:  a driver, access to a server, where things are.
Out: the driver on its sockets; on SIGTERM or SIGINT, a stop in good order.
"""

from __future__ import annotations

import asyncio
import signal

from drakit.client import Access, Client
from drakit.driverkit.driver import Driver
from drakit.driverkit.plugin import KubeletPlugin, PluginSettings


def run(driver: Driver, *, access: Access, settings: PluginSettings) -> None:
    """Serve the driver until SIGTERM or SIGINT. Raise UsageError, or Unavailable."""
    asyncio.run(serve(driver, access=access, settings=settings))


async def serve(driver: Driver, *, access: Access, settings: PluginSettings) -> None:
    """As `run`, in a loop that is there already."""
    from drakit.client.transport.http import Http  # who runs in process need not load what sockets take

    async with (
        Client(Http(access), user_agent=driver.name) as client,
        KubeletPlugin(driver, client, settings).running(),
    ):
        await stop_signal()


async def stop_signal() -> None:
    """Until SIGTERM or SIGINT."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    try:
        await told.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
