"""What every controller is given, and how it is run.

In:  the process's informers, who acts under which account, a clock, gates, a registry for metrics.
Out: one `ControllerContext` that a controller is made with. A controller subscribes to informers when it is made, and
     has loops.

Reading is shared, acting is not: caches are filled by one client, and each controller asks and writes with a client of
its own, under the service account whose role has what that controller needs and no more.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Protocol, TypeVar, runtime_checkable

from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.client import Client, NotFound, V
from drakit.client.events import EventRecorder
from drakit.controllers.authority import SigningAuthority
from drakit.informers import Controller, Informers, Result

K = TypeVar("K", bound=Hashable)
ClientOf = Callable[[str], Client]
"""The client of a controller, by the name of its service account in `kube-system`."""
log = logging.getLogger("drakit.controllers")


class ControllerContext:
    """Shared by all controllers of a process."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        *,
        gates: FeatureGates | None = None,
        registry: CollectorRegistry | None = None,
        root_ca: str = "",
        authority: SigningAuthority | None = None,
        client_of: ClientOf | None = None,
    ) -> None:
        """`root_ca` is the certificates by which pods know the server, in PEM. Without `client_of`, all act as one."""
        self.client = client
        self.client_of: ClientOf = client_of or (lambda _: client)
        self.informers = informers
        self.clock = clock
        self.gates = gates or FeatureGates.defaults()
        self.registry = registry or CollectorRegistry()
        self.root_ca = root_ca
        self.authority = authority

    def recorder(self, client: Client, component: str) -> EventRecorder:
        return EventRecorder(client, self.clock, component)

    def loop(self, name: str, reconcile: Callable[[K], Awaitable[Result | None]], *, workers: int = 1) -> Controller[K]:
        """A work queue and its workers. An object that vanished under a reconcile is no failure: its event comes."""

        async def tolerant(key: K) -> Result | None:
            try:
                return await reconcile(key)
            except NotFound as error:
                log.log(V[4], "%s: %s: %s", name, key, error)
                return None

        return Controller(name, tolerant, clock=self.clock, workers=workers, registry=self.registry)


class LoopOwner(Protocol):
    """A controller, as whoever runs it sees it. Everything that it does, it does in its loops."""

    @property
    def loops(self) -> tuple[Controller[Any], ...]: ...


@runtime_checkable
class NeedsPreparation(Protocol):
    """A controller that must ask the server something before it can begin."""

    async def prepare(self) -> None:
        """Called once, before informers are started. May subscribe to more of them."""
        ...
