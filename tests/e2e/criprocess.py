"""A CRI runtime in a process of its own: `python -m tests.e2e.criprocess DIRECTORY`, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from tests.nodeagent.runtimes.criserver import CriServer, Script


async def serve(base: Path) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with CriServer(base, Script(images={"tiny"})) as server:
        print(f"listening on {server.socket}", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
