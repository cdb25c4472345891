"""A cluster in a test's own process: the pytest plugin (`pip install drakit[testing]`). See `docs/guides/testing.md`.

| part | what it has |
| --- | --- |
| `plugin` | the fixture `dra_cluster` and the marker of the same name |
| `cluster` | what a test does with a cluster: `AsyncCluster` in a coroutine |
| `threads` | the same for tests that are no coroutines: `LocalCluster` |
| `faults` | what can go wrong, for `inject` |
"""

from drakit.testing.cluster import AsyncCluster, DeviceUse
from drakit.testing.threads import LocalCluster

__all__ = ["AsyncCluster", "DeviceUse", "LocalCluster"]
