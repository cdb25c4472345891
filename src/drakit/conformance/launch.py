"""Start the driver under test, and end it.

In:  a command line with placeholders, and the places that the suite has made for it.
Out: a process of its own group, whose output goes to a file; it can be asked to end, or killed.

The same values are in the environment under the names that drivers made from the Kubernetes example use, so that many
need no arguments at all.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from drakit.base.errors import UsageError

_TAIL_LINES = 5


class DriverPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver finds on its node."""

    kubeconfig: Path
    node_name: str
    root: Path

    @property
    def plugins(self) -> Path:
        """The kubelet's directory for plugins: a driver has its sockets and data in a directory below it."""
        return self.root / "plugins"

    @property
    def registry(self) -> Path:
        return self.root / "registry"

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    def make(self) -> None:
        for each in (self.plugins, self.registry, self.cdi):
            each.mkdir(parents=True, exist_ok=True)

    def values(self, pod_uid: str) -> dict[str, str]:
        """Placeholders and what they stand for."""
        return {
            "kubeconfig": str(self.kubeconfig),
            "node_name": self.node_name,
            "plugin_dir": str(self.plugins),
            "registry_dir": str(self.registry),
            "cdi_dir": str(self.cdi),
            "pod_uid": pod_uid,
        }


_ENVIRONMENT = {
    "KUBECONFIG": "kubeconfig",
    "NODE_NAME": "node_name",
    "KUBELET_PLUGINS_DIRECTORY_PATH": "plugin_dir",
    "KUBELET_REGISTRAR_DIRECTORY_PATH": "registry_dir",
    "CDI_ROOT": "cdi_dir",
    "POD_UID": "pod_uid",
}
"""Variables, each with its placeholder."""


class RunningDriver(Protocol):
    """One instance of the driver under test."""

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself or was ended."""
        ...

    def last_words(self) -> str:
        """The end of what it printed, for messages."""
        ...

    async def terminate(self, seconds: float) -> int | None:
        """Ask it to end; its exit code, or none when it did not within that time."""
        ...

    async def kill(self) -> None:
        """End it at once, wherever it stands. Idempotent."""
        ...


class Launcher(Protocol):
    async def start(self, places: DriverPlaces, pod_uid: str, further: Sequence[str] = ()) -> RunningDriver:
        """A new instance. `further` arguments come after those of every run. Raise UsageError if there is none."""
        ...


class CommandLauncher:
    """Starts a command line."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """`environment` is what the driver gets beside the variables of the suite."""
        self._command = tuple(command)
        self._log = log
        self._environment = environment

    async def start(self, places: DriverPlaces, pod_uid: str, further: Sequence[str] = ()) -> RunningDriver:
        values = places.values(pod_uid)
        arguments = [filled(each, values) for each in (*self._command, *further)]
        environment = {**self._environment, **{name: values[key] for name, key in _ENVIRONMENT.items()}}
        with self._log.open("ab") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    *arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    # A group of its own, so that a kill reaches everything that the driver started.
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageError(f"cannot start {arguments[0]}: {error.strerror or error}") from None
        return DriverProcess(process, self._log)


class DriverProcess:
    """A process with all that it started."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return " / ".join(lines[-_TAIL_LINES:])

    async def terminate(self, seconds: float) -> int | None:
        self._signal(signal.SIGTERM, group=False)
        try:
            return await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return None

    async def kill(self) -> None:
        self._signal(signal.SIGKILL, group=True)
        await self._process.wait()

    def _signal(self, number: signal.Signals, *, group: bool) -> None:
        """A shell around the driver would not pass SIGKILL on: that goes to the whole group."""
        try:
            if group:
                os.killpg(self._process.pid, number)
            elif not self.ended:
                self._process.send_signal(number)
        except ProcessLookupError:
            pass


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; other braces stay as they are."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
