"""The API server: create, get, list, watch; in process and over HTTP. Run as `python -m benchmarks.apiserver`."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from benchmarks.report import publish
from drakit.api.exchange import EventStream, Request
from drakit.apiserver import Server, build_server
from drakit.store import MemoryStore, SQLiteStore

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
WRITERS = 16
CREATES = 4_000
GETS = 8_000
LISTED = 5_000
LISTS = 10
WATCHERS = 100
EVENTS = 200
COLUMNS = ("what", "where", "rate", "median", "99 %")
HEADERS = {"content-type": "application/json"}
TOKENS = 'bench,admin,1,"system:masters"\n'
ALWAYS = "host: x\r\nauthorization: Bearer bench\r\n"

Row = tuple[str, ...]
Call = Callable[[str, str, bytes], Awaitable[bytes]]


def claim(name: str) -> bytes:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    spec = {"devices": {"requests": [request]}}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
    return json.dumps(body).encode()


class Times:
    """Seconds that single calls took."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def row(self, what: str, where: str, count: int, seconds: float) -> Row:
        middle = sorted(self.all)[len(self.all) // 2]
        return what, where, f"{count / seconds:,.0f} /s", shown(middle), shown(self.late)

    @property
    def late(self) -> float:
        """The 99th percentile."""
        return sorted(self.all)[int(len(self.all) * 0.99)]


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


async def repeat(calls: list[Call], count: int, step: Callable[[Call, int], Awaitable[object]]) -> tuple[Times, float]:
    """Make `count` calls, as many at a time as there are callers."""
    times = Times()
    numbers = iter(range(count))

    async def work(call: Call) -> None:
        for number in numbers:
            start = time.perf_counter()
            await step(call, number)
            times.all.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(work(call) for call in calls))
    return times, time.perf_counter() - start


async def measure(where: str, calls: list[Call]) -> list[Row]:
    created, took = await repeat(calls, CREATES, lambda call, n: call("POST", CLAIMS, claim(f"c{n}")))
    rows = [created.row("create a claim", where, CREATES, took)]
    read, took = await repeat(calls, GETS, lambda call, n: call("GET", f"{CLAIMS}/c{n % CREATES}", b""))
    rows.append(read.row("get a claim", where, GETS, took))
    await repeat(calls, LISTED - CREATES, lambda call, n: call("POST", CLAIMS, claim(f"d{n}")))
    listed, took = await repeat(calls[:1], LISTS, lambda call, _: call("GET", CLAIMS, b""))
    rows.append(listed.row(f"list {LISTED:,} claims", where, LISTS, took))
    return rows


async def in_process(where: str, server: Server) -> list[Row]:
    async def call(method: str, path: str, body: bytes) -> bytes:
        response = await server.handle(Request(method=method, path=path, headers=HEADERS, body=body))
        if response.code >= 300:
            raise RuntimeError(response.content.encode().decode())
        return response.content.encode()

    rows = await measure(where, [call] * WRITERS)
    streams = [await _watch(server) for _ in range(WATCHERS)]
    sent, lags = [0.0] * EVENTS, Times()

    async def follow(stream: EventStream) -> None:
        seen = 0
        async for lines in stream.lines():
            now = time.perf_counter()
            for _ in lines.splitlines():
                lags.all.append(now - sent[seen])
                seen += 1
            if seen >= EVENTS:
                return

    rows.append(await fan_out(where, call, [follow(stream) for stream in streams], sent, lags))
    for stream in streams:
        await stream.close()
    return rows


async def _watch(server: Server) -> EventStream:
    revision = str(await server.context.objects.store.revision())
    query = (("watch", "1"), ("resourceVersion", revision))
    content = (await server.handle(Request(method="GET", path=CLAIMS, query=query))).content
    if not isinstance(content, EventStream):
        raise RuntimeError(content.encode().decode())
    return content


async def fan_out(where: str, call: Call, followers: list[Awaitable[None]], sent: list[float], lags: Times) -> Row:
    """Write events one by one; how long from a write to each of those who watch."""

    async def write() -> None:
        for number in range(EVENTS):
            sent[number] = time.perf_counter()
            await call("POST", CLAIMS, claim(f"w{number}"))
            await asyncio.sleep(0)  # a store in memory never waits: without this nobody could watch

    start = time.perf_counter()
    await asyncio.gather(write(), *followers)
    took = time.perf_counter() - start
    return lags.row(f"one event to {WATCHERS} watchers", where, EVENTS * WATCHERS, took)


class Connection:
    """HTTP/1.1, kept alive, with as little of a client as will do: the server is what is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def open(port: int, *, tls: ssl.SSLContext | None = None) -> Connection:
        return Connection(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 26, ssl=tls))

    async def call(self, method: str, path: str, body: bytes) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\n{ALWAYS}content-type: application/json\r\ncontent-length: {len(body)}"
        self._writer.write(head.encode() + b"\r\n\r\n" + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        data = await self._reader.readexactly(length)
        if int(answer[9:12]) >= 300:
            raise RuntimeError(data.decode())
        return data

    async def watch(self, revision: str) -> AsyncIterator[int]:
        """How many events each chunk has."""
        path = f"{CLAIMS}?watch=1&resourceVersion={revision}"
        self._writer.write(f"GET {path} HTTP/1.1\r\n{ALWAYS}\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")
        while size := int(await self._reader.readline(), 16):
            yield (await self._reader.readexactly(size + 2)).count(b'{"type":')

    def close(self) -> None:
        self._writer.close()


@contextmanager
def http_server(*arguments: str, insecure: bool = True) -> Iterator[int]:
    """A server process; its port."""
    plain = ("--insecure",) if insecure else ()
    command = [sys.executable, "-m", "drakit", "apiserver", *plain, "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield int(line.split(",")[0].rpartition(":")[2])
        finally:
            process.terminate()


async def over_http(where: str, port: int) -> list[Row]:
    connections = [await Connection.open(port) for _ in range(WRITERS)]
    rows = await measure(where, [connection.call for connection in connections])
    watching = [await Connection.open(port) for _ in range(WATCHERS)]
    sent, lags = [0.0] * EVENTS, Times()
    revision = json.loads(await connections[0].call("GET", f"{CLAIMS}?limit=1", b""))["metadata"]["resourceVersion"]

    async def follow(connection: Connection) -> None:
        seen = 0
        async for count in connection.watch(revision):
            now = time.perf_counter()
            for _ in range(count):
                lags.all.append(now - sent[seen])
                seen += 1
            if seen >= EVENTS:
                return

    rows.append(await fan_out(where, connections[0].call, [follow(each) for each in watching], sent, lags))
    for connection in (*connections, *watching):
        connection.close()
    return rows


async def run(directory: Path) -> list[Row]:
    async with MemoryStore() as memory:
        rows = await in_process("in process, memory", await build_server(memory))
    async with await SQLiteStore.open(directory / "store.db") as sqlite:
        rows += await in_process("in process, SQLite", await build_server(sqlite))
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    with http_server("--ephemeral", "--token-auth-file", str(tokens)) as port:
        rows += await over_http("HTTP, memory", port)
    with http_server("--data-dir", str(directory / "data"), "--token-auth-file", str(tokens)) as port:
        rows += await over_http("HTTP, SQLite", port)
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = uvloop.run(run(Path(directory)))
    publish("apiserver", f"The API server, {WRITERS} callers", COLUMNS, rows)


if __name__ == "__main__":
    main()
