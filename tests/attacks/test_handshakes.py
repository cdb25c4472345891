"""TLS handshakes: a flood of one address waits behind its own, and one that never ends is cut off."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.http import connections
from drakit.apiserver.http.handshakes import Handshakes
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.base.clock import RealClock
from tests.apiserver.calls import on_loop, serving


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@on_loop
async def test_few_handshakes_of_an_address_are_under_way_and_others_do_not_wait_for_them() -> None:
    handshakes, end = Handshakes(per_address=2), asyncio.Event()
    begun: list[str] = []
    several = asyncio.Event()
    sockets = [pair() for _ in range(6)]

    async def shake(address: str, ours: socket.socket) -> None:
        async with handshakes.one(ours, address):
            begun.append(address)
            if len(begun) == 3:
                several.set()
            await end.wait()

    addresses = ["mob"] * 5 + ["ann"]
    tasks = [asyncio.create_task(shake(address, ours)) for address, (ours, _) in zip(addresses, sockets, strict=True)]
    await settle()
    assert begun == []  # nobody has sent anything
    for _, theirs in sockets:
        theirs.send(b"x")
    await several.wait()  # when a socket is readable is for the kernel to say
    await settle()
    assert sorted(begun) == ["ann", "mob", "mob"]
    tasks[3].cancel()  # waits, and gives up
    end.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(begun) == ["ann", "mob", "mob", "mob", "mob"]
    assert (handshakes._begun, handshakes._waiting) == ({}, {})
    for ours, theirs in sockets:
        ours.close()
        theirs.close()


@on_loop
async def test_a_handshake_that_never_ends_is_cut_off_and_others_are_served(tmp_path: Path) -> None:
    authority = Authority(tmp_path, RealClock().now())
    trusting = ssl.create_default_context(cafile=str(authority.files.certificate))
    security = Security(authority.server(("127.0.0.1",)))
    async with serving() as api:
        bound = bind("127.0.0.1", 0)
        port = int(bound.getsockname()[1])
        async with Listener(api.server, bound, security).running():
            with patch.object(connections, "HANDSHAKE_SECONDS", 0.3):
                stalled = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
                for _, writer in stalled:
                    writer.write(b"\x16\x03\x01\x02\x00\x01")  # the first bytes of a ClientHello
                for reader, writer in stalled:
                    with suppress(ConnectionResetError):
                        assert await asyncio.wait_for(reader.read(), 60) == b""
                    writer.close()
            # With all the time that it usually has: this machine may be busy.
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.close()
