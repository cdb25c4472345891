"""What goes wrong: each fault by its name, drawn per run from the seed.

In:  a world, a source of random numbers.
Out: the fault, begun; those that last end by themselves, and all end with `heal`.

`WEATHER` is what happens to single messages; `ACTIONS` happen to processes, machines and objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from drakit.nodeagent.claims.checkpoint import Checkpoint
from drakit.simulate.world import World

WEATHER: dict[str, float] = {
    "lost_requests": 0.01,
    "lost_answers": 0.01,
    "late": 0.03,
    "repeated": 0.03,
    "lagging_watches": 0.01,
    "broken_watches": 0.01,
    "conflicts": 0.03,
    "refusals": 0.01,
    "errors": 0.01,
}
"""The chance per message."""

Action = Callable[[World, Random], None]
_GATES = (
    ("DRAPrioritizedList",),
    ("DRAExtendedResource",),
    ("DRASchedulerFilterTimeout",),
    ("ResourceHealthStatus", "ResourceHealthStatusMessage"),
    ("DRADeviceTaints", "DRADeviceTaintRules"),
    ("DRADeviceBindingConditions",),
    ("DRAPartitionableDevices",),
    ("DRAConsumableCapacity",),
)
"""Gates that go off together. With the last four, slices lose what they say, and must get it back."""
_NEXT = "/next"


def _of(world: World, kind: str, random: Random) -> str:
    names = sorted(name for name in world.processes if name.startswith(kind))
    return random.choice(names)


def _crash(kind: str) -> Action:
    """Killed at whatever await it is, and started again after a while."""

    def happen(world: World, random: Random) -> None:
        name = _of(world, kind, random)
        world.kill(name)
        world.start_later(name, random.choice((0.1, 2.0, 20.0)))

    return happen


def _pause(kind: str) -> Action:
    """Stopped for so long that its lease is gone; then it goes on as if nothing had been."""

    def happen(world: World, random: Random) -> None:
        process = world.processes[_of(world, kind, random)]
        world.note(f"pause {process.id}")
        process.pause()
        world.loop.call_later(random.choice((5.0, 30.0, 150.0)), _resume, world, process.id, context=world.context)

    return happen


def _resume(world: World, process: str) -> None:
    if process in world.loop.paused:
        world.note(f"resume {process}")
        world.loop.paused.discard(process)


def _away(kind: str) -> Action:
    """Gone for a while, longer than those who need it like to wait."""

    def happen(world: World, random: Random) -> None:
        name = _of(world, kind, random)
        world.keep_down(name)
        world.loop.call_later(random.choice((15.0, 45.0, 90.0)), world.let_up, name, context=world.context)

    return happen


def _full_disk(world: World, random: Random) -> None:
    world.disk.full = True
    world.loop.call_later(random.choice((1.0, 10.0, 30.0)), _empty_disks, world, context=world.context)


def _full_machine(world: World, random: Random) -> None:
    machine = world.machines[random.choice(sorted(world.machines))]
    machine.files.full = True
    world.loop.call_later(random.choice((1.0, 10.0, 30.0)), _empty_disks, world, context=world.context)


def _empty_disks(world: World) -> None:
    world.disk.full = False
    for each in world.machines.values():
        each.files.full = False


def _slow_disk(world: World, random: Random) -> None:
    del random
    world.disk.slow = True


def _clock_jump(world: World, random: Random) -> None:
    process = world.processes[_of(world, "", random)]
    process.clock.skew += random.choice((-3600.0, -30.0, 30.0, 3600.0))
    world.note(f"clock of {process.id} is off by {process.clock.skew:g} s")


def _clock_drift(world: World, random: Random) -> None:
    process = world.processes[_of(world, "", random)]
    process.clock.go_at(random.choice((0.8, 0.95, 1.05, 1.25)))
    world.note(f"clock of {process.id} goes at {process.clock.rate:g} of its speed")


def _conflict_storm(world: World, random: Random) -> None:
    """For a while, most updates meet a version that has moved on."""
    world.network.weather.conflicts = 0.6
    world.loop.call_later(random.choice((2.0, 10.0)), _end_storm, world, context=world.context)


def _end_storm(world: World) -> None:
    world.network.weather.conflicts = 0.0


def _torn_checkpoint(world: World, random: Random) -> None:
    """An agent is killed while it writes its checkpoint: half of the new file lies beside the old one."""
    name = _of(world, "agent/", random)
    world.kill(name)
    path = Checkpoint(world.machines[name.partition("/")[2]].directory).path
    if path.exists():
        written = path.read_bytes()
        path.with_name(f".{path.name}.tmp").write_bytes(written[: len(written) // 2])
    world.start_later(name, random.choice((0.1, 5.0)))


def _change_gates(world: World, random: Random) -> None:
    """An upgrade that is taken back: components come up one by one with other gates, and later with the first again."""
    world.change_gates(random.choice(_GATES), random.choice((1.0, 5.0)))
    world.loop.call_later(random.choice((10.0, 30.0, 80.0)), world.change_gates, (), 1.0, context=world.context)


def _compaction(world: World, random: Random) -> None:
    del random
    store, process = world.store, world.processes["server"]
    if store is not None and process.alive:
        process.spawn(store.compact(store.state.revision))


def _reboot(world: World, random: Random) -> None:
    """Power goes and comes: agent, drivers and containers of a machine end together."""
    name = random.choice(sorted(world.machines))
    machine = world.machines[name]
    here = [f"agent/{name}", *sorted(each for each in world.processes if each.startswith(f"driver/{name}/"))]
    for each in here:
        world.kill(each)
    world.note(f"reboot {name}")
    world.loop.create_task(machine.reboot(), context=world.context)
    for each in here:
        world.start_later(each, random.uniform(5.0, 60.0))


def _upgrade(world: World, random: Random) -> None:
    """A new instance of a driver starts beside the old one, which ends a little later."""
    name = _of(world, "driver/", random)
    world.note(f"upgrade {name}")
    world.kill(name)
    world.start_later(name, random.choice((0.0, 0.5, 3.0)))


def _roll(world: World, random: Random) -> None:
    """A rolling update: two instances of a driver serve at the same time for a while, then the older one goes."""
    old = _of(world, "driver/", random)
    new = old.removesuffix(_NEXT) if old.endswith(_NEXT) else f"{old}{_NEXT}"
    world.note(f"{new} is to follow {old}")
    world.add_instance(new)
    grace = random.choice((None, 12.0))
    world.loop.call_later(random.choice((1.0, 10.0, 40.0)), world.retire, old, new, grace, context=world.context)


def _shrink(world: World, random: Random) -> None:
    """Devices go from what a driver publishes, and come back after a while."""
    machine = world.machines[random.choice(sorted(world.machines))]
    hardware = machine.hardware[random.choice(sorted(machine.hardware))]
    names = [device.name for pool in hardware.pools for device in pool.devices]
    hardware.remove_devices(random.sample(names, (len(names) + 1) // 2))
    world.note(f"{hardware.driver} of {machine.name} publishes less")
    world.loop.call_later(random.choice((5.0, 60.0)), _restore, world, machine.name, context=world.context)


def _restore(world: World, machine: str) -> None:
    """The machine has every device again that it was built with."""
    for driver, pools in world.built[machine].items():
        if world.machines[machine].hardware[driver].pools != pools:
            world.machines[machine].hardware[driver].publish(*pools)


def _break(world: World, random: Random) -> None:
    machine = world.machines[random.choice(sorted(world.machines))]
    hardware = machine.hardware[random.choice(sorted(machine.hardware))]
    device = random.choice([device.name for pool in hardware.pools for device in pool.devices] or ["none"])
    world.note(f"{device} of {machine.name} breaks")
    hardware.break_device(device)
    world.loop.call_later(random.choice((5.0, 60.0)), _mend, world, context=world.context)


def _mend(world: World) -> None:
    for machine in world.machines.values():
        for hardware in machine.hardware.values():
            for device in list(hardware.sick):
                hardware.break_device(device, "")


ACTIONS: dict[str, Action] = {
    "crash-server": _crash("server"),
    "crash-scheduler": _crash("scheduler/"),
    "crash-controllers": _crash("controllers/"),
    "crash-agent": _crash("agent/"),
    "crash-driver": _crash("driver/"),
    "pause-scheduler": _pause("scheduler/"),
    "pause-controllers": _pause("controllers/"),
    "pause-agent": _pause("agent/"),
    "pause-driver": _pause("driver/"),
    "server-away": _away("server"),
    "driver-gone": _away("driver/"),
    "agent-away": _away("agent/"),
    "disk-full": _full_disk,
    "machine-disk-full": _full_machine,
    "disk-slow": _slow_disk,
    "clock-jump": _clock_jump,
    "clock-drift": _clock_drift,
    "conflict-storm": _conflict_storm,
    "torn-checkpoint": _torn_checkpoint,
    "gates-change": _change_gates,
    "compaction": _compaction,
    "reboot": _reboot,
    "driver-upgrade": _upgrade,
    "driver-rolls": _roll,
    "slices-shrink": _shrink,
    "device-breaks": _break,
}
FAULTS: tuple[str, ...] = (*WEATHER, *ACTIONS)


def draw(random: Random, allowed: Sequence[str], chance: float) -> list[str]:
    """The faults of a run: each of those that are allowed is in it or not."""
    return [each for each in allowed if random.random() < chance]


def heal(world: World) -> None:
    """Everything works again, and everybody is back."""
    world.network.weather.clear()
    world.disk.slow = False
    _empty_disks(world)
    _mend(world)
    for machine in world.machines:
        _restore(world, machine)
    for paused in sorted(world.loop.paused):
        _resume(world, paused)
    for name, process in list(world.processes.items()):
        process.clock.set_right()
        world.let_up(name)
    world.change_gates((), 1.0)
    there = {each["metadata"]["name"] for each in world.judge.objects["nodes"].values()}
    for name in sorted(world.machines.keys() - there):
        # Somebody deleted the node: a kubelet makes it again when it is started again.
        world.kill(f"agent/{name}")
        world.start(f"agent/{name}")
