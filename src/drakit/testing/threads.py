"""A cluster for tests that are no coroutines: its loop runs in a thread, and each call waits for its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar, Unpack

from drakit.api import Device, DeviceTaint
from drakit.api.objects.cluster import Event
from drakit.api.objects.pods import Pod
from drakit.base.structs import Model
from drakit.client import Resource
from drakit.driverkit import DevicePool
from drakit.simulate.cluster import ClusterPlan
from drakit.simulate.loops import SteppedLoop
from drakit.testing.cluster import AsyncCluster, DeviceUse, Fault, NodeOptions, patience, running
from drakit.testing.manifests import Applied
from drakit.testing.options import plan_from

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
        """Run a coroutine there, and wait for it. Raise RuntimeError once the thread has ended."""
        if self.loop.is_closed():
            work.close()
            raise RuntimeError("this cluster has ended, with the test or the fixture that it was made for")
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

    def create(self, *documents: Mapping[str, Any] | Model) -> Any:
        """Create objects, generated names included, and let happen what follows; the last one as the server made it."""
        return self.run(self.asynchronous.create(*documents))

    def delete(self, kind: Resource[Any], name: str, *, grace: int | None = None, propagation: str = "") -> None:
        """Delete an object, and let happen what follows."""
        self.run(self.asynchronous.delete(kind, name, grace=grace, propagation=propagation))

    def set_status(self, kind: Resource[Any], name: str, status: Mapping[str, Any]) -> None:
        """Merge into the status of an object, as the component that reports it would; let happen what follows."""
        self.run(self.asynchronous.set_status(kind, name, status))

    def get(self, kind: Resource[T], name: str) -> T:
        """Raise NotFound."""
        return self.run(self.asynchronous.get(kind, name))

    def list(self, kind: Resource[T]) -> Sequence[T]:
        """Of all namespaces."""
        return self.run(self.asynchronous.list(kind))

    def add_node(self, name: str, **options: Unpack[NodeOptions]) -> None:
        """Add a node: with `devices` per driver, with `drivers` of your own; else with those of the profile."""
        self.run(self.asynchronous.add_node(name, **options))

    def start_driver(self, node: str, *command: str, env: Mapping[str, str] | None = None) -> str:
        """Start a driver on a node, as a process in any language; its name, when it has registered over its socket.

        `{kubeconfig}`, `{node_name}`, `{plugin_dir}`, `{registry_dir}`, `{cdi_dir}` and `{pod_uid}` are filled in. It
        ends with the cluster. Time goes by itself from now on.
        """
        return self.run(self.asynchronous.start_driver(node, *command, env=env))

    def stop_driver(self, node: str, driver: str) -> int:
        """Ask the process to end (SIGTERM); its exit code."""
        return self.run(self.asynchronous.stop_driver(node, driver))

    def driver_output(self, node: str, driver: str) -> str:
        """What the process has printed."""
        return self.asynchronous.driver_output(node, driver)

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

    def wait_for(self, pod: str, phase: str = "Running", *, seconds: float | None = None) -> Pod:
        """Let time go by until a pod is in that phase (`Deleted`: is gone). Fail with why it is not."""
        return self.run(self.asynchronous.wait_for(pod, phase, seconds=seconds))

    def wait_until(self, holds: Callable[[], bool], what: str, *, seconds: float | None = None) -> None:
        """Let time go by until something holds. Fail with why pods wait, and the events."""
        most = patience(self.asynchronous.loop, seconds)
        end = self.asynchronous.loop.time() + most
        self.settle()
        while not holds():
            if not self.run(self.asynchronous.pass_time(end)):
                state = self.run(self.asynchronous.state())
                raise AssertionError(f"not so after {most:g} s: {what}\n{state}")

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


@contextmanager
def local_cluster(plan: ClusterPlan | None = None, **options: Any) -> Iterator[LocalCluster]:
    """A cluster for a `with` block: for fixtures of any scope, for several clusters in a test, without pytest.

    Options are those of the marker. Raise UsageError for one that there is not.
    """
    chosen = plan or plan_from(options)
    thread = LoopThread()
    stack = AsyncExitStack()
    try:
        yield LocalCluster(thread, thread.call(stack.enter_async_context(running(chosen))))
    finally:
        thread.call(stack.aclose())
        thread.close()
