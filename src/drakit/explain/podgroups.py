"""Why a PodGroup does not run, or how much of it does; and why a pod waits, alone or with its gang. Pure.

In:  a cluster, the name of a group or a pod.
Out: an ObjectExplanation; of a group with one per member. Members are tried as the scheduler does it: one after the
     other, each in sight of those before; those of a gang together, enough of them or none.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from drakit.api import Pod, PodGroup
from drakit.base.errors import NotFound
from drakit.explain.answers import ObjectExplanation, Standing, Suggestion
from drakit.explain.cluster import ClusterObjects
from drakit.explain.completion import completed
from drakit.explain.gangs import gang_of, members_of, place_gang
from drakit.explain.pods import explained, helped
from drakit.scheduler.cycles.cycle import Placement
from drakit.scheduler.podgroups.groups import least

_STUCK = (Standing.PENDING, Standing.WAITING)


def explain_pod(
    cluster: ClusterObjects, name: str, namespace: str = "default", *, suggest: bool = True
) -> ObjectExplanation:
    """Raise NotFound. Without `suggest` there are no suggestions; to try them takes most of the time."""
    cluster = completed(cluster)
    pod = cluster.find(Pod, name, namespace)
    if pod is None:
        raise NotFound(f'pods "{name}" not found in namespace {namespace}')
    return explained_member(cluster, pod, suggest=suggest)


def explained_member(cluster: ClusterObjects, pod: Pod, *, suggest: bool = True) -> ObjectExplanation:
    """A pod, alone or as a member of its gang, in a cluster that `completed` returned."""
    group = gang_of(cluster.find, pod)
    if group is None or pod.spec.node_name or pod.is_terminal:
        return explained(cluster, cluster.rehearsal(), pod, suggest=suggest)
    found = explained(cluster, cluster.rehearsal(), pod, suggest=False)
    gang = _explained_group(cluster, group, suggest=suggest)
    if gang.standing in _STUCK:
        told = f"Pod {pod.metadata.namespace}/{pod.metadata.name} waits with its gang: {gang.verdict}"
        own = found if found.standing in _STUCK else gang
        return replace(
            own, kind="Pod", name=pod.metadata.name, standing=gang.standing, verdict=told, members=(), fitting=(),
            suggestions=gang.suggestions, hopeless=gang.hopeless,
        )  # fmt: skip
    # Enough members fit. What is said of this one is said in sight of those that the scheduler places first.
    return next(each for each in gang.members if each.name == pod.metadata.name)


def explain_podgroup(
    cluster: ClusterObjects, name: str, namespace: str = "default", *, suggest: bool = True
) -> ObjectExplanation:
    """Raise NotFound."""
    cluster = completed(cluster)
    group = cluster.find(PodGroup, name, namespace)
    if group is None:
        raise NotFound(f'podgroups.scheduling.k8s.io "{name}" not found in namespace {namespace}')
    return _explained_group(cluster, group, suggest=suggest)


class _Trial(msgspec.Struct, frozen=True):
    """How many of the waiting members would be placed, what is said of each member, and what would help."""

    placed: int
    members: tuple[ObjectExplanation, ...]
    suggestions: tuple[Suggestion, ...] = ()
    hopeless: str = ""

    @property
    def stuck(self) -> ObjectExplanation | None:
        return next((each for each in self.members if each.standing in _STUCK), None)


def _explained_group(cluster: ClusterObjects, group: PodGroup, *, suggest: bool) -> ObjectExplanation:
    members, needed = members_of(cluster.all(Pod), group), least(group)
    running = sum(bool(pod.spec.node_name) for pod in members)
    trial = _tried(cluster, members, needed - running, suggest=suggest)
    standing, verdict = _verdict(group, trial, running)
    stuck = trial.stuck
    return ObjectExplanation(
        kind="PodGroup",
        namespace=group.metadata.namespace,
        name=group.metadata.name,
        standing=standing,
        verdict=verdict,
        nodes=stuck.nodes if stuck else (),
        requests=stuck.requests if stuck else (),
        missing=stuck.missing if stuck else (),
        suggestions=trial.suggestions,
        hopeless=trial.hopeless,
        message=stuck.message if stuck else "",
        members=trial.members,
    )


def _verdict(group: PodGroup, trial: _Trial, running: int) -> tuple[Standing, str]:
    head = f"PodGroup {group.metadata.namespace}/{group.metadata.name}"
    count, needed = len(trial.members), least(group)
    if running >= needed and trial.stuck is None:
        return Standing.RUNNING, f"{head} runs: {running} of {count} pods have a node."
    if count < needed:
        return Standing.WAITING, f"{head} waits: it needs {needed} pods at once and has {count}."
    if trial.stuck is None or running + trial.placed >= needed:
        standing = Standing.FITS if running < needed else Standing.RUNNING
        fits = f"{running} of {count} pods run, and {trial.placed} more fit ({needed} needed)"
        return standing, f"{head} has room: {fits}."
    fits = f"it needs {needed} pods at once and {running + trial.placed} fit"
    return Standing.PENDING, f"{head} does not run: {fits}. {trial.stuck.verdict}"


def _tried(cluster: ClusterObjects, members: Sequence[Pod], needed: int, *, suggest: bool) -> _Trial:
    waiting = [pod for pod in members if not pod.spec.node_name]
    rehearsal = cluster.rehearsal()
    tried = place_gang(rehearsal, waiting, needed, undo=True)
    # Suggestions for the members together first: from here on they are placed, and in each other's way.
    helps: tuple[tuple[Suggestion, ...], str] = ((), "")
    if suggest and waiting and not tried.is_enough:
        helps = helped(cluster, rehearsal, waiting)
    if not members:
        helps = (), "it has no pods"
    found, placed = {}, 0
    for pod in (*(pod for pod in members if pod.spec.node_name), *tried.turns):
        # Where enough fit, the others are helped each for itself; once, as that is costly.
        alone = suggest and tried.is_enough and not helps[0]
        one = explained(cluster, rehearsal, pod, suggest=alone)
        helps = (one.suggestions, one.hopeless) if alone and one.standing in _STUCK else helps
        found[pod.metadata.name] = one
        if not pod.spec.node_name and one.standing is Standing.FITS:
            # Placed for the members after it: they must not count the same devices again.
            placed += isinstance(rehearsal.place(rehearsal.pod(one.namespace, one.name) or pod), Placement)
    return _Trial(placed, tuple(found[pod.metadata.name] for pod in members), *helps)
