"""Which devices of device plugins a container gets.

In:  a container's extended resources, as far as no claim provides them.
Out: environment, mounts and CDI ids, as the plugin answers; who has which device, on disk.

Pairs of container and resource that a pod's mappings cover belong to DRA, also when a device plugin has the resource.
A plugin is asked to allocate once per container; a restart gets the same answer, also with the plugin away.

DevicesUnavailable    (Retryable) there are too few free devices now, or the plugin does not answer
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drakit.api import Container, Pod
from drakit.base.errors import Retryable
from drakit.nodeagent.devices.registration import DevicePlugins, RegisteredDevicePlugin
from drakit.nodeagent.files import write_atomically
from drakit.nodeagent.plugins.channels import translated
from drakit.nodeagent.plugins.contract import PluginCallFailed
from drakit.nodeagent.runtimes.contract import BindMount
from drakit.pluginapi import deviceplugin_v1beta1_pb2 as wire

FILE = "device_plugin_state"
CALL_SECONDS = 30.0


class DevicesUnavailable(Retryable):
    """A container cannot have its devices now."""


@dataclass(slots=True)
class DeviceGrant:
    """What device plugins give to one container."""

    env: dict[str, str] = field(default_factory=dict)
    mounts: list[BindMount] = field(default_factory=list)
    cdi_ids: list[str] = field(default_factory=list)


Assignments = dict[str, dict[str, dict[str, list[str]]]]
"""Device ids by pod uid, container and resource."""


class DeviceAllocation:
    """Invariant: a device belongs to at most one container, on disk before a plugin hears of it."""

    def __init__(
        self, plugins: DevicePlugins, directory: Path, *, extended: bool = True, flush: Callable[[int], None] = os.fsync
    ) -> None:
        """`extended`: claims may provide extended resources (a feature gate)."""
        self._plugins = plugins
        self._file = directory / FILE
        self._extended = extended
        self._flush = flush
        self._assigned: Assignments = _load(self._file)
        self._answers: dict[tuple[str, str, str], Any] = {}
        """What plugins allocated, by pod uid, container and resource; lost with the agent, and then asked for again."""
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One choice at a time per resource: a plugin that is asked which it prefers is not asked twice for one."""

    async def grant(self, pod: Pod, container: Container) -> DeviceGrant:
        """Devices for one start of a container; a restart gets the same. Raise DevicesUnavailable."""
        grant = DeviceGrant()
        for resource, count in self._wanted(pod, container).items():
            _add(grant, await self._allocated(pod.metadata.uid, container.name, resource, count))
        return grant

    async def _allocated(self, uid: str, container: str, resource: str, count: int) -> Any:
        key, plugin = (uid, container, resource), self._plugins.find(resource)
        answer = self._answers.get(key)
        if plugin is None:
            if answer is None:
                raise DevicesUnavailable(f"the device plugin of {resource} is not there")
            return answer
        async with self._turns[resource]:
            ids = await self._choose(uid, container, plugin, count)
        if answer is None:
            answer = self._answers[key] = await _allocate(plugin, ids)
        if plugin.prepares:
            await _called(plugin, "PreStartContainer", wire.PreStartContainerRequest(devices_ids=ids))
        return answer

    def devices(self, uid: str, container: str) -> Mapping[str, Sequence[str]]:
        return self._assigned.get(uid, {}).get(container, {})

    def release(self, uid: str) -> None:
        """The pod has ended. Idempotent."""
        for key in [each for each in self._answers if each[0] == uid]:
            del self._answers[key]
        if self._assigned.pop(uid, None) is not None:
            self._save()

    def keep_only(self, uids: set[str]) -> None:
        """Release what belongs to pods that are not there any more."""
        for uid in [each for each in self._assigned if each not in uids]:
            self.release(uid)

    def _wanted(self, pod: Pod, container: Container) -> dict[str, int]:
        covered = covered_pairs(pod) if self._extended else set()
        return {
            name: amount.value
            for name, amount in container.resources.limits.items()
            if self._plugins.knows(name) and (container.name, name) not in covered and amount
        }

    async def _choose(self, uid: str, container: str, plugin: RegisteredDevicePlugin, count: int) -> list[str]:
        mine = self._assigned.setdefault(uid, {}).setdefault(container, {})
        if (held := mine.get(plugin.resource)) is not None:
            return held
        taken = self._taken(plugin.resource)
        free = [each for each, health in sorted(plugin.devices.items()) if health == "Healthy" and each not in taken]
        if len(free) < count:
            text = f"requested number of devices unavailable for {plugin.resource}. Requested: {count}"
            raise DevicesUnavailable(f"{text}, Available: {len(free)}")
        chosen = mine[plugin.resource] = await _preferred(plugin, free, count)
        try:
            self._save()
        except OSError as error:
            del mine[plugin.resource]
            raise DevicesUnavailable(f"{FILE} cannot be written: {error}") from error
        return chosen

    def _taken(self, resource: str) -> set[str]:
        pods = self._assigned.values()
        return {device for pod in pods for each in pod.values() for device in each.get(resource, ())}

    def _save(self) -> None:
        write_atomically(self._file, json.dumps(self._assigned, separators=(",", ":")).encode(), flush=self._flush)


def covered_pairs(pod: Pod) -> set[tuple[str, str]]:
    """Pairs of container and resource that a claim provides."""
    status = pod.status.extended_resource_claim_status
    mappings = status.request_mappings if status is not None else ()
    return {(each.container_name, each.resource_name) for each in mappings}


async def _preferred(plugin: RegisteredDevicePlugin, free: list[str], count: int) -> list[str]:
    """The plugin's choice where it makes one and it is sound; else the first ones."""
    if not plugin.prefers:
        return free[:count]
    request = wire.ContainerPreferredAllocationRequest(available_deviceIDs=free, allocation_size=count)
    answer = await _called(
        plugin, "GetPreferredAllocation", wire.PreferredAllocationRequest(container_requests=[request])
    )
    wanted = [each for response in answer.container_responses for each in response.deviceIDs]
    sound = len(wanted) == count == len(set(wanted)) and set(wanted) <= set(free)
    return wanted if sound else free[:count]


async def _allocate(plugin: RegisteredDevicePlugin, ids: list[str]) -> Any:
    request = wire.ContainerAllocateRequest(devices_ids=ids)
    answer = await _called(plugin, "Allocate", wire.AllocateRequest(container_requests=[request]))
    if len(answer.container_responses) != 1:
        found = len(answer.container_responses)
        raise DevicesUnavailable(f"the device plugin of {plugin.resource} answered for {found} containers, not for one")
    return answer.container_responses[0]


async def _called(plugin: RegisteredDevicePlugin, method: str, request: Any) -> Any:
    try:
        return await translated(getattr(plugin.stub, method), request, timeout=CALL_SECONDS)
    except PluginCallFailed as error:
        raise DevicesUnavailable(f"Allocate failed due to {error}, which is unexpected") from None


def _add(grant: DeviceGrant, response: Any) -> None:
    grant.env.update(response.envs)
    grant.mounts += [BindMount(each.host_path, each.container_path, each.read_only) for each in response.mounts]
    grant.mounts += [
        BindMount(each.host_path, each.container_path, "w" not in (each.permissions or "rw"))
        for each in response.devices
    ]
    grant.cdi_ids += [each.name for each in response.cdi_devices]


def _load(file: Path) -> Assignments:
    try:
        found: Assignments = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
