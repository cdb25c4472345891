"""ConfigMaps, Secrets and tokens from a real API server, also while it is away."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from drakit.api.exchange import Request, Response
from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.client import CONFIG_MAPS, Client, ConnectionFailed, InProcess, Transport
from drakit.nodeagent.containers.failures import MountFailed
from drakit.nodeagent.containers.sources import ClientObjects
from drakit.nodeagent.runtimes.contract import PodIdentity
from drakit.store import MemoryStore


class Cuttable:
    """A way to the server that can be cut."""

    def __init__(self, inner: Transport) -> None:
        self.in_process, self.page_size = inner.in_process, inner.page_size
        self._inner = inner
        self.is_cut = False

    async def handle(self, request: Request) -> Response:
        if self.is_cut:
            raise ConnectionFailed("connection refused", sent=False)
        return await self._inner.handle(request)

    async def close(self) -> None:
        await self._inner.close()


def play(scene: Callable[[Client, ClientObjects, Cuttable], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        clock = FakeClock()
        async with MemoryStore(clock=clock) as store:
            settings = Settings(gates=FeatureGates.all_on(), random=Random(7))
            server = await build_server(store, clock=clock, settings=settings)
            line = Cuttable(InProcess(server))
            # Reads that fail are tried again by the client itself, which takes time of its clock.
            agent = Client(line, clock=Hurried())
            await scene(Client(InProcess(server), clock=clock), ClientObjects(agent), line)

    asyncio.run(whole())


class Hurried(FakeClock):
    async def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0))
        await asyncio.sleep(0)


def document(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}} | rest


def test_objects_are_read_as_bytes() -> None:
    async def scene(user: Client, objects: ClientObjects, line: Cuttable) -> None:
        binary = base64.b64encode(b"\x00\xff").decode()
        await user.create(document("ConfigMap", "settings", data={"a": "ä"}, binaryData={"b": binary}))
        await user.create(document("Secret", "key", stringData={"token": "s3cret"}))
        assert await objects.config_map("default", "settings") == {"a": "ä".encode(), "b": b"\x00\xff"}
        assert await objects.secret("default", "key") == {"token": b"s3cret"}
        assert await objects.config_map("default", "none") is None

    play(scene)


def test_while_the_server_is_away_the_last_state_counts() -> None:
    async def scene(user: Client, objects: ClientObjects, line: Cuttable) -> None:
        await user.create(document("ConfigMap", "settings", data={"a": "1"}))
        assert await objects.config_map("default", "settings") == {"a": b"1"}
        line.is_cut = True
        assert await objects.config_map("default", "settings") == {"a": b"1"}
        with pytest.raises(ConnectionFailed):
            await objects.config_map("default", "never-read")
        line.is_cut = False
        await user.delete(CONFIG_MAPS, "settings", namespace="default")
        assert await objects.config_map("default", "settings") is None

    play(scene)


def test_a_token_is_bound_to_its_pod() -> None:
    async def scene(user: Client, objects: ClientObjects, line: Cuttable) -> None:
        await user.create(document("ServiceAccount", "robot"))
        spec = {"containers": [{"name": "main", "image": "tool"}], "serviceAccountName": "robot", "nodeName": "node-a"}
        made = await user.create(document("Pod", "web", spec=spec))
        pod = PodIdentity(made.view.metadata.uid, "default", "web")
        token = await objects.token(pod, "robot", audience="vault", seconds=3600)
        claims = json.loads(base64.urlsafe_b64decode(token.text.split(".")[1] + "=="))
        assert claims["aud"] == ["vault"]
        assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": pod.uid}
        assert token.expires.timestamp() == claims["exp"]
        with pytest.raises(MountFailed, match="failed to fetch token"):
            await objects.token(pod, "nobody", audience="", seconds=3600)

    play(scene)
