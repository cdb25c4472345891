"""A cluster in a test's own process: the pytest plugin (`pip install drakit[testing]`). See `docs/guides/testing.md`.

| part | what it has |
| --- | --- |
| `plugin` | the fixture `dra_cluster` and the marker of the same name |
| `options` | what a cluster can be like |
| `cluster` | what a test does with a cluster: `AsyncCluster` in a coroutine |
| `threads` | the same for tests that are no coroutines: `LocalCluster`, and `local_cluster` for fixtures of any scope |
| `drivers` | drivers that are processes of their own |
| `faults` | what can go wrong, for `inject` |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drakit.testing.cluster import AsyncCluster, DeviceUse
    from drakit.testing.threads import LocalCluster, local_cluster

__all__ = ["AsyncCluster", "DeviceUse", "LocalCluster", "local_cluster"]

_HOMES = {"AsyncCluster": "cluster", "DeviceUse": "cluster", "LocalCluster": "threads", "local_cluster": "threads"}


def __getattr__(name: str) -> Any:
    """Nothing is imported before it is asked for: pytest loads the plugin in every run of everybody's tests."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
