"""Tell in a DeviceTaintRule how its eviction goes.

In:  rules when they are new or changed, and some seconds after their pods changed.
Out: the condition EvictionInProgress, with counts; for effect None, once, what NoExecute would do.

That pods are to be evicted is told at once. That none is left is told only some seconds after a rule has come: by then
schedulers have seen its taint too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from drakit.allocator import taints_of
from drakit.api import Condition, DeviceTaintRule, find_condition, results_of
from drakit.api.text.times import format_time
from drakit.base.taints import NO_EXECUTE, NONE
from drakit.client import Client, Key
from drakit.controllers.context import ControllerContext
from drakit.controllers.eviction.deadlines import published_by
from drakit.controllers.eviction.state import EvictionState
from drakit.informers import Result

replace = msgspec.structs.replace

NAME = "device_taint_rule_status"
TYPE = "EvictionInProgress"
DELAY = 5.0


class RuleStatus:
    def __init__(
        self, context: ControllerContext, client: Client, known: EvictionState, evicted: Mapping[str, int]
    ) -> None:
        """`evicted` counts by the uid of the rule."""
        self._client = client
        self._clock = context.clock
        self._known = known
        self._evicted = evicted
        self._changed: dict[str, float] = {}
        self.loop = context.loop(NAME, self.reconcile)
        if known.rules is not None:
            known.rules.subscribe(self._rule_changed)

    def look_again(self, rules: Iterable[str]) -> None:
        for name in rules:
            self.loop.queue.add_after(Key("", name), DELAY)

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if new is None:
            self._changed.pop(old.metadata.name if old is not None else "", None)
        elif old is None or old.metadata.generation != new.metadata.generation:
            self._changed[new.metadata.name] = self._clock.monotonic()
            self.loop.queue.add(Key("", new.metadata.name))

    async def reconcile(self, key: Key) -> Result:
        rule = self._known.rules.cache.get(key) if self._known.rules is not None else None
        if rule is None:
            return Result.done()
        old = find_condition(rule.status.conditions, TYPE)
        new = self._condition(rule, old)
        early = self._changed.get(key.name, float("-inf")) + DELAY - self._clock.monotonic()
        if new is not None and new.status == "False" and early > 0:
            return Result.after(early)
        if new is not None and new != old:
            others = tuple(each for each in rule.status.conditions if each.type != TYPE)
            await self._client.update_status(replace(rule, status=replace(rule.status, conditions=(*others, new))))
        return Result.after(DELAY) if new is not None and new.status == "True" else Result.done()

    def _condition(self, rule: DeviceTaintRule, old: Condition | None) -> Condition | None:
        """The condition to write; None if the current one is still right."""
        current = old is not None and old.observed_generation == rule.metadata.generation
        effect = rule.spec.taint.effect
        if effect == NO_EXECUTE:
            pending = self._known.pending(rule.metadata.name)
            count = self._evicted.get(rule.metadata.uid, 0)
            if not pending and not count and current and old is not None and old.status == "False":
                return None  # what a predecessor of this process told
            reason = "PodsPendingEviction" if pending else "Completed" if count else "NotStarted"
            return self._made(rule, old, reason, progress(pending, count), in_progress=bool(pending))
        if effect == NONE:
            return None if current else self._made(rule, old, "NoEffect", self._dry_run(rule.metadata.name))
        if current and old is not None and old.reason == "OtherEffect":
            return None
        return self._made(rule, old, "OtherEffect", "Eviction only happens for the NoExecute effect.")

    def _dry_run(self, rule: str) -> str:
        pending = self._known.pending(rule, as_if=True)
        published = published_by(self._known.inventory, rule)
        allocated = self._allocated(rule)
        return (
            f"{amount(published, 'published device')} selected. {amount(allocated, 'allocated device')} selected. "
            f"{amount(len(pending), 'pod')} would be evicted in {places(pending)} if the effect was NoExecute. "
            "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        )

    def _allocated(self, rule: str) -> int:
        devices = {
            (each.driver, each.pool, each.device): each
            for claim in self._known.claims.cache
            for each in results_of(claim)
        }
        inventory = self._known.inventory
        return sum(any(origin.rule == rule for origin in taints_of(inventory, each)) for each in devices.values())

    def _made(
        self, rule: DeviceTaintRule, old: Condition | None, reason: str, message: str, *, in_progress: bool = False
    ) -> Condition:
        status = "True" if in_progress else "False"
        same = old is not None and old.status == status
        return Condition(
            type=TYPE,
            status=status,
            observed_generation=rule.metadata.generation,
            last_transition_time=old.last_transition_time if same and old else format_time(self._clock.now()),
            reason=reason,
            message=message,
        )


def progress(pending: list[Key], evicted: int) -> str:
    parts = []
    if pending:
        need = "needs" if len(pending) == 1 else "need"
        parts.append(f"{amount(len(pending), 'pod')} {need} to be evicted in {places(pending)}.")
    if evicted:
        parts.append(f"{amount(evicted, 'pod')} evicted since starting the controller.")
    return " ".join(parts)


def amount(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def places(pods: list[Key]) -> str:
    """The number of namespaces that the pods are in, as text."""
    count = len({each.namespace for each in pods})
    return "1 namespace" if count == 1 else f"{count} different namespaces"
