"""Bugs that are planted in drakit while a test runs: each is one that somebody could write, or has written.

In:  a patcher.
Out: drakit with that bug. Nothing of this is in the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from drakit.allocator.inventory import ledger
from drakit.api.objects.pods import Pod
from drakit.apiserver.admission.plugins.device_ownership import DeviceOwnership
from drakit.apiserver.admission.plugins.quota import ResourceQuotas
from drakit.controllers.claims.release import ClaimReleaser
from drakit.informers import LeaderElector, Result
from drakit.nodeagent.claims.preparation import ClaimPreparation
from drakit.nodeagent.pods import plan
from drakit.simulate import disk
from drakit.store import replay
from drakit.store.groupcommit import GroupCommit

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Plant:
    """A bug, the seed that finds it (the first that does), and words of what the judge says."""

    name: str
    patch: Patch
    seed: int
    said: str


async def nothing(*_: Any, **__: Any) -> None:
    """What should have been done is not."""


async def done(*_: Any) -> Result:
    return Result.done()


def no_guard(patch: pytest.MonkeyPatch) -> None:
    """The server's own check of who owns a device would hide what schedulers do wrong."""
    patch.setattr(DeviceOwnership, "validate", nothing)


def ledger_forgets_stored(patch: pytest.MonkeyPatch) -> None:
    no_guard(patch)
    patch.setattr(ledger.Ledger, "put", lambda *_: ())


def everybody_leads(patch: pytest.MonkeyPatch) -> None:
    no_guard(patch)
    patch.setattr(LeaderElector, "_may_take", lambda *_: True)


def early_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    """Writers are told before the disk has what they wrote."""

    def start(self: Any) -> None:
        self._scheduled = False
        self._current = batch = self._queue.popleft()
        events = self._number(batch.changes)
        self._executor.submit(self._write, events)
        self._settle(batch, events, None)

    patch.setattr(GroupCommit, "_start", start)


def lost_batch(patch: pytest.MonkeyPatch) -> None:
    """After a crash the last rows of the journal are not read."""
    whole = replay.rebuild
    patch.setattr(disk, "rebuild", lambda rows, *rest: whole(iter(list(rows)[:-3]), *rest))


def never_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimReleaser, "reconcile", done)


def released_in_use(patch: pytest.MonkeyPatch) -> None:
    """Reservations of pods that live are dropped."""

    async def reconcile(self: Any, key: Any) -> Result:
        claim = self._claims.cache.get(key)
        if claim is not None and claim.status.reserved_for:
            await self._set_users(claim, ())
        return Result.done()

    patch.setattr(ClaimReleaser, "reconcile", reconcile)


def no_prepare(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimPreparation, "prepare", nothing)


def double_start(patch: pytest.MonkeyPatch) -> None:
    """A container that runs is started again."""

    def should_start(pod: Pod, container: Any, view: Any) -> bool:
        del pod
        found = view.latest(container.name)
        return found is None or found.attempt == 0

    patch.setattr(plan, "_should_start", should_start)


def no_quota(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ResourceQuotas, "validate", nothing)


PLANTS = (
    Plant("the ledger forgets stored claims", ledger_forgets_stored, 0, "is held by"),
    Plant("everybody leads", everybody_leads, 0, "is held by"),
    Plant("claims are used without being prepared", no_prepare, 0, "does not run"),
    Plant("a container that runs is started again", double_start, 0, "is started while it runs"),
    Plant("reservations of living pods are dropped", released_in_use, 0, "allocated and reserved for it"),
    Plant("claims of ended pods are never released", never_released, 1, "reserved for a pod that has ended"),
    Plant("the last rows of the journal are not read", lost_batch, 2, "was acknowledged; the disk has"),
    Plant("writes are acknowledged before they are flushed", early_acknowledgement, 2, "server died of Unsound"),
    Plant("the quota is not looked at", no_quota, 6, "and the quota is"),
)
