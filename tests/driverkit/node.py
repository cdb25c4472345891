"""A node for tests: an API server in process, a driver that notes what is asked of it, and claims to ask for."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from drakit.api import Device, ResourceClaim, ResourceSlice, from_plain
from drakit.apiserver import Server, Settings, build_server
from drakit.base.clock import Clock, RealClock
from drakit.client import CLAIMS, SLICES, Client, InProcess
from drakit.driverkit import (
    AllocatedClaim,
    ClaimRef,
    Driver,
    KubeletPlugin,
    PluginSettings,
    Prepared,
    PreparedClaim,
    PreparedDevice,
    Published,
    Unprepared,
    each,
)
from drakit.driverkit.state.files import RealFileSystem
from drakit.store import MemoryStore
from tests.builders.loop import on_loop as on_loop

NODE = "node-1"
DRIVER = "leds.example.com"
BOOT = "boot-1"
EXACTLY: Sequence[dict[str, Any]] = ({"name": "led", "exactly": {"deviceClassName": "leds"}},)


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose sockets fit into 107 bytes, which pytest's own do not."""
    with tempfile.TemporaryDirectory(prefix="dk-") as made:
        yield Path(made)


class HastyClock(RealClock):
    """Time that goes fifty times as fast."""

    def monotonic(self) -> float:
        return super().monotonic() * 50

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 50)


class Leds(Driver):
    """Notes every call; fails where it is told to."""

    name = DRIVER

    def __init__(self, count: int | str = 4) -> None:
        self.published: Published = [Device(name=f"led-{number}") for number in range(int(count))]
        self.log: list[str] = []
        self.lit: set[str] = set()
        self.prepare_fails: Callable[[AllocatedClaim], Exception | None] = lambda _: None
        self.unprepare_fails: Callable[[PreparedClaim], Exception | None] = lambda _: None

    def devices(self) -> Published:
        return self.published

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self.switch_on)

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, self.switch_off)

    def switch_on(self, claim: AllocatedClaim) -> Sequence[PreparedDevice]:
        self.log.append(f"prepare {claim}")
        assert claim.uid not in self.lit, "prepared twice"
        self.lit.add(claim.uid)
        if (error := self.prepare_fails(claim)) is not None:
            raise error
        return [device.ready(env={"LED": device.device}, device_nodes=["/dev/null"]) for device in claim.devices]

    def switch_off(self, claim: PreparedClaim) -> None:
        self.log.append(f"unprepare {claim}")
        if (error := self.unprepare_fails(claim)) is not None:
            raise error
        self.lit.discard(claim.uid)


class LedNode:
    """`root` has the directories of a kubelet."""

    def __init__(self, server: Server, client: Client, root: Path) -> None:
        self.server = server
        self.client = client
        self.root = root

    def settings(self, **changes: Any) -> PluginSettings:
        return PluginSettings(
            node_name=NODE,
            plugin_dir=self.root / "plugins",
            registry_dir=self.root / "registry",
            cdi_dir=self.root / "cdi",
            **changes,
        )

    def plugin(self, driver: Driver, *, boot_id: str = BOOT, **rest: Any) -> KubeletPlugin:
        rest.setdefault("clock", self.client.clock)
        rest.setdefault("random", Random(5))
        return KubeletPlugin(driver, rest.pop("client", self.client), self.settings(), boot_id=boot_id, **rest)

    async def claim(self, name: str = "blink", *devices: str, **changes: Any) -> ClaimRef:
        """A claim with these devices allocated; `led-0` by default."""
        document = claim_on_node(name, changes.pop("annotations", {}), changes.pop("requests", EXACTLY))
        made = await self.client.create(from_plain(ResourceClaim, document))
        status = {"allocation": node_allocation(devices or ("led-0",), **changes)}
        claim: ResourceClaim = await self.client.get(CLAIMS, name, namespace="default")
        await self.client.patch_status(claim, status)
        return ClaimRef(namespace="default", name=name, uid=made.metadata.uid)

    async def until(self, condition: Callable[[], Awaitable[object]], *, turns: int = 1000) -> None:
        """Until something is so that other tasks bring about; a condition that never holds is a failure."""
        for _ in range(turns):
            if await condition():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it never came true")

    async def slices(self) -> list[ResourceSlice]:
        return sorted(await self.client.list(SLICES), key=lambda found: found.metadata.name)

    @property
    def cdi_files(self) -> list[str]:
        return sorted(path.name for path in (self.root / "cdi").glob("*"))


def claim_on_node(
    name: str, annotations: dict[str, str], requests: Sequence[dict[str, Any]] = EXACTLY
) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"devices": {"requests": list(requests)}},
    }


def node_allocation(
    devices: Sequence[str],
    *,
    pool: str = NODE,
    driver: str = DRIVER,
    node: str = NODE,
    config: Sequence[dict[str, Any]] = (),
    results: Sequence[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    given = results or [{"request": "led", "driver": driver, "pool": pool, "device": device} for device in devices]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "devices": {"results": list(given), "config": list(config)},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }


@asynccontextmanager
async def led_plugin(driver: Leds | None = None, **rest: Any) -> AsyncIterator[tuple[LedNode, KubeletPlugin, Leds]]:
    """A node with a driver that is started, without sockets."""
    async with led_node() as node:
        driver = driver or Leds()
        plugin = node.plugin(driver, **rest)
        await plugin.start()
        yield node, plugin, driver


@asynccontextmanager
async def led_node(clock: Clock | None = None, settings: Settings | None = None) -> AsyncIterator[LedNode]:
    clock = clock or RealClock()
    async with MemoryStore(clock=clock) as store:
        server = await build_server(store, clock=clock, settings=settings or Settings(random=Random(7)))
        with short_directory() as root:
            (root / "registry").mkdir()
            async with Client(InProcess(server), clock=clock) as client:
                await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
                yield LedNode(server, client, root)


class FailingFiles(RealFileSystem):
    """Real files, of which some operations fail as a full or read-only disk makes them fail."""

    def __init__(self) -> None:
        self.fails: Callable[[str, Path], int | None] = lambda _operation, _path: None
        """The error number that an operation on a path ends with."""
        self.operations: list[tuple[str, str]] = []

    def _do(self, operation: str, path: Path) -> None:
        self.operations.append((operation, path.name))
        if (number := self.fails(operation, path)) is not None:
            raise OSError(number, os.strerror(number), str(path))

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        self._do("flush" if flush else "write", path)
        await super().write(path, content, flush=flush)

    async def remove(self, path: Path) -> None:
        self._do("remove", path)
        await super().remove(path)
