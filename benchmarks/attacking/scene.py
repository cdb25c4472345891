"""A server of its own process to attack, with a user who has few rights, and ways to send what nobody would send.

In:  a command line of `drakit`, and limits of the process.
Out: its URL, tokens and process, until the context ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import yaml

SECONDS = 3.0
"""How long an attack lasts at least."""
DEFAULT = "/api/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = f"{DEFAULT}/pods"
MAPS = f"{DEFAULT}/configmaps"
USERS = "of-ann,ann,1,\nof-mob,mob,2,\nof-pat,pat,3,\n"
BEATS = "beats"
_RBAC = "rbac.authorization.k8s.io"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Scene:
    """The server under attack. `mob` may do everything with pods, claims and config maps in one namespace, `pat` may
    get and patch pods there, `ann` nothing. With TLS there is no token for `admin`, and nobody has rights."""

    url: str
    admin: str
    process: subprocess.Popen[str]
    directory: Path
    first_beat: int = 0
    """Beats before it are those of the start."""

    def memory(self) -> int:
        """The most that the server has used, in MiB; nothing if it is dead."""
        if self.process.poll() is not None:
            return 0
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) // 1024 if found else 0

    def beats(self) -> list[float]:
        """CPU seconds between beats of the server's loop, since it serves."""
        made = array("d")
        with suppress(OSError, ValueError):
            made.frombytes((self.directory / BEATS).read_bytes())
        return sorted(made[self.first_beat :])

    async def connect(self) -> Streams:
        """A connection from another address of this machine than the reading client has."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        return await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))

    @asynccontextmanager
    async def session(self, token: str = "of-mob", limit: int = 100) -> AsyncIterator[Session]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(limit=limit)
        # A client with 5,000 connections must not be the one that runs out of time.
        patience = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=patience) as made:
            yield Session(made, self.url)


class Session:
    """Requests of one user."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.raw = session
        self._url = url

    async def send(self, method: str, path: str, **options: Any) -> tuple[int, bytes]:
        """The code and the body of the answer; 0 if there is none."""
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.raw.request(method, self._url + path, **options) as answer:
                return answer.status, await answer.read()
        return 0, b""

    async def patch(self, path: str, patch: object, kind: str = "merge") -> int:
        headers = {"content-type": f"application/{kind}-patch+json"}
        return (await self.send("PATCH", path, data=json.dumps(patch), headers=headers))[0]


Run = Callable[[Scene], Awaitable[str]]


@dataclass(frozen=True)
class Attack:
    """One row: a line of what was found once, with the figure of that time, and how it is done again."""

    name: str
    before: str
    run: Run
    """Attacks, and returns what was seen of it."""
    command: tuple[str, ...] = ("apiserver",)
    files: int = 0
    """How many files the server may open; 0 does not limit it."""
    secure: bool = False
    """Whether the server has TLS."""


@contextmanager
def started(
    directory: Path, command: tuple[str, ...], files: int = 0, *, secure: bool = False
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its URL."""
    tokens = directory / "tokens.csv"
    tokens.write_text(USERS)
    line = [
        sys.executable,
        "-m",
        "benchmarks.attacking.watched",
        str(directory / BEATS),
        *command,
        *(() if secure else ("--insecure",)),
        "--port",
        "0",
    ]
    line += ["--data-dir", str(directory), "--token-auth-file", str(tokens)]
    server = subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_limited(files),  # noqa: PLW1509
    )
    try:
        said = server.stdout.readline() if server.stdout is not None else ""
        yield server, re.split(r"[,\s]", said.split("listening on ")[1])[0]
    finally:
        server.terminate()
        server.wait(30)


def _limited(files: int) -> Callable[[], None] | None:
    return (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None


@asynccontextmanager
async def scene(attack: Attack) -> AsyncIterator[Scene]:
    with (
        tempfile.TemporaryDirectory() as name,
        started(Path(name), attack.command, attack.files, secure=attack.secure) as (process, url),
    ):
        kubeconfig = yaml.safe_load((Path(name) / "admin.kubeconfig").read_text())
        made = Scene(url, kubeconfig["users"][0]["user"].get("token", ""), process, Path(name))
        if made.admin:
            async with made.session(made.admin) as admin:
                await _allow(admin, "mob", ["pods", "pods/status", "configmaps", "resourceclaims"], ["*"])
                await _allow(admin, "pat", ["pods"], ["get", "patch"])
        # Beats are written twice a second: wait until those of the start are.
        await asyncio.sleep(1)
        yield replace(made, first_beat=len(made.beats()))


async def _allow(admin: Session, user: str, resources: list[str], verbs: list[str]) -> None:
    """Give a user rights in one namespace."""
    role = {"metadata": {"name": user}, "rules": [{"apiGroups": ["*"], "resources": resources, "verbs": verbs}]}
    binding: Mapping[str, object] = {
        "metadata": {"name": user}, "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": user}],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": user},
    }  # fmt: skip
    for plural, document in (("roles", role), ("rolebindings", binding)):
        await admin.send("POST", f"/apis/{_RBAC}/v1/namespaces/default/{plural}", json=document)


def pod(name: str, size: int) -> dict[str, object]:
    container = {"name": "c", "image": "i", "args": ["x" * 1000] * (size // 1000)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
