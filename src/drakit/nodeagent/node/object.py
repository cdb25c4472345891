"""The Node object: made, kept current, and kept alive by a Lease.

In:  the machine's facts, amounts of device plugins, whether the node is shutting down.
Out: the Node with labels, capacity, conditions, addresses and nodeInfo; a Lease that is renewed every 10 s.

A status is written when it has changed, and every 5 minutes when it has not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from drakit.api.objects.plain import Plain
from drakit.api.text.times import format_micro_time, format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.base.quantity import Quantity
from drakit.client import LEASES, NODES, STRATEGIC, AlreadyExists, Client, NotFound, metadata_of
from drakit.nodeagent.node.facts import MachineFacts

log = logging.getLogger("drakit.nodeagent")

RENEW_SECONDS = 10.0
LEASE_SECONDS = 40
REPORT_SECONDS = 300.0
RETRY_SECONDS = 1.0
LEASE_NAMESPACE = "kube-node-lease"
_SUFFICIENT = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
_SHORT = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
}


@dataclass(slots=True)
class NodeState:
    """What the node says of itself, beside what the machine is."""

    name: str
    machine: MachineFacts
    allocatable: Mapping[str, Quantity]
    runtime: str = ""
    """`name://version`."""
    version: str = ""
    port: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Plain, ...] = ()
    devices: Callable[[], tuple[Mapping[str, Quantity], Mapping[str, Quantity]]] = lambda: ({}, {})
    """Capacity and allocatable of device plugins."""
    pressures: frozenset[str] = frozenset()
    """Conditions that say what the node is short of."""
    shutting_down: str = ""
    """Why the node takes no more pods; empty while it does."""

    def amounts(self) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        capacity, allocatable = self.devices()
        return {**self.machine.capacity, **capacity}, {**self.allocatable, **allocatable}


class NodeObject:
    def __init__(self, client: Client, state: NodeState, clock: Clock) -> None:
        self._client = client
        self._state = state
        self._clock = clock
        self._changed = asyncio.Event()
        self._uid = ""
        self._told: tuple[Plain, float] | None = None

    async def register(self) -> None:
        """Make the object, or bring its labels up to date; until the server has done it."""
        while True:
            try:
                await self._register()
                await self._report(force=True)
            except DrakitError as error:
                log.warning("node %s is not registered yet: %s", self._state.name, error)
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return

    async def run(self) -> None:
        """Heartbeats and statuses, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat())
            tasks.create_task(self._keep_current())

    def changed(self) -> None:
        """Write the status soon: something in it has changed."""
        self._changed.set()

    async def report(self) -> None:
        """Write the status now. Raise DrakitError."""
        await self._report(force=True)

    async def _register(self) -> None:
        name = self._state.name
        labels = {
            "kubernetes.io/hostname": self._state.machine.hostname or name,
            "kubernetes.io/os": self._state.machine.info.get("operatingSystem", "linux"),
            "kubernetes.io/arch": self._state.machine.info.get("architecture", "amd64"),
            **self._state.labels,
        }
        document: Plain = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}
        if self._state.taints:
            document["spec"]["taints"] = list(self._state.taints)
        try:
            made = await self._client.create(document)
        except AlreadyExists:
            made = await self._client.patch_named(NODES, name, {"metadata": {"labels": labels}})
        self._uid = metadata_of(made).uid

    async def _keep_current(self) -> None:
        while True:
            alarm = asyncio.ensure_future(self._clock.sleep(REPORT_SECONDS))
            word = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((alarm, word), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (alarm, word):
                    each.cancel()
                await asyncio.gather(alarm, word, return_exceptions=True)
            self._changed.clear()
            try:
                await self._report()
            except NotFound:
                await self.register()
            except DrakitError as error:
                log.warning("status of node %s is not written: %s", self._state.name, error)
                await self._clock.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _report(self, *, force: bool = False) -> None:
        now = self._clock.now()
        status = self._status()
        if self._told is not None and not force:
            before, at = self._told
            if before == status and self._clock.monotonic() - at < REPORT_SECONDS:
                return
        stamped = {**status, "conditions": [self._stamped(each, now) for each in status["conditions"]]}
        patch = {"status": stamped}
        await self._client.patch_named(NODES, self._state.name, patch, kind=STRATEGIC, subresource="status")
        self._told = (status, self._clock.monotonic())

    def _stamped(self, condition: Plain, now: datetime) -> Plain:
        same = self._told is not None and condition in self._told[0]["conditions"]
        moved = {} if same else {"lastTransitionTime": format_time(now)}
        return {**condition, "lastHeartbeatTime": format_time(now), **moved}

    def _status(self) -> Plain:
        state = self._state
        capacity, allocatable = state.amounts()
        machine = state.machine
        return {
            "capacity": {name: str(amount) for name, amount in capacity.items()},
            "allocatable": {name: str(amount) for name, amount in allocatable.items()},
            "conditions": self._conditions(),
            "addresses": [
                {"type": "InternalIP", "address": machine.internal_ip},
                {"type": "Hostname", "address": machine.hostname or state.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": state.port}},
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "kubeProxyVersion": "",
                **machine.info,
                "containerRuntimeVersion": state.runtime,
                "kubeletVersion": state.version,
            },
        }

    def _conditions(self) -> list[Plain]:
        resources = []
        for type_, sufficient in _SUFFICIENT.items():
            short = type_ in self._state.pressures
            reason, message = _SHORT[type_] if short else sufficient
            status = "True" if short else "False"
            resources.append({"type": type_, "status": status, "reason": reason, "message": message})
        if self._state.shutting_down:
            ready = {"status": "False", "reason": "KubeletNotReady", "message": self._state.shutting_down}
        else:
            ready = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
        return [*resources, {"type": "Ready", **ready}]

    async def _beat(self) -> None:
        while True:
            try:
                await self._renew()
            except DrakitError as error:
                log.warning("lease of node %s is not renewed: %s", self._state.name, error)
            await self._clock.sleep(RENEW_SECONDS)

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": self._state.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(self._clock.now()),
        }
        try:
            await self._client.patch_named(LEASES, self._state.name, {"spec": spec}, namespace=LEASE_NAMESPACE)
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._state.name, "uid": self._uid}
            metadata = {"name": self._state.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            await self._client.create(lease)
