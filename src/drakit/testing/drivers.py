"""Drivers under test that are processes of their own, in any language.

In:  a command line with the placeholders of `drakit conformance`, and the node that it runs on.
Out: a process that has registered with the node's agent over real sockets. Whatever is started here is ended here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from drakit.conformance.launch import CommandLauncher, DriverPlaces, RunningDriver
from drakit.simulate.cluster import RunningNode
from drakit.simulate.registries import OpenSockets

START_SECONDS = 30.0
"""Real ones, until a driver has registered."""
_GRACE_SECONDS = 10.0
_GLANCE = 0.02


@dataclass(slots=True)
class DriverCommand:
    """How a driver is started, and where what it prints goes."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    kubeconfig: Path
    log: Path


@dataclass(slots=True)
class StartedDriver:
    """A process on a node, and the name that it registered under."""

    node: str
    name: str
    command: DriverCommand
    process: RunningDriver


class DriverProcesses:
    """Those of one cluster. Times are real: the loop flows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[StartedDriver] = []
        self._count = 0

    async def start(
        self, node: RunningNode, words: tuple[str, ...], kubeconfig: Path, environment: Mapping[str, str]
    ) -> str:
        """Return the name that the driver registered under. Raise AssertionError with its last words if it does not."""
        log = self._directory / f"driver-{self._count + 1}.log"
        return await self._launch(node, DriverCommand(words, {**os.environ, **environment}, kubeconfig, log))

    async def _launch(self, node: RunningNode, command: DriverCommand) -> str:
        name = node.machine.name
        places = DriverPlaces(kubeconfig=command.kubeconfig, node_name=name, root=self._directory / name)
        places.make()
        sockets = node.machine.sockets
        assert isinstance(sockets, OpenSockets)
        await sockets.open(places.registry, node.machine.clock)
        arrivals: list[str] = []
        node.agent.drivers.listeners.arrived.append(arrivals.append)
        self._count += 1
        launcher = CommandLauncher(command.words, command.log, command.environment)
        process = await launcher.start(places, f"instance-{self._count}")
        try:
            await _until_one(arrivals, process, command)
        except BaseException:
            await process.kill()
            raise
        finally:
            node.agent.drivers.listeners.arrived.remove(arrivals.append)
        self._started.append(StartedDriver(name, arrivals[0], command, process))
        return arrivals[0]

    async def stop(self, node: str, driver: str) -> int:
        """Ask it to end, as a rolling update does; its exit code. Raise AssertionError if it does not."""
        found = self._find(node, driver)
        code = await found.process.terminate(_GRACE_SECONDS)
        assert code is not None, f"driver {driver} does not end on SIGTERM: {found.process.last_words()}"
        self._started.remove(found)
        return code

    async def kill(self, node: str, driver: str) -> None:
        """At once; its sockets stay."""
        found = self._find(node, driver)
        await found.process.kill()
        self._started.remove(found)

    def output(self, node: str, driver: str) -> str:
        return self._find(node, driver).command.log.read_text(errors="replace")

    def _find(self, node: str, driver: str) -> StartedDriver:
        for each in reversed(self._started):
            if (each.node, each.name) == (node, driver):
                return each
        there = ", ".join(f"{each.name} on {each.node}" for each in self._started) or "none"
        raise AssertionError(f"there is no process of driver {driver} on node {node}; there is {there}")

    async def power_off(self, node: str) -> list[DriverCommand]:
        """Kill all of a node; what they were started by."""
        gone = [each for each in self._started if each.node == node]
        self._started = [each for each in self._started if each.node != node]
        for each in gone:
            await each.process.kill()
        return [each.command for each in gone]

    async def power_on(self, node: RunningNode, commands: list[DriverCommand]) -> None:
        """Start again what ran before."""
        for each in commands:
            await self._launch(node, each)

    async def close(self) -> None:
        for node in {each.node for each in self._started}:
            await self.power_off(node)


async def _until_one(arrivals: list[str], process: RunningDriver, command: DriverCommand) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + START_SECONDS
    while not arrivals and not process.ended and loop.time() < end:  # noqa: ASYNC110 - nothing tells of the end
        await asyncio.sleep(_GLANCE)
    what = "ended" if process.ended else f"has not registered within {START_SECONDS:g} s"
    assert arrivals, f"driver `{' '.join(command.words)}` {what}: {process.last_words() or 'it printed nothing'}"
