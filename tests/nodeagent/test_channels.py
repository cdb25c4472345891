"""The connection to a driver, over a real socket."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from drakit.nodeagent.plugins.channels import GrpcDriver
from drakit.nodeagent.plugins.contract import V1, ClaimIdentity
from tests.nodeagent.grpcdriver import GrpcTestDriver
from tests.nodeagent.scene import on_loop

# A server closes a connection that nobody used for so long.
IDLE = (("grpc.max_connection_idle_ms", 200),)


@on_loop
async def test_a_connection_that_the_driver_closed_for_idleness_is_made_again_and_used() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with GrpcTestDriver("gpu.example.com", Path(directory), options=IDLE).running() as driver:
            peer, seen = GrpcDriver(str(driver.endpoint)), list[bool]()
            again = asyncio.Event()

            def note() -> None:
                seen.append(peer.connected)
                if seen == [True, False, True]:
                    again.set()

            peer.on_change(note)
            try:
                async with asyncio.timeout(120):
                    await again.wait()
                answers = await peer.prepare(V1, [ClaimIdentity("default", "u1", "claim")], limit=30.0)
            finally:
                await peer.close()
            assert driver.calls == [("prepare", ["claim"])]
            assert [each.device for each in answers["u1"].devices] == ["dev-claim"]
