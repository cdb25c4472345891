"""The test's hands on a node of processes: claims allocated and pods placed by hand, a driver of bare gRPC."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.request import urlopen

from drakit.client import CLAIMS, PODS, Client
from tests.e2e.nodemachine import NODE, Machine, gone, in_phase, kill, pod_with, there
from tests.e2e.processes import ROOT, Following, following
from tests.e2e.reached import until

BARE = "bare.example.com"
Plain = dict[str, Any]


class Bench:
    """The test's hands on one node, and a driver whose calls are read from a file."""

    def __init__(self, machine: Machine, stack: ExitStack) -> None:
        self.machine = machine
        self.root = machine.root
        self._stack = stack
        self.start_agent()

    def start_agent(self, *flags: str, under: Sequence[str] = ()) -> None:
        """`under` is a command that becomes the agent."""
        started = following("node", *self.machine.agent(), *flags, killed=True, under=under)
        self.agent: Following = self._stack.enter_context(started)

    def kill_agent(self) -> None:
        kill(self.agent.process)

    def heard(self, name: str) -> list[list[Any]]:
        log = self.root / f"{name}.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def calls(self, name: str = BARE) -> list[list[Any]]:
        return [each for each in self.heard(name) if each[0] != "notified"]

    def forget(self) -> None:
        (self.root / f"{BARE}.log").unlink(missing_ok=True)

    @contextmanager
    def driver(self, name: str = BARE, *flags: str) -> Iterator[subprocess.Popen[str]]:
        self.forget()
        argv = [sys.executable, "-m", "tests.e2e.baredriver", str(self.root), name, str(self.root / f"{name}.log")]
        with subprocess.Popen([*argv, *flags], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "serving\n"
                yield process
            finally:
                process.terminate()

    async def registered(self, name: str = BARE) -> None:
        await there(lambda: ["notified", True, ""] in self.heard(name))

    def counted(self, operation: str) -> float:
        """How often the agent did that for a pod, well."""
        labels = f'is_error="false",operation_name="{operation}"'
        found = re.search(rf"^dra_operations_duration_seconds_count{{{labels}}} (\S+)$", self.metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def metrics(self) -> str:
        with urlopen(f"{self.agent.shown}/metrics") as answer:
            return str(answer.read().decode())


async def allocate(
    client: Client, name: str, *, reserved: Sequence[Plain] = (), driver: str = BARE, **meta: Any
) -> str:
    """A claim with one device, as a scheduler would leave it. Its uid."""
    request = {"name": "r", "exactly": {"deviceClassName": "any"}}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    metadata = {"name": name, "namespace": "default", **meta}
    await client.create({**about, "metadata": metadata, "spec": {"devices": {"requests": [request]}}})
    found = await client.get(CLAIMS, name, namespace="default")
    results = [{"request": "r", "driver": driver, "pool": "pool", "device": "one"}]
    status = {"allocation": {"devices": {"results": results}}}
    found = await client.patch_status(found, status)
    if reserved:
        await client.patch_status(found, {"reservedFor": list(reserved)})
    return str(found.metadata.uid)


async def end(client: Client, *pods: str) -> None:
    for name in pods:
        await client.delete(PODS, name, namespace="default")
        await gone(client, name)


async def place(client: Client, name: str, claims: dict[str, str], **spec: Any) -> None:
    """A pod on the node, with claims by its names for them."""
    pod = pod_with(name, "sleep 1000", *claims, nodeName=NODE, **spec)
    pod["spec"]["resourceClaims"] = [{"name": each, "resourceClaimName": claim} for each, claim in claims.items()]
    await client.create(pod)


async def running(client: Client, name: str) -> Plain:
    found = await until(client, PODS, in_phase(name, "Running"), namespace="default")
    return dict(found.document["status"])
