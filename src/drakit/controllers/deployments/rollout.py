"""How large each replica set of a deployment should be next. Pure.

In:  a deployment, its new replica set and the old ones.
Out: sizes by name of replica set, of those alone that should change now. The controller looks again when they have.

Invariant of a rolling update: never more than wanted + maxSurge pods, never fewer available than
wanted - maxUnavailable by this controller's doing.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.controllers.deployments.replicasets import (
    DESIRED,
    MAX,
    OneDeployment,
    OneSet,
    is_rolling,
    max_surge,
    max_unavailable,
    oldest_first,
    size_of,
    wanted_replicas,
)

Sizes = dict[str, int]


def first_size(deployment: OneDeployment, old: Sequence[OneSet]) -> int:
    """How large the new replica set is when it is made."""
    return _grown(deployment, 0, sum(map(size_of, old)))


def roll(deployment: OneDeployment, new: OneSet, old: Sequence[OneSet]) -> Sizes:
    """One step of a rolling update: first the new one grows, then the old ones shrink."""
    wanted, size = wanted_replicas(deployment), size_of(new)
    total = size + sum(map(size_of, old))
    next_size = wanted if size > wanted else _grown(deployment, size, total)
    if next_size != size:
        return {_name(new): next_size}
    return _shrunk(deployment, new, old)


def recreate(deployment: OneDeployment, new: OneSet | None, old: Sequence[OneSet], *, old_pods: bool) -> Sizes:
    """One step of a Recreate: all old ones go, and when their pods are gone, the new one comes."""
    going = {_name(each): 0 for each in old if size_of(each)}
    if going or old_pods or new is None:
        return going
    wanted = wanted_replicas(deployment)
    return {_name(new): wanted} if size_of(new) != wanted else {}


def _grown(deployment: OneDeployment, size: int, total: int) -> int:
    wanted = wanted_replicas(deployment)
    if not is_rolling(deployment):
        return wanted
    room = wanted + max_surge(deployment) - total
    return size + min(room, wanted - size) if room > 0 else size


def _shrunk(deployment: OneDeployment, new: OneSet, old: Sequence[OneSet]) -> Sizes:
    """Shrink old replica sets: first by pods that are not available, because removing them costs no availability."""
    sizes = {_name(each): size_of(each) for each in oldest_first(old)}
    before = dict(sizes)
    least = wanted_replicas(deployment) - max_unavailable(deployment)
    missing = size_of(new) - new.view.status.available_replicas
    budget = size_of(new) + sum(sizes.values()) - least - missing
    if budget <= 0:
        return {}
    for each in oldest_first(old):
        idle = max(size_of(each) - each.view.status.available_replicas, 0)
        cut = min(budget, idle)
        sizes[_name(each)] -= cut
        budget -= cut
    available = sum(each.view.status.available_replicas for each in (new, *old))
    spare = available - least
    for each in oldest_first(old):
        cut = min(sizes[_name(each)], spare) if spare > 0 else 0
        sizes[_name(each)] -= cut
        spare -= cut
    return {name: size for name, size in sizes.items() if size != before[name]}


def is_resized(deployment: OneDeployment, sets: Sequence[OneSet]) -> bool:
    """Whether somebody changed the deployment's size since its replica sets were told of it."""
    wanted = str(wanted_replicas(deployment))
    return any(each.view.metadata.annotations.get(DESIRED, wanted) != wanted for each in sets if size_of(each))


def resize(deployment: OneDeployment, new: OneSet | None, old: Sequence[OneSet]) -> Sizes:
    """Another size in the middle of a rollout, or while paused: each replica set gets its share."""
    wanted = wanted_replicas(deployment)
    active = [each for each in (*([new] if new else ()), *old) if size_of(each)]
    only = active[0] if len(active) == 1 else None if active else new or max(old, key=_creation, default=None)
    if only is not None:
        return {_name(only): wanted}
    if new is not None and _is_saturated(deployment, new):
        return {_name(each): 0 for each in old if size_of(each)}
    return _proportional(deployment, active) if is_rolling(deployment) else {}


def _is_saturated(deployment: OneDeployment, new: OneSet) -> bool:
    wanted = wanted_replicas(deployment)
    told = new.view.metadata.annotations.get(DESIRED) == str(wanted)
    return told and size_of(new) == wanted == new.view.status.available_replicas


def _proportional(deployment: OneDeployment, active: Sequence[OneSet]) -> Sizes:
    """Largest first; of equal ones the newer first when growing, the older first when shrinking."""
    wanted = wanted_replicas(deployment)
    limit = wanted + max_surge(deployment) if wanted else 0
    change = limit - sum(map(size_of, active))
    ordered = sorted(oldest_first(active), key=_creation, reverse=change > 0)
    ordered.sort(key=size_of, reverse=True)
    sizes, given = {}, 0
    for each in ordered:
        share = _share(each, limit)
        part = min(share, change - given) if change > 0 else max(share, change - given)
        sizes[_name(each)] = size_of(each) + part
        given += part
    if ordered:  # what rounding left over
        first = _name(ordered[0])
        sizes[first] = max(sizes[first] + change - given, 0)
    return sizes


def _share(replica_set: OneSet, limit: int) -> int:
    """The proportional share of a replica set in a change of the deployment's size."""
    size = size_of(replica_set)
    before = int(replica_set.view.metadata.annotations.get(MAX) or limit) or limit or 1
    return (2 * size * limit + before) // (2 * before) - size


def _creation(replica_set: OneSet) -> str:
    return replica_set.view.metadata.creation_timestamp or ""


def _name(replica_set: OneSet) -> str:
    return replica_set.view.metadata.name
