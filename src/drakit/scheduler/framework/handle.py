"""What plugins are given when they are made: the world that they look at and write to."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from random import Random
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.client import Client
from drakit.informers import Informers
from drakit.scheduler.framework.extended import ExtendedResources, NoDevices
from drakit.scheduler.framework.nodes import Nodes

T = TypeVar("T")
RecordEvent = Callable[[Pod, str, str, str], None]
"""Tell people of a pod: (pod, type, reason, message). Returns at once; the event is written behind the bindings."""


def _nobody_listens(*_: object) -> None:
    return


class Handle:
    """One per scheduler. A plugin subscribes to informers when it is made, before they are started.

    `extended_resources` is set by the plugin that allocates devices; others read it when they need it.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        nodes: Nodes,
        *,
        clock: Clock,
        gates: FeatureGates,
        registry: CollectorRegistry,
        random: Random,
        new_uid: Callable[[], str],
        record: RecordEvent = _nobody_listens,
    ) -> None:
        self.client = client
        self.informers = informers
        self.nodes = nodes
        self.clock = clock
        self.gates = gates
        self.registry = registry
        self.random = random
        self.new_uid = new_uid
        self.record = record
        self.extended_resources: ExtendedResources = NoDevices()
        self._shared: dict[str, Any] = {}
        self._without_devices: Handle | None = None

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """State that the plugins of this name share between all profiles. It is made on first use."""
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found

    def known(self, name: str) -> Any:
        """What the plugins of that name have in common; None before the first of them is made."""
        return self._shared.get(name)

    def without_devices(self) -> Handle:
        """The same world for profiles in which nobody allocates devices: no class provides a resource there."""
        if self._without_devices is None:
            self._without_devices = copy(self)
            self._without_devices.extended_resources = NoDevices()
        return self._without_devices
