"""All controllers together, as a command or a test runs them.

In:  a client for the caches and one per controller to act with; a clock; which controllers, with which gates.
Out: informers that follow the server and controllers that act, until stopped.

Whoever runs several replicas puts `run` behind a leader election: caches are filled when it begins, so a new leader
sees everything that the last one wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random

from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.client import Client
from drakit.controllers.authority import SigningAuthority
from drakit.controllers.budgets import BudgetController
from drakit.controllers.certificates import RequestApprover, RequestSigner
from drakit.controllers.claims import ClaimController
from drakit.controllers.context import ClientOf, ControllerContext, LoopOwner, NeedsPreparation
from drakit.controllers.cronjobs import CronJobController
from drakit.controllers.daemonsets import DaemonSetController
from drakit.controllers.deployments import DeploymentController
from drakit.controllers.eviction import DeviceTaintEviction
from drakit.controllers.garbage import FinishedPods, GarbageCollector, NamespaceController
from drakit.controllers.jobs import FinishedJobs, JobController
from drakit.controllers.nodes import NodeHealth, NodeRemains, NodeTaintEviction
from drakit.controllers.podgroups import PodGroupProtection
from drakit.controllers.poolstatus import PoolStatusController
from drakit.controllers.quotas import QuotaController
from drakit.controllers.replicasets import ReplicaSetController
from drakit.controllers.serviceaccounts import ServiceAccountController
from drakit.informers import Informers

Make = Callable[[ControllerContext], LoopOwner]
_TICK = 0.01

BY_NAME: Mapping[str, Make] = {
    "resourceclaim-controller": ClaimController,
    "podgroup-protection-controller": PodGroupProtection,
    "garbage-collector-controller": GarbageCollector,
    "namespace-controller": NamespaceController,
    "pod-garbage-collector-controller": FinishedPods,
    "device-taint-eviction-controller": DeviceTaintEviction,
    "resourcepoolstatusrequest-controller": PoolStatusController,
    "resourcequota-controller": QuotaController,
    "serviceaccount-controller": ServiceAccountController,
    "deployment-controller": DeploymentController,
    "daemonset-controller": DaemonSetController,
    "replicaset-controller": ReplicaSetController,
    "job-controller": JobController,
    "ttl-after-finished-controller": FinishedJobs,
    "cronjob-controller": CronJobController,
    "disruption-controller": BudgetController,
    "certificatesigningrequest-approving-controller": RequestApprover,
    "certificatesigningrequest-signing-controller": RequestSigner,
    "node-lifecycle-controller": NodeHealth,
    "taint-eviction-controller": NodeTaintEviction,
    "node-remains-controller": NodeRemains,
}
"""Every controller, by the name that kube-controller-manager knows it by, where it has one."""
ALL: tuple[Make, ...] = tuple(BY_NAME.values())


class Controllers:
    """One run of a set of controllers; for another run, make another."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        gates: FeatureGates | None = None,
        registry: CollectorRegistry | None = None,
        random: Random | None = None,
        root_ca: str = "",
        authority: SigningAuthority | None = None,
        client_of: ClientOf | None = None,
        informers: Informers | None = None,
        makers: Sequence[Make] = ALL,
    ) -> None:
        """`informers` are those of the process, where other components have some too."""
        self._clock = clock or client.clock
        self.informers = informers or Informers(client, clock=self._clock, random=random)
        context = ControllerContext(
            client,
            self.informers,
            self._clock,
            gates=gates,
            registry=registry,
            root_ca=root_ca,
            authority=authority,
            client_of=client_of,
        )
        self.registry = context.registry
        self.components = [make(context) for make in makers]
        self._begun = False

    async def run(self) -> None:
        """Run until cancelled. Cancelling ends at once, in the middle of what is under way."""
        for component in self.components:
            if isinstance(component, NeedsPreparation):
                await component.prepare()
        loops = [loop for component in self.components for loop in component.loops]
        async with self.informers.running():
            self._begun = True
            tasks = [asyncio.create_task(loop.run(), name=loop.name) for loop in loops]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_ready(self) -> None:
        """Wait until caches are filled and every object in them was reconciled once."""
        while not (self._begun and self.is_idle):
            await self._clock.sleep(_TICK)

    async def stop(self) -> None:
        """Finish the reconciles under way; then `run` returns."""
        await asyncio.gather(*(loop.stop() for component in self.components for loop in component.loops))

    @property
    def is_synced(self) -> bool:
        """Whether caches are filled, and work has begun."""
        return self._begun

    @property
    def is_idle(self) -> bool:
        """Whether no key waits for a worker and no worker has one; delayed keys may still come."""
        return not any(
            len(loop.queue) or loop.queue.working for component in self.components for loop in component.loops
        )


def chosen(names: Sequence[str]) -> tuple[Make, ...]:
    """The controllers that a list names: `*` is all of them, `-name` is not that one, as upstream reads it."""
    for name in names:
        if name != "*" and name.removeprefix("-") not in BY_NAME:
            raise UsageError(f"unknown controller {name.removeprefix('-')!r}: known are {', '.join(BY_NAME)}")
    wanted = [name for name in BY_NAME if f"-{name}" not in names and (name in names or "*" in names)]
    if not wanted:
        raise UsageError("no controller is left to run")
    return tuple(BY_NAME[name] for name in wanted)


async def run_all(client: Client, *, clock: Clock | None = None, gates: FeatureGates | None = None) -> None:
    """Run every controller until cancelled."""
    await Controllers(client, clock=clock, gates=gates).run()
