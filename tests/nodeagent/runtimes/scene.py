"""What tests of the runtimes that run real programs share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drakit.base.clock import RealClock
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    PodIdentity,
    Runtime,
    SandboxConfig,
)
from drakit.nodeagent.runtimes.process import ProcessRuntime
from tests.builders.loop import on_loop as on_loop

POD = PodIdentity(uid="8d4f6a2e", namespace="default", name="web")


def process_runtime(base: Path, **changes: Any) -> ProcessRuntime:
    settings: dict[str, Any] = {
        "clock": RealClock(),
        "cdi": CdiRegistry([base / "cdi"]),
        "cgroups": Cgroups(f"test-{base.name}", root=base / "no-cgroups"),
    }
    return ProcessRuntime(base / "runtime", **(settings | changes))


def shell(script: str, **changes: Any) -> ContainerConfig:
    settings: dict[str, Any] = {"pod": POD, "name": "main", "command": ["sh", "-c", script], "log_path": "main/0.log"}
    return ContainerConfig(**(settings | changes))


async def create(runtime: Runtime, base: Path, config: ContainerConfig) -> str:
    """A container in a sandbox of its own, not started."""
    known = await runtime.sandboxes()
    sandbox = SandboxConfig(pod=POD, attempt=len(known), log_directory=str(base / "logs"), hostname="web")
    return await runtime.create_container(await runtime.run_sandbox(sandbox), config)


async def start(runtime: Runtime, base: Path, config: ContainerConfig) -> str:
    """A container in a sandbox of its own."""
    container = await create(runtime, base, config)
    await runtime.start_container(container)
    return container


async def find(runtime: Runtime, container_id: str) -> ContainerInfo:
    return next(container for container in await runtime.containers() if container.id == container_id)


async def end(runtime: Runtime, container_id: str) -> ContainerInfo:
    """The container once it ended by itself."""
    changes = runtime.changes()
    async with asyncio.timeout(120):
        while (info := await find(runtime, container_id)).state is not ContainerState.EXITED:
            await anext(changes)
    return info


async def run(runtime: Runtime, base: Path, config: ContainerConfig) -> tuple[ContainerInfo, str]:
    """Start it, wait for its end, and return what it wrote."""
    info = await end(runtime, await start(runtime, base, config))
    return info, output(info)


def output(info: ContainerInfo) -> str:
    """The text of a log file, without what the format adds."""
    lines = Path(info.log_path).read_text().splitlines()
    return "".join(text + "\n" * (tag == "F") for _, _, tag, text in (line.split(" ", 3) for line in lines))


async def remove_all(runtime: Runtime) -> None:
    for sandbox in await runtime.sandboxes():
        await runtime.remove_sandbox(sandbox.id)


def write_cdi(base: Path, devices: Sequence[dict[str, Any]], *, kind: str = "vendor.com/gpu", name: str = "a") -> None:
    (base / "cdi").mkdir(exist_ok=True)
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": devices}
    (base / "cdi" / f"{name}.json").write_text(json.dumps(spec))


async def written(runtime: Runtime, container: str, text: str) -> None:
    """Until the container has written it."""
    path = Path((await find(runtime, container)).log_path)
    async with asyncio.timeout(120):
        while not path.exists() or text not in path.read_text():
            await asyncio.sleep(0.01)
