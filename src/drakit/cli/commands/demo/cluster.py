"""The cluster of the demo: a process of its own, as a user would start it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from drakit.base.errors import Unavailable

_PATIENCE = 60.0


@asynccontextmanager
async def demo_cluster(directory: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a `drakit up` that runs as long as the context is open."""
    kubeconfig = directory / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "drakit", "up", "--data-dir", str(directory / "data"), "--secure-port", "0"),
        *("--nodes", "2", "--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        await _until_up(process)
        yield kubeconfig
    finally:
        if process.returncode is None:
            process.terminate()
        # What it still says is read, so that it is not stuck in saying it.
        await process.communicate()


async def _until_up(process: asyncio.subprocess.Process) -> None:
    said = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            while process.stdout is not None and (line := await process.stdout.readline()):
                said += line
                if b"listening on" in line:
                    return
    except TimeoutError:
        raise Unavailable(f"the cluster is not up after {_PATIENCE:g} s: {said.decode()}") from None
    raise Unavailable(f"the cluster did not start: {said.decode()}")
