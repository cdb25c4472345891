"""What runs beside the API server in `drakit up`: each component, who it is, and how it is made.

In:  the server and what its process shares.
Out: `control_plane`. A new one is a line there: its name, its identity, a function that makes it.

A component reaches the server like everybody else, as a client with an identity, and may do what roles give to that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest

from drakit.api.exchange import User
from drakit.apiserver import Server
from drakit.apiserver.auth.identities import CONTROLLER_MANAGER, SCHEDULER, controller
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.cli.processes.logs import note_warning
from drakit.cli.processes.pages import pages_of
from drakit.client import Client, InProcess
from drakit.controllers import Controllers
from drakit.controllers.authority import SigningAuthority
from drakit.informers import Informers
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What components of one process share. `root_ca` is the CA by which pods verify the server, in PEM.

    Caches are filled once, by somebody who may list and watch everything; what a component does with what it reads
    there, it does under its own identity.
    """

    server: Server
    gates: FeatureGates
    clock: Clock
    informers: Informers
    root_ca: str = ""
    authority: SigningAuthority | None = None

    @property
    def registry(self) -> CollectorRegistry:
        """Metrics in it are on the server's `/metrics`."""
        return self.server.registry

    @classmethod
    def of(
        cls,
        server: Server,
        gates: FeatureGates,
        clock: Clock,
        root_ca: str = "",
        authority: SigningAuthority | None = None,
    ) -> Surroundings:
        informers = Informers(_client(server, CONTROLLER_MANAGER, clock))
        return cls(server, gates, clock, informers, root_ca, authority)

    def client(self, user: User) -> Client:
        return _client(self.server, user, self.clock)


def _client(server: Server, user: User, clock: Clock) -> Client:
    return Client(InProcess(server, user), clock=clock, on_warning=note_warning)


class Embedded(Protocol):
    """A component at work."""

    async def run(self) -> None:
        """Until stopped; what it raises ends the process."""
        ...

    async def wait_ready(self) -> None:
        """Until it does for new objects what it is there for."""
        ...

    async def stop(self) -> None:
        """Let what is under way finish, then end `run`. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    identity: User
    make: Callable[[Client, Surroundings], Embedded]
    """With a client that acts under the identity."""


def _controllers(client: Client, around: Surroundings) -> Controllers:
    """Caches are filled under the identity of the whole; each controller acts under its own."""
    return Controllers(
        client,
        clock=around.clock,
        gates=around.gates,
        registry=around.registry,
        root_ca=around.root_ca,
        authority=around.authority,
        client_of=lambda account: around.client(controller(account)),
        informers=around.informers,
    )


def control_plane(config: SchedulerConfiguration | None = None) -> tuple[Component, ...]:
    """All but the server: the controllers, and a scheduler with that configuration."""

    def scheduler(client: Client, around: Surroundings) -> Scheduler:
        """It reads what all read, and acts under its own identity."""
        made = Scheduler(
            client,
            clock=around.clock,
            gates=around.gates,
            registry=around.registry,
            informers=around.informers,
            config=config,
            hints=True,
        )
        around.server.pages.update(pages_of(made))
        # Beside what a scheduler of its own serves on its port.
        around.server.pages["/metrics/resources"] = lambda: generate_latest(made.pod_resources)
        return made

    return (
        Component("controllers", CONTROLLER_MANAGER, _controllers),
        Component("scheduler", SCHEDULER, scheduler),
    )


@asynccontextmanager
async def running(
    components: Sequence[Component],
    around: Surroundings,
    *,
    ended: Callable[[], None],
    stop_asked: asyncio.Event | None = None,
) -> AsyncIterator[None]:
    """Components at work as long as the context is open. `ended` is called when one ends, whatever the reason.

    Inside they are ready, unless somebody asked to stop before they were.
    """
    made = [each.make(around.client(each.identity), around) for each in components]
    tasks = [asyncio.create_task(each.run()) for each in made]
    for task in tasks:
        # A component that ends takes the process along; a supervisor starts it again as a whole.
        task.add_done_callback(lambda _: ended())
    try:
        ready = asyncio.gather(*(_until_ready(*pair) for pair in zip(made, tasks, strict=True)))
        stopping = asyncio.ensure_future((stop_asked or asyncio.Event()).wait())
        try:
            await asyncio.wait((ready, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (ready, stopping):
                each.cancel()
            await asyncio.gather(ready, stopping, return_exceptions=True)
        yield
    finally:
        # All are asked to stop before one is waited for: they end together.
        await asyncio.gather(*(each.stop() for each in made))
        await asyncio.gather(*tasks)


async def _until_ready(component: Embedded, task: asyncio.Task[None]) -> None:
    ready = asyncio.create_task(component.wait_ready())
    try:
        await asyncio.wait((ready, task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ready.cancel()
