"""Attacks without any right: nobody's token, or none."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from benchmarks.attacking.scene import CLAIMS, DEFAULT, SECONDS, Attack, Scene


async def nothing(_scene: Scene) -> str:
    await asyncio.sleep(SECONDS)
    return ""


async def refused_paths(scene: Scene) -> str:
    """Nobody asks for 51,000 different resources; then /metrics is read."""

    async def some(first: int) -> None:
        reader, writer = await scene.connect()
        for number in range(first, first + 510):
            writer.write(f"GET /apis/g{number}.example.com/v1/things{number} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        writer.close()

    await asyncio.gather(*(some(510 * number) for number in range(100)))
    async with scene.session(scene.admin) as admin:
        begun = time.perf_counter()
        _, page = await admin.send("GET", "/metrics")
    return f"/metrics takes {(time.perf_counter() - begun) * 1000:.0f} ms and has {page.count(bytes([10]))} lines"


async def unread_bodies(scene: Scene) -> str:
    """1,000 connections without a right send 2.9 MB each."""
    body = b"x" * 2_900_000
    answers: list[bytes] = []

    async def one() -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await scene.connect()
            writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            answers.append((await asyncio.wait_for(reader.read(100), 30))[9:12])
            writer.close()

    for _ in range(10):
        await asyncio.gather(*(one() for _ in range(100)), return_exceptions=True)
    return f"{answers.count(b'403')} of 1,000 get 403"


async def many_headers(scene: Scene) -> str:
    """250,000 small header fields, ten times."""
    answers = []
    for _ in range(10):
        reader, writer = await scene.connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 250_000 + b"\r\n")
        with suppress(OSError, TimeoutError):
            answers.append((await asyncio.wait_for(reader.read(100), 10))[9:12].decode())
        writer.close()
    return f"answers: {' '.join(sorted(set(answers)))}"


async def idle_connections(scene: Scene) -> str:
    """1,500 connections that say nothing, to a server that may open 1,024 files."""
    opened = []
    for _ in range(1500):
        with suppress(OSError):
            opened.append(await scene.connect())
    async with scene.session("of-ann") as late:
        code, _ = await late.send("GET", DEFAULT)
    await asyncio.sleep(SECONDS)
    for _, writer in opened:
        writer.close()
    return f"who comes last is answered: {code}"


async def stalled_bodies(scene: Scene) -> str:
    """300 connections of a user send half of a body, and then nothing."""
    codes: list[bytes] = []

    async def one() -> None:
        with suppress(OSError, TimeoutError):
            reader, writer = await scene.connect()
            head = (
                f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-mob\r\ncontent-length: 2000000\r\n\r\n"
            )
            writer.write(head.encode() + b"x" * 1_000_000)
            codes.append((await asyncio.wait_for(reader.read(100), 45))[9:12])
            writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(300)))
    at_once = codes.count(b"429")
    return f"429 at once: {at_once}, 504: {codes.count(b'504')}, all gone after {time.perf_counter() - begun:.0f} s"


ATTACKS = (
    Attack("nothing", "", nothing),
    Attack("51,000 refused paths", "memory +320 MB, then /metrics blocks 12.6 s", refused_paths),
    Attack("1,000 refused bodies of 2.9 MB", "2.6 GB, kept", unread_bodies),
    Attack("250,000 header fields", "blocks 7.2 s", many_headers),
    Attack("1,500 idle connections, 1,024 files", "nobody gets in for 30 s, silently", idle_connections, files=1024),
    Attack("300 stalled bodies", "kept", stalled_bodies),
)
