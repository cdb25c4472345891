"""Attacks below requests, and before anybody is known: handshakes, framing, tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections import Counter
from contextlib import suppress

from benchmarks.attacking.scene import DEFAULT, MAPS, SECONDS, Attack, Scene, Streams

_TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TRUSTING.check_hostname, _TRUSTING.verify_mode = False, ssl.CERT_NONE


async def secure(scene: Scene) -> Streams:
    """A connection with TLS, from another address than the reading client has."""
    host, _, port = scene.url.removeprefix("https://").partition(":")
    return await asyncio.open_connection(host, int(port), ssl=_TRUSTING, local_addr=("127.0.0.2", 0))


async def handshakes(scene: Scene) -> str:
    """50 clients shake hands and leave, again and again."""
    ends, done = time.monotonic() + SECONDS, 0

    async def some() -> None:
        nonlocal done
        while time.monotonic() < ends:
            with suppress(OSError, TimeoutError):
                _, writer = await asyncio.wait_for(secure(scene), 10)
                done += 1
                writer.transport.abort()

    await asyncio.gather(*(some() for _ in range(50)))
    return f"{done} handshakes"


async def half_handshakes(scene: Scene) -> str:
    """2,000 connections send the first bytes of a handshake, and then nothing."""
    host, _, port = scene.url.removeprefix("https://").partition(":")
    opened = []
    for _ in range(2000):
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))
            writer.write(b"\x16\x03\x01\x02\x00\x01")
            opened.append(writer)
    await asyncio.sleep(SECONDS)
    for writer in opened:
        writer.close()
    return f"{len(opened)} open"


async def slow_heads(scene: Scene) -> str:
    """1,000 connections send a header field each second, and never end."""
    opened = [await scene.connect() for _ in range(1000)]
    for number in range(int(SECONDS)):
        for _, writer in opened:
            writer.write(b"GET /healthz HTTP/1.1\r\n" if not number else b"a: b\r\n")
        await asyncio.sleep(1)
    for _, writer in opened:
        writer.close()
    return ""


async def wrong_tokens(scene: Scene) -> str:
    """50 clients, each request with another token that somebody made up."""
    codes: Counter[int] = Counter()
    ends = time.monotonic() + SECONDS

    async def some(first: int) -> None:
        async with scene.session("") as nobody:
            for number in range(first, first + 10_000):
                if time.monotonic() > ends:
                    return
                headers = {"authorization": f"Bearer {forged(number)}"}
                codes[(await nobody.send("GET", DEFAULT, headers=headers))[0]] += 1

    await asyncio.gather(*(some(10_000 * number) for number in range(50)))
    return ", ".join(f"{count} × {code}" for code, count in sorted(codes.items()))


def forged(number: int) -> str:
    claims = {"iss": "https://kubernetes.default.svc", "sub": f"system:serviceaccount:a:{number}", "exp": 1 << 40}
    parts = ({"alg": "ES256", "kid": "x"}, claims)
    coded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts]
    return ".".join((*coded, "A" * 86))


async def pipelined(scene: Scene) -> str:
    """100 connections send 2,000 requests each, and do not wait for an answer."""
    request = f"GET {DEFAULT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-mob\r\n\r\n".encode()
    opened = [await scene.connect() for _ in range(100)]
    answers = 0

    async def listen(reader: asyncio.StreamReader) -> None:
        nonlocal answers
        while data := await reader.read(65536):
            answers += data.count(b"HTTP/1.1 ")

    for _, writer in opened:
        writer.write(request * 2000)
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*(listen(reader) for reader, _ in opened))
    for _, writer in opened:
        writer.close()
    return f"{answers} answers"


async def framing(scene: Scene) -> str:
    """Bodies of chunk extensions, trailers and tiny chunks; lengths that can be read in two ways."""
    head = f"POST {MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-mob\r\n"
    chunked = f"{head}transfer-encoding: chunked\r\n\r\n".encode()
    twice = f"{head}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode()
    seen: Counter[str] = Counter()
    for sent in (chunked + b"1;" + b"x" * 3_000_000, chunked + b"0\r\n" + b"t: x\r\n" * 500_000,
                 chunked + b"1\r\na\r\n" * 400_000, twice):  # fmt: skip
        reader, writer = await scene.connect()
        writer.write(sent)
        answer = b""
        with suppress(OSError, TimeoutError):
            answer = await asyncio.wait_for(reader.read(200), 10)
        seen[answer[9:12].decode() or "closed"] += 1
        writer.close()
    return ", ".join(f"{count} × {what}" for what, count in seen.items())


ATTACKS = (
    Attack("TLS handshakes without end", "38 ms held at worst", handshakes, secure=True),
    Attack("2,000 half handshakes", "", half_handshakes, secure=True),
    Attack("1,000 heads that never end", "", slow_heads),
    Attack("tokens that somebody made up", "", wrong_tokens),
    Attack("100 × 2,000 requests at once", "", pipelined),
    Attack("bodies of framing alone", "no limit but 30 s", framing),
)
