"""A cluster for tests that are no coroutines: its loop runs in a thread, and each call waits for its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from drakit.api import Device, DeviceTaint
from drakit.api.objects.cluster import Event
from drakit.api.objects.pods import Pod
from drakit.client import Resource
from drakit.driverkit import DevicePool, Driver
from drakit.simulate.loops import SteppedLoop
from drakit.testing.cluster import PATIENCE, Applied, AsyncCluster, DeviceUse, Fault

T = TypeVar("T")


class LoopThread:
    """A SteppedLoop that runs in a thread of its own until it is closed."""

    def __init__(self) -> None:
        self.loop = SteppedLoop()
        self._thread = threading.Thread(target=self._run, name="drakit cluster", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        self.call(_cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _cancel_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class LocalCluster:
    """What `AsyncCluster` does, for tests that are no coroutines."""

    def __init__(self, thread: LoopThread, cluster: AsyncCluster) -> None:
        self._thread = thread
        self.asynchronous = cluster
        """For what is not here: `run(cluster.asynchronous.client.list(PODS))`."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the cluster's loop, and wait for it."""
        return self._thread.call(work)

    def apply(self, *what: Applied) -> list[Any]:
        """Apply YAML text, a file or directory, or objects; let happen what follows. Raise what the server refuses."""
        return self.run(self.asynchronous.apply(*what))

    def delete(self, kind: Resource[Any], name: str, *, grace: int | None = None) -> None:
        """Delete an object, and let happen what follows."""
        self.run(self.asynchronous.delete(kind, name, grace=grace))

    def get(self, kind: Resource[T], name: str) -> T:
        """Raise NotFound."""
        namespace, _, rest = name.rpartition("/")
        place = (namespace or "default") if kind.kind.namespaced else ""
        return self.run(self.asynchronous.client.get(kind, rest, namespace=place))

    def list(self, kind: Resource[T]) -> Sequence[T]:
        return self.run(self.asynchronous.client.list(kind)).items

    def add_node(
        self,
        name: str,
        *,
        devices: Mapping[str, Sequence[Device] | Sequence[DevicePool]] | None = None,
        drivers: Sequence[Driver] = (),
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, Any]] = (),
        capacity: Mapping[str, str | int] | None = None,
    ) -> None:
        """Add a node: with `devices` per driver, with `drivers` of your own; else with those of the profile."""
        self.run(
            self.asynchronous.add_node(
                name, devices=devices, drivers=drivers, labels=labels, taints=taints, capacity=capacity
            )
        )

    def remove_node(self, name: str) -> None:
        """Switch a node off and delete it."""
        self.run(self.asynchronous.remove_node(name))

    def publish(self, node: str, devices: Sequence[Device] | Sequence[DevicePool] | str, *, driver: str = "") -> None:
        """A driver of a node publishes other devices from now on: objects, or YAML of a list of devices."""
        self.run(self.asynchronous.publish(node, devices, driver=driver))

    def taint(self, node: str, device: str, *taints: DeviceTaint | str, driver: str = "") -> None:
        """The driver taints a device: `key=value:Effect` or objects; without any, its taints go."""
        self.run(self.asynchronous.taint(node, device, *taints, driver=driver))

    def break_device(self, node: str, device: str, reason: str = "broken", *, driver: str = "") -> None:
        """The device is unhealthy: its driver says so, and taints it with NoExecute. An empty reason mends it."""
        self.run(self.asynchronous.break_device(node, device, reason, driver=driver))

    def inject(self, fault: Fault) -> None:
        """Let something go wrong: see `drakit.testing.faults`."""
        self.run(self.asynchronous.inject(fault))

    def advance(self, seconds: float) -> None:
        """Let that much time go by; what is due in it happens at its time."""
        self.run(self.asynchronous.advance(seconds))

    def settle(self) -> None:
        """Let happen all that happens without time going on."""
        self.run(self.asynchronous.settle())

    def wait_for(self, pod: str, phase: str = "Running", *, seconds: float = PATIENCE) -> Pod:
        """Let time go by until a pod is in that phase (`Deleted`: is gone). Fail with why it is not."""
        return self.run(self.asynchronous.wait_for(pod, phase, seconds=seconds))

    def pod(self, name: str) -> Pod:
        """Raise AssertionError when there is no such pod."""
        return self.run(self.asynchronous.pod(name))

    def events(self, about: str = "") -> Sequence[Event]:
        """Events in the order in which they came; about the object of that name, or all."""
        return self.run(self.asynchronous.events(about))

    def allocations(self) -> Sequence[DeviceUse]:
        """Every device that a claim holds, by claim."""
        return self.run(self.asynchronous.allocations())

    def explain(self, pod: str) -> str:
        """What `drakit explain pod` says, and the pod's events."""
        return self.run(self.asynchronous.explain(pod))

    def assert_pending(self, pod: str, because: str = "") -> None:
        """The pod waits; what `explain` says of it has that text."""
        self.run(self.asynchronous.assert_pending(pod, because))

    def serve(self) -> str:
        """The address of the server for clients of any language; from now on time also goes by itself."""
        return self.run(self.asynchronous.serve())

    def kubeconfig(self) -> Path:
        """A file for `KUBECONFIG`, which goes with the cluster."""
        return self.run(self.asynchronous.kubeconfig())
