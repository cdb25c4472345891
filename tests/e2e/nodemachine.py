"""A cluster of processes with a node of its own: API server, controllers, scheduler, `drakit node`, drivers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import msgspec

from drakit.client import EVENTS, PODS, Client, Rejected
from tests.e2e.processes import ROOT, Running, apiserver, command, controllers, drained, following
from tests.e2e.reached import PATIENCE, reached, until

GATES = ("--feature-gates", "AllAlpha=true,AllBeta=true")
NODE = "node-1"
CLASSES = {"gpu": "gpu.example.com", "nic": "net.example.com", "cpu": "dra.cpu"}


class ControllersProcess:
    """The controllers of a cluster; a test may do without them for a while. They end with the context."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._running = ExitStack()

    def start(self) -> None:
        self._running.enter_context(controllers(self._kubeconfig, *GATES))

    def stop(self) -> None:
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Machine(msgspec.Struct, frozen=True):
    """A cluster of processes; `root` is the node's directory."""

    server: Running
    root: Path
    reach: tuple[str, ...]
    metrics: str = ""
    """Where the agent shows its metrics."""
    controllers: ControllersProcess | None = None

    def agent(self) -> tuple[str, ...]:
        authority = str(self.server.kubeconfig.parent / "pki")
        return (
            *self.reach, "--node-name", NODE, "--root-dir", str(self.root), "--cdi-dir", str(self.root / "cdi"),
            "--authority-dir", authority, "--secure-port", "0", "--eviction-hard", "", *GATES,
        )  # fmt: skip

    def driver(self, name: str) -> tuple[str, ...]:
        return (
            "run", name, "--kubeconfig", str(self.server.kubeconfig), "--node-name", NODE,
            "--plugin-dir", str(self.root / "plugins"), "--registry-dir", str(self.root / "plugins_registry"),
            "--cdi-dir", str(self.root / "cdi"), "--set", f"directory={self.root / name}",
        )  # fmt: skip


@contextmanager
def node_cluster(*, agent: bool = True) -> Iterator[Machine]:
    """Everything but drivers; without `agent`, the node has to be started too."""
    # Sockets have short paths: the directories of pytest are too deep.
    with TemporaryDirectory(prefix="dn") as directory, ExitStack() as stack:
        root = Path(directory)
        (root / "tokens.csv").write_text(f"node-token,system:node:{NODE},1,system:nodes\n")
        (root / "token").write_text("node-token")
        server = stack.enter_context(
            apiserver(
                "--data-dir",
                str(root / "data"),
                "--token-auth-file",
                str(root / "tokens.csv"),
                "--authorization-mode",
                "Node,RBAC",
                *GATES,
            )
        )
        authority = server.kubeconfig.parent / "pki" / "ca.crt"
        reach = ("--master", server.url, "--token-file", str(root / "token"), "--certificate-authority", str(authority))
        (root / "node" / "cdi").mkdir(parents=True)
        working = stack.enter_context(ControllersProcess(server.kubeconfig))
        made = Machine(server, root / "node", reach, controllers=working)
        stack.enter_context(following("scheduler", "--kubeconfig", str(server.kubeconfig), *GATES))
        if agent:
            shown = stack.enter_context(following("node", *made.agent())).shown
            made = msgspec.structs.replace(made, metrics=f"{shown}/metrics")
        yield made


class driver:  # noqa: N801 - a context manager
    """`drakit driver run NAME`, ended with the test. `shown` is where it tells how it is."""

    shown = ""

    def __init__(self, machine: Machine, name: str, *flags: str) -> None:
        (machine.root / name).mkdir(parents=True, exist_ok=True)
        self._drained = ExitStack()
        self._arguments = command(*machine.driver(name), "--port", "0", *flags, name="driver")

    def __enter__(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self._arguments, stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        said = ""
        for line in self.process.stdout or ():
            said += line
            if (found := re.search(r"listening on .*, metrics on (\S+)/metrics", line)) is not None:
                self.shown = found[1]
                self._drained.enter_context(drained(self.process))
                return self.process
        raise RuntimeError(f"the driver did not start: {said}")

    def __exit__(self, *_: object) -> None:
        self._drained.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


async def make_classes(machine: Machine) -> None:
    async with reached(machine.server.kubeconfig) as client:
        for name in CLASSES.values():
            await make_class(client, name)


async def make_class(client: Client, driver: str) -> None:
    """All devices of a driver, by the driver's name."""
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": driver}}
    await client.create({**about, "spec": spec})


def of_driver(driver: str) -> Callable[[Any], bool]:
    return lambda each: each.spec.driver == driver


def pod_with(name: str, script: str, *kinds: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["sh", "-c", script],
                    "resources": {"claims": [{"name": kind} for kind in kinds]},
                }
            ],
            "resourceClaims": [{"name": kind, "resourceClaimName": f"{name}-{kind}"} for kind in kinds],
            **spec,
        },
    }


async def make_claims(client: Client, name: str, *kinds: str) -> None:
    for kind in kinds:
        request = {"name": "r", "exactly": {"deviceClassName": CLASSES.get(kind, f"{kind}.example.com")}}
        about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        metadata = {"name": f"{name}-{kind}", "namespace": "default"}
        await client.create({**about, "metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def in_phase(name: str, phase: str) -> Callable[[Any], bool]:
    return lambda each: each.view.metadata.name == name and each.view.status.phase == phase


async def gone(client: Client, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await client.find(PODS, name, namespace="default") is not None:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)


def prepared(root: Path) -> int:
    """How many claims have their CDI files."""
    return len(list((root / "cdi").glob("*.json")))


async def log_of(client: Client, pod: str, wanted: str, *, container: str = "main") -> str:
    """The log of a pod's container, as soon as it has that word."""
    async with asyncio.timeout(PATIENCE):
        while wanted not in (said := await _log_so_far(client, pod, container)):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)
        return said


async def _log_so_far(client: Client, pod: str, container: str) -> str:
    try:
        return await client.text(f"/api/v1/namespaces/default/pods/{pod}/log", container=container)
    except Rejected:  # it has not been started yet
        return ""


async def told(client: Client, name: str, reason: str) -> str:
    """The message of the first event of that reason about an object."""

    def wanted(event: Any) -> bool:
        return bool(event.view.involved_object.name == name and event.view.reason == reason)

    return str((await until(client, EVENTS, wanted, namespace="default")).view.message)


async def there(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
