"""Example drivers, each of them small: simulated GPUs, network interfaces, CPUs, and a fabric of accelerators.

| module | driver | shows |
| --- | --- | --- |
| `gpu` | cards of several models, with partitions | counters, device files, health, taints, configuration |
| `nic` | interfaces shared by bandwidth | consumable capacity, binding conditions, network data |
| `cpu` | the node's CPUs by number | node-allocatable resources, a cpuset that survives restarts |
| `fabric` | accelerators that any node of a zone can reach | a pool with a node selector, binding to a node |

`drakit driver run gpu --profile h100-8` runs one. What they publish are profiles, data files in `data/profiles`:
`load_profile("a100-mig")` has the devices, classes and claims of that machine, `profile_slices` its slices without
any driver, `PROFILE_TEMPLATES` a node with all of it.
"""

from drakit.drivers.nodetemplates import PROFILE_TEMPLATES
from drakit.drivers.profiles import DeviceProfile, load_profile, parse_profile, profile_names, profile_slices

DRIVERS = {name: f"drakit.drivers.{name}:{name.capitalize()}Driver" for name in ("cpu", "fabric", "gpu", "nic")}
"""Short names, each with what `drakit driver run` would be told otherwise."""

__all__ = [
    "DRIVERS",
    "PROFILE_TEMPLATES",
    "DeviceProfile",
    "load_profile",
    "parse_profile",
    "profile_names",
    "profile_slices",
]
