"""Attacks on a running server, at full size: what other clients notice, and what it costs the server.

In:  a server of its own process on loopback, with roles; an attack; a client that reads one object all the while.
Out: per attack the 99th percentile and the worst time of those reads, and the largest memory of the server.

`python -m benchmarks attacks` runs all; `ATTACK=name` in the environment runs one, with a table of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import yaml

from benchmarks.report import publish

SECONDS = 8.0
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
USERS = "of-ann,ann,1,\nof-mob,mob,2,\n"
Attack = Callable[[str, str], Awaitable[None]]
"""Takes the URL and the token of a user who may do everything with pods, claims and config maps in one namespace."""


def pod(name: str, size: int) -> dict[str, object]:
    container = {"name": "c", "image": "i", "args": ["x" * 1000] * (size // 1000)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


async def nothing(_url: str, _token: str) -> None:
    """For comparison."""
    await asyncio.sleep(SECONDS)


async def refused_paths(url: str, _token: str) -> None:
    """Nobody asks for 20,000 different resources, then for /metrics."""
    async with aiohttp.ClientSession() as session:
        for start in range(0, 20_000, 100):
            paths = [f"{url}/apis/g{number}.example.com/v1/things{number}" for number in range(start, start + 100)]
            await asyncio.gather(*(fetch(session, "GET", path) for path in paths))


async def unread_bodies(url: str, _token: str) -> None:
    """1,000 connections without a right send 2.9 MB each."""
    body = b"x" * 2_900_000

    async def one() -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await connect(url)
            writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await asyncio.wait_for(reader.read(100), SECONDS)
            writer.close()

    for _ in range(10):
        await asyncio.gather(*(one() for _ in range(100)), return_exceptions=True)


async def many_headers(url: str, _token: str) -> None:
    """250,000 small header fields, ten times."""
    for _ in range(10):
        with suppress(OSError):
            _, writer = await connect(url)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 250_000 + b"\r\n")
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), 2)
            writer.close()


async def idle_connections(url: str, _token: str) -> None:
    """3,000 connections that say nothing."""
    opened = []
    for _ in range(3000):
        with suppress(OSError):
            opened.append(await connect(url))
    await asyncio.sleep(SECONDS)
    for _, writer in opened:
        writer.close()


async def alias_bomb(url: str, token: str) -> None:
    """1.9 MB of YAML that stand for 3.9 GB, ten times."""
    body = f"a: &a {'x' * 1_900_000}\nb: [{', '.join(['*a'] * 2000)}]".encode()
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
        for _ in range(10):
            await fetch(session, "POST", url + CLAIMS, data=body, headers={"content-type": "application/yaml"})


async def large_patches(url: str, token: str) -> None:
    """60 small patches of a pod of 1.4 MB."""
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
        await fetch(session, "POST", url + PODS, json=pod("big", 1_400_000))
        for number in range(60):
            patch = {"metadata": {"labels": {"n": str(number)}}}
            kind = {"content-type": "application/merge-patch+json"}
            await fetch(session, "PATCH", f"{url}{PODS}/big", data=json.dumps(patch), headers=kind)


async def deaf_readers(url: str, token: str) -> None:
    """60 clients ask for a list of 27 MB and do not read it."""
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
        for number in range(30):
            data = {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 900_000}}
            await fetch(session, "POST", f"{url}/api/v1/namespaces/default/configmaps", json=data)
    opened = []
    for _ in range(60):
        _, writer = await connect(url)
        head = f"GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        opened.append(writer)
    await asyncio.sleep(SECONDS)
    for writer in opened:
        writer.close()


async def one_users_flood(url: str, token: str) -> None:
    """300 requests of one user at the same time, for a while."""
    connector = aiohttp.TCPConnector(limit=300)
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}, connector=connector) as session:
        ends = time.monotonic() + SECONDS

        async def one() -> None:
            while time.monotonic() < ends:
                await fetch(session, "GET", url + PODS)

        await asyncio.gather(*(one() for _ in range(300)))


ATTACKS: tuple[Attack, ...] = (
    nothing, refused_paths, unread_bodies, many_headers, idle_connections, alias_bomb, large_patches, deaf_readers,
    one_users_flood,
)  # fmt: skip


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").partition(":")
    # Another address of this machine than the reading client has.
    return await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))


async def fetch(session: aiohttp.ClientSession, method: str, url: str, **options: object) -> int:
    with suppress(aiohttp.ClientError, TimeoutError):
        async with session.request(method, url, **options) as answer:  # type: ignore[arg-type]
            await answer.read()
            return answer.status
    return 0


async def read_meanwhile(url: str, times: list[float]) -> None:
    async with aiohttp.ClientSession(headers={"authorization": "Bearer of-ann"}) as session:
        while True:
            begun = time.perf_counter()
            code = await fetch(session, "GET", f"{url}/api/v1/namespaces/default")
            times.append(time.perf_counter() - begun if code in (200, 403) else 60.0)
            await asyncio.sleep(0.005)


def memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) // 1024 if found else 0


async def measure(attack: Attack) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as directory:
        tokens = Path(directory) / "tokens.csv"
        tokens.write_text(USERS)
        command = [sys.executable, "-m", "drakit.cli.main", "apiserver", "--insecure", "--port", "0"]
        command += ["--data-dir", directory, "--token-auth-file", str(tokens)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: ASYNC220
        try:
            return await against(server, attack, Path(directory))
        finally:
            server.terminate()
            server.wait(30)


async def against(server: subprocess.Popen[str], attack: Attack, directory: Path) -> tuple[str, ...]:
    line = server.stdout.readline() if server.stdout is not None else ""
    url = line.split("listening on ")[1].split(",")[0]
    await allow(url, yaml.safe_load((directory / "admin.kubeconfig").read_text())["users"][0]["user"]["token"])
    # In a process of its own: what keeps the attacker busy must not count as the server's time.
    reading = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.attacks", url, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(attack(url, "of-mob"), asyncio.sleep(SECONDS)), 60)
    said, _ = await reading.communicate(b"enough\n")
    lives = server.poll() is None
    times: list[float] = sorted(json.loads(said))
    slow, worst = (times[int(len(times) * 0.99) - 1], times[-1]) if times else (60.0, 60.0)
    largest = f"{memory(server.pid)} MiB" if lives else "it died"
    return (
        attack.__name__.replace("_", " "),
        str(len(times)),
        f"{slow * 1000:.0f} ms",
        f"{worst * 1000:.0f} ms",
        largest,
    )


async def allow(url: str, token: str) -> None:
    """Give the attacker's user rights in one namespace."""
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["*"], "resources": ["pods", "configmaps", "resourceclaims"], "verbs": ["*"]}]
    role = {"metadata": {"name": "mob"}, "rules": rules}
    subjects = [{"kind": "User", "apiGroup": group, "name": "mob"}]
    binding = {"metadata": {"name": "mob"}, "subjects": subjects,
               "roleRef": {"apiGroup": group, "kind": "Role", "name": "mob"}}  # fmt: skip
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
        for plural, document in (("roles", role), ("rolebindings", binding)):
            await fetch(session, "POST", f"{url}/apis/{group}/v1/namespaces/default/{plural}", json=document)


def main() -> None:
    only = os.environ.get("ATTACK", "")
    chosen = [each for each in ATTACKS if not only or each.__name__ == only]
    rows = [asyncio.run(measure(each)) for each in chosen]
    publish(
        f"attacks-{only}" if only else "attacks",
        "Reads of another client while a server is attacked (bar: 100 ms at p99, 500 ms at worst)",
        ("attack", "reads", "p99", "worst", "largest memory"),
        rows,
    )


async def read_until_told(url: str) -> None:
    """What the reading process does: it prints the seconds of each read when a line comes in."""
    times: list[float] = []
    reading = asyncio.create_task(read_meanwhile(url, times))
    await asyncio.to_thread(sys.stdin.readline)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    print(json.dumps(times))


if __name__ == "__main__":
    asyncio.run(read_until_told(sys.argv[1]))
