"""Write a DRA driver: one class, and the kit does the rest.

    from drakit.driverkit import Driver, each

    class Leds(Driver):
        name = "leds.example.com"

        def devices(self):
            return [Device(name=f"led-{n}") for n in range(4)]

        async def prepare(self, claims):
            return await each(claims, self._switch_on)

        async def unprepare(self, claims):
            return await each(claims, self._switch_off)

        def _switch_on(self, claim):
            return [device.ready(env={"LED": device.device}) for device in claim.devices]

        def _switch_off(self, claim):
            ...

`drakit driver run module:Leds`, or `run(Leds(), access=…, settings=PluginSettings(node_name=…))`, serves it. In one
process with a server, without sockets: `KubeletPlugin(Leds(), client, settings)`, whose `prepare`, `unprepare` and
`publish` are what the sockets call. Guide: `docs/guides/writing-a-driver.md`.

| module | what it has for authors |
| --- | --- |
| `driver` | `Driver` (`devices`, `prepare`, `unprepare`, optional `health` and `bind`, `changed`), `each` |
| `claims` | `AllocatedClaim`, `AllocatedDevice` (its `ready` makes a `PreparedDevice`), `PreparedClaim` |
| `config` | `DeviceConfig`, base of configuration types; `PRIVILEGED` marks fields that only a class may set |
| `cdi` | `ContainerEdits`, `DeviceNode`, `Mount`, `Hook`: what containers get |
| `pools` | `DevicePool`, for more than one pool, counters, or devices that other nodes reach |
| `health` | `HealthReport`, `HealthState` |
| `metadata` | device metadata: `read_metadata` for applications |
| `sysfs` | standard attributes of PCI devices |
| `conditions` | conditions and data in the status of claims |
"""

from drakit.driverkit.cdi import ContainerEdits, DeviceNode, Hook, Mount, NetDevice
from drakit.driverkit.claims import AllocatedClaim, AllocatedDevice, ClaimRef, PreparedClaim, PreparedDevice
from drakit.driverkit.config import PRIVILEGED, DeviceConfig
from drakit.driverkit.driver import BindingFailed, Driver, Prepared, Unprepared, each
from drakit.driverkit.entry import run, serve
from drakit.driverkit.health import HealthReport, HealthState
from drakit.driverkit.plugin import KubeletPlugin, PluginSettings
from drakit.driverkit.pools import DevicePool, Published, pools_from_yaml

__all__ = [
    "PRIVILEGED",
    "AllocatedClaim",
    "AllocatedDevice",
    "BindingFailed",
    "ClaimRef",
    "ContainerEdits",
    "DeviceConfig",
    "DeviceNode",
    "DevicePool",
    "Driver",
    "HealthReport",
    "HealthState",
    "Hook",
    "KubeletPlugin",
    "Mount",
    "NetDevice",
    "PluginSettings",
    "Prepared",
    "PreparedClaim",
    "PreparedDevice",
    "Published",
    "Unprepared",
    "each",
    "pools_from_yaml",
    "run",
    "serve",
]
