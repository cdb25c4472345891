"""A cluster of simulated processes, one seed long: who runs, who is restarted, what was seen.

In:  a seed.
Out: processes of the real components on one SeededLoop, a network and disks between them, and a trace.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from drakit.api.exchange import User
from drakit.apiserver import build_server
from drakit.apiserver.auth.identities import ADMIN, CONTROLLER_MANAGER, SCHEDULER, controller, node_agent
from drakit.base.errors import Retryable
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS, SLICES, Client
from drakit.controllers import Controllers
from drakit.controllers.composition import BY_NAME
from drakit.driverkit import DevicePool
from drakit.informers import LeaderElector, Timing
from drakit.scheduler import Scheduler
from drakit.simulate.cluster import server_settings
from drakit.simulate.disks.journal import JournalDisk, JournalStore
from drakit.simulate.loops import SeededLoop
from drakit.simulate.machines import Machine, run_plugin
from drakit.simulate.network import Network
from drakit.simulate.processes import Graveyard, Process
from drakit.simulate.rules.judge import Judge
from drakit.simulate.rules.watchers import ShadowWatch
from drakit.simulate.workload import devices_of

TIMING = Timing(lease_duration=12.0, renew_deadline=8.0, retry_period=4.0)
_UNUSED = (
    "admissionregistration.k8s.io/v1", "apiregistration.k8s.io/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1",
    "certificates.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1",
    "networking.k8s.io/v1", "node.k8s.io/v1", "storage.k8s.io/v1",
)  # fmt: skip
"""Groups that are off: no object of them is in any run, and following them takes half of its time."""
_CONTROLLERS = (
    "resourceclaim-controller", "podgroup-protection-controller", "garbage-collector-controller",
    "pod-garbage-collector-controller", "device-taint-eviction-controller", "resourcequota-controller",
    "serviceaccount-controller", "node-lifecycle-controller", "taint-eviction-controller", "node-remains-controller",
    "namespace-controller",
)  # fmt: skip
"""Those that have something to do."""
_RESTART = 5.0
_UNGUARDED = 3
"""One cluster of so many has no DeviceOwnership, as Kubernetes has none: it hides what schedulers do wrong."""
Main = Callable[[Process], Coroutine[Any, Any, None]]


class World:
    """`trace` is everything that happened, a line each; same seed and code, same lines."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self._drawn: list[tuple[str, Random]] = []
        self.loop = SeededLoop(self._draws("order"))
        self.graveyard = Graveyard(self.loop)
        self.network = Network(self.loop, self._draws("network"))
        self.network.met = self.note_fault
        self.random = self._draws("components")
        self.gates = FeatureGates.all_on()
        self.judge = Judge(self.violate, self.loop.time)
        self.judge.guarded = seed % _UNGUARDED != 0
        self.disk = JournalDisk(self._draws("disk"))
        self.machines: dict[str, Machine] = {}
        self.built: dict[str, dict[str, tuple[DevicePool, ...]]] = {}
        """The devices that each machine was built with, by driver."""
        self.processes: dict[str, Process] = {}
        self.trace: list[str] = []
        self.violations: list[str] = []
        self.over = False
        """Whether nothing counts any more: what is left is being closed."""
        self.met: Counter[tuple[str, str]] = Counter()
        self.store: JournalStore | None = None
        self.workers: dict[str, Scheduler | Controllers] = {}
        """The latest life of each component that has queues."""
        self._directory = directory
        self._lives: Counter[str] = Counter()
        self._mains: dict[str, Main] = {}
        self._down: set[str] = set()
        self._context = copy_context()

    def _draws(self, name: str) -> Random:
        """A source of random numbers; all of them begin anew with `reseed`."""
        made = Random(f"{self.seed}/{name}")
        self._drawn.append((name, made))
        return made

    def reseed(self, seed: int) -> None:
        """From here on, everything is drawn from this seed."""
        self.seed = seed
        for name, random in self._drawn:
            random.seed(f"{seed}/{name}")

    # What is seen

    def note(self, text: str) -> None:
        if not self.over:
            self.trace.append(f"{self.loop.time():9.3f} {text}")

    def note_fault(self, name: str) -> None:
        for phase in self.judge.phases():
            self.met[name, phase] += 1

    def violate(self, text: str) -> None:
        if not self.over:
            self.note(f"VIOLATION {text}")
            self.violations.append(text)

    # Processes

    def start(self, name: str) -> None:
        """A new life of a component."""
        if name in self._down or name not in self._mains or (name in self.processes and self.processes[name].alive):
            return
        self._lives[name] += 1
        process = Process(name, self._lives[name], self.loop)
        self.processes[name] = self.network.processes[process.id] = process
        self.note(f"start {process.id}")
        self.judge.gates.started(name)
        process.main = process.spawn(self._live(process, self._mains[name]))

    async def _live(self, process: Process, main: Main) -> None:
        try:
            await main(process)
            self.note(f"ended {process.id}")
        except Retryable as error:
            self.note(f"ended {process.id}: {error}")
        except Exception as error:
            self.violate(f"{process.name} died of {type(error).__name__}: {error}")
        process.kill()
        self.start_later(process.name, _RESTART)

    def start_later(self, name: str, seconds: float) -> None:
        self.loop.call_later(seconds, self.start, name, context=self.context)

    def kill(self, name: str) -> None:
        """At once; who connects to it meets nobody."""
        process = self.processes.get(name)
        if process is None or not process.alive:
            return
        self.note(f"kill {process.id}")
        process.kill()
        kind, _, rest = name.partition("/")
        if kind == "server":
            self.disk.lose_power()
        if kind == "agent":
            self.machines[rest].sockets.hang_up()
        if kind == "driver":
            node, _, path = rest.partition("/")
            self.machines[node].sockets.break_off(path)
            self.machines[node].files.unlock(process.id)

    def keep_down(self, name: str) -> None:
        self._down.add(name)
        self.kill(name)

    def let_up(self, name: str) -> None:
        self._down.discard(name)
        self.start(name)

    def add_instance(self, name: str) -> None:
        """Another instance of a driver starts beside the first."""
        self._mains[name] = self._driver
        self.start(name)

    def retire(self, name: str, successor: str, grace: float | None) -> None:
        """An instance of a driver goes for good: told to end, with so much time for it, or killed.

        It stays if another update has taken its successor away meanwhile: somebody serves always.
        """
        process = self.processes.get(name)
        if process is None or name not in self._mains or successor not in self._mains:
            return
        del self._mains[name]
        if grace is not None and process.alive and process.main is not None:
            self.note(f"stop {process.id}")
            process.main.cancel()
            self.loop.call_later(grace, self._forget, name, context=self.context)
        else:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name not in self._mains and name in self.processes:
            self.kill(name)
            del self.processes[name]

    def change_gates(self, off: Sequence[str], pause: float) -> None:
        """Every component but the drivers is started again, one after the other, with all gates but these."""
        gates = FeatureGates.of({**FeatureGates.all_on().as_mapping, **dict.fromkeys(off, False)})
        if gates == self.gates:
            return
        self.note(f"gates that are off: {', '.join(off) or 'none'}")
        self.gates = gates
        components = [each for each in self._mains if not each.startswith(("driver/", "watcher"))]
        self.judge.gates.change(off, components)
        for machine in self.machines.values():
            machine.gates = gates
        for number, name in enumerate(components):
            self.loop.call_later(number * pause, self._replace, name, context=self.context)

    def _replace(self, name: str) -> None:
        self.kill(name)
        self.start_later(name, 0.1)

    @property
    def context(self) -> Context:
        """That of nobody's process."""
        return self._context.copy()

    def client(self, process: Process, user: User) -> Client:
        return Client(self.network.line(user), clock=process.clock, on_warning=lambda _: None)

    def busy(self) -> list[str]:
        """Those who lead and have a queue that is not empty, or work on what they took from one."""
        leading = {name: made for name, made in self.workers.items() if self.processes[name].alive and made.is_synced}
        return [name for name, made in leading.items() if not made.is_idle]

    # Components

    def begin(self, nodes: int, random: Random) -> None:
        self._mains["server"] = self._server
        for number in (1, 2):
            self._mains[f"scheduler/{number}"] = self._scheduler
            self._mains[f"controllers/{number}"] = self._controllers
        for number in range(1, nodes + 1):
            self._add_machine(f"node-{number}", random)
        self._mains["watcher"] = self._watcher
        self.start("server")
        for name in self._mains:
            # Once the server answers: a replica that finds none waits long for its lease.
            self.start_later(name, 0.1)

    def _add_machine(self, name: str, random: Random) -> None:
        process = Process(f"machine/{name}", 1, self.loop)
        machine = Machine(
            name,
            self._directory / name,
            clock=process.clock,
            random=self._draws(name),
            gates=self.gates,
            carry=self.network.carry,
            context=process.context,
        )
        self.machines[name] = machine
        self.judge.machines[name] = machine
        for driver, pools in devices_of(name, random).items():
            machine.install(driver, pools)
            self._mains[f"driver/{name}/{driver}"] = self._driver
        self.built[name] = {driver: hardware.pools for driver, hardware in machine.hardware.items()}
        machine.watch_starts(lambda pod, container: self.judge.container_started(name, pod, container))
        self._mains[f"agent/{name}"] = self._agent

    async def _server(self, process: Process) -> None:
        self.store = store = JournalStore(self.disk, process.clock, self.loop, self._stored)
        if store.state.revision < self.network.acknowledged:
            self.violate(f"revision {self.network.acknowledged} was acknowledged; the disk has {store.state.revision}")
        settings = replace(
            server_settings(self.gates, self._draws(process.id)),
            runtime_config=",".join(f"{each}=false" for each in _UNUSED),
            enable_plugins=("ServiceAccount", *(("DeviceOwnership",) if self.judge.guarded else ())),
        )
        self.judge.recover(store.state.records, self.disk.rows)
        server = await build_server(store, clock=process.clock, settings=settings)
        self.network.server = (process, server)
        await asyncio.Event().wait()

    def _stored(self, event: Any) -> None:
        self.note(f"r{event.revision} {'delete' if event.record is None else 'write'} {event.key}")
        self.judge.stored(event)

    async def _watcher(self, process: Process) -> None:
        client = self.client(process, ADMIN)
        watches = [ShadowWatch(client, each, self.judge.history, self.violate) for each in (PODS, CLAIMS, SLICES)]
        await asyncio.gather(*(each.run() for each in watches))

    async def _scheduler(self, process: Process) -> None:
        client = self.client(process, SCHEDULER)
        made = Scheduler(client, clock=process.clock, gates=self.gates, random=self.random)
        self.workers[process.name] = made
        await self._elected(process, client, "kube-scheduler", made.run)

    async def _controllers(self, process: Process) -> None:
        client = self.client(process, CONTROLLER_MANAGER)
        made = Controllers(
            client,
            clock=process.clock,
            gates=self.gates,
            random=self.random,
            client_of=lambda account: self.client(process, controller(account)),
            makers=[BY_NAME[each] for each in _CONTROLLERS],
        )
        self.workers[process.name] = made
        await self._elected(process, client, "kube-controller-manager", made.run)

    async def _elected(self, process: Process, client: Client, name: str, work: Callable[[], Any]) -> None:
        elector = LeaderElector(client, name=name, identity=process.id, timing=TIMING, random=self.random)
        await elector.run(work)

    async def _agent(self, process: Process) -> None:
        machine = self.machines[process.name.partition("/")[2]]
        agent = machine.make_agent(self.client(process, node_agent(machine.name)), clock=process.clock)
        await agent.run()

    async def _driver(self, process: Process) -> None:
        _, node, driver, *instance = process.name.split("/")
        machine = self.machines[node]
        plugin = machine.make_plugin(driver, self.client(process, ADMIN), instance="".join(instance))
        await run_plugin("/".join((driver, *instance)), plugin, machine.sockets, process.id)
