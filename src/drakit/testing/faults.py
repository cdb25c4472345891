"""What can go wrong with a cluster in a test: `cluster.inject(faults.server_away(30))`.

Each function gives a fault, which `inject` lets happen.
"""

from __future__ import annotations

from drakit.simulate.cluster import COMPONENTS
from drakit.testing.cluster import AsyncCluster, Fault

FAILURES = (409, 429, 500, 503)


def server_away(seconds: float) -> Fault:
    """Requests of components meet no server for that long."""

    async def happen(cluster: AsyncCluster) -> None:
        cluster.simulated.line.go_away(seconds)

    return happen


def failing_writes(code: int, times: int = 1, resource: str = "") -> Fault:
    """The next writes of components (to `resource`, such as `resourceclaims`) are answered 409, 429, 500 or 503."""
    if code not in FAILURES:
        raise ValueError(f"writes fail with {', '.join(map(str, FAILURES))}: not with {code}")

    async def happen(cluster: AsyncCluster) -> None:
        cluster.simulated.line.fail_writes(code, times, resource)

    return happen


def crash(component: str) -> Fault:
    """`scheduler` or `controllers` die in the middle of what they do, and start again with empty caches."""
    if component not in COMPONENTS:
        raise ValueError(f"there is no component {component!r}: {', '.join(COMPONENTS)}")

    async def happen(cluster: AsyncCluster) -> None:
        await cluster.simulated.stop_component(component)
        cluster.simulated.start_component(component)

    return happen


def reboot(node: str) -> Fault:
    """The node loses its containers and what is in memory; agent and drivers come back."""

    async def happen(cluster: AsyncCluster) -> None:
        await cluster.reboot(node)

    return happen


def power_off(node: str) -> Fault:
    """The node is gone without a word; its Node object stays."""

    async def happen(cluster: AsyncCluster) -> None:
        await cluster.power_off(node)

    return happen


def driver_gone(node: str, driver: str) -> Fault:
    """The driver's process is gone; its socket stays, and nobody answers there."""

    async def happen(cluster: AsyncCluster) -> None:
        await cluster.kill_driver(node, driver)

    return happen


def disk_full(node: str, *, full: bool = True) -> Fault:
    """Drivers of the node cannot write; with `full=False` they can again."""

    async def happen(cluster: AsyncCluster) -> None:
        cluster.node(node).machine.files.full = full

    return happen


def compaction() -> Fault:
    """The store forgets its history: watches that come back must list again."""

    async def happen(cluster: AsyncCluster) -> None:
        store = cluster.simulated.store
        await store.compact(await store.revision())

    return happen
