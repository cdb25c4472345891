"""The cluster of the demo: a process of its own, as a user would start it, and started again when it is killed."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from drakit.base.errors import Unavailable

_PATIENCE = 60.0
_LISTENING = re.compile(rb"listening on \S+:(\d+), kubeconfig (\S+)")

Process = asyncio.subprocess.Process


class DemoCluster:
    """A `drakit up` in a directory. After the first start it keeps its port, so that clients find it again."""

    def __init__(self, directory: Path, tell: Callable[[str], None]) -> None:
        self._directory = directory
        self._tell = tell
        self._port = "0"
        self.kubeconfig = directory / "kubeconfig"
        self.pid = 0

    async def start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drakit", "up", "--data-dir", str(self._directory / "data"), "--nodes", "2"),
            *("--secure-port", self._port, "--kubeconfig", str(self.kubeconfig)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.pid = process.pid
        try:
            # The first start takes any free port; later ones keep it, so that the kubeconfig stays valid.
            self._port = await _listening(process)
        except BaseException:
            await end(process)
            raise
        return process

    async def keep(self, process: Process) -> None:
        """Until cancelled: start it again whenever it ends."""
        try:
            while True:
                # What it says is read, so that it is not stuck in saying it.
                await process.communicate()
                self._tell(f"(drakit up has ended with {process.returncode}: it is started again)")
                process = await self.start()
        finally:
            await end(process)


async def end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    await process.communicate()


@asynccontextmanager
async def demo_cluster(directory: Path, tell: Callable[[str], None]) -> AsyncIterator[DemoCluster]:
    """Up as long as the context is open."""
    cluster = DemoCluster(directory, tell)
    keeper = asyncio.create_task(cluster.keep(await cluster.start()))
    try:
        yield cluster
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper


async def _listening(process: Process) -> str:
    """The port, once it listens."""
    said = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            while process.stdout is not None and (line := await process.stdout.readline()):
                said += line
                if (found := _LISTENING.search(line)) is not None:
                    return found[1].decode()
    except TimeoutError:
        raise Unavailable(f"the cluster is not up after {_PATIENCE:g} s: {said.decode()}") from None
    raise Unavailable(f"the cluster did not start: {said.decode()}")
