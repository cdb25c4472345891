"""A driver process that dies in the middle: `python -m tests.driverkit.victim`.

In:  a line of JSON per life: where the server is, which directory, and at which step to die.
Out: a line with the process id when a life begins, and one with how it ended.

Lives are forked from one process that has imported everything: a life begins in a moment. What the driver switches on
is a file, so that it survives as hardware does; switching on what is on is an error.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from drakit.api import Device
from drakit.api.exchange import Request, Response
from drakit.client import Access, Client, Fixed, Trust
from drakit.client.transport.http import Http
from drakit.driverkit import (
    AllocatedClaim,
    Driver,
    KubeletPlugin,
    PluginSettings,
    Prepared,
    PreparedClaim,
    PreparedDevice,
    Unprepared,
    each,
)
from drakit.driverkit.entry import stop_signal
from drakit.driverkit.state.files import RealFileSystem


class Life(msgspec.Struct):
    url: str
    root: Path
    dies_at: int = 0
    """The number of the step that is the last one; 0 lives on."""
    dies_in: str = "calls"
    devices: int = 4


class Steps:
    """Counts; and kills the process as `kill -9` does."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._done = 0

    def take(self, kind: str, name: str) -> None:
        if kind != self._life.dies_in:
            return
        self._done += 1
        with (self._life.root / "steps").open("a") as noted:
            noted.write(f"{name}\n")
        if self._done == self._life.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingFiles(RealFileSystem):
    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        self._steps.take("calls", f"before writing {path.suffix}")
        await super().write(path, content, flush=flush)
        self._steps.take("calls", f"after writing {path.suffix}")

    async def remove(self, path: Path) -> None:
        self._steps.take("calls", f"before removing {path.suffix}")
        await super().remove(path)
        self._steps.take("calls", f"after removing {path.suffix}")


class DyingHttp(Http):
    def __init__(self, access: Access, steps: Steps) -> None:
        super().__init__(access)
        self._steps = steps

    async def handle(self, request: Request) -> Response:
        if request.method == "GET":
            return await super().handle(request)
        self._steps.take("publish", f"before {request.method}")
        response = await super().handle(request)
        self._steps.take("publish", f"after {request.method}")
        return response


class Switches(Driver):
    name = "leds.example.com"

    def __init__(self, life: Life, steps: Steps) -> None:
        self._life = life
        self._steps = steps

    def devices(self) -> list[Device]:
        return [Device(name=f"led-{number}") for number in range(self._life.devices)]

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._on)

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, self._off)

    def _on(self, claim: AllocatedClaim) -> Sequence[PreparedDevice]:
        self._steps.take("calls", "before switching on")
        (self._life.root / "lit" / claim.uid).touch(exist_ok=False)
        self._steps.take("calls", "after switching on")
        return [device.ready(env={"LED": device.device}) for device in claim.devices]

    def _off(self, claim: PreparedClaim) -> None:
        self._steps.take("calls", "before switching off")
        (self._life.root / "lit" / claim.uid).unlink(missing_ok=True)
        self._steps.take("calls", "after switching off")


async def live(life: Life) -> None:
    steps = Steps(life)
    settings = PluginSettings(
        node_name="node-1",
        plugin_dir=life.root / "plugins",
        registry_dir=life.root / "registry",
        cdi_dir=life.root / "cdi",
    )
    access = Access(server=life.url, credentials=Fixed(), trust=Trust())
    async with Client(DyingHttp(access, steps)) as client:
        plugin = KubeletPlugin(Switches(life, steps), client, settings, files=DyingFiles(steps), boot_id="b")
        async with plugin.running():
            (life.root / "ready").touch()
            await stop_signal()


def main() -> None:
    for line in sys.stdin:
        life = msgspec.json.decode(line, type=Life, dec_hook=lambda kind, value: kind(value))
        child = os.fork()
        if not child:
            asyncio.run(live(life))
            os._exit(0)
        print(json.dumps({"pid": child}), flush=True)
        _, ended = os.waitpid(child, 0)
        print(json.dumps({"ended": os.waitstatus_to_exitcode(ended)}), flush=True)


if __name__ == "__main__":
    main()
