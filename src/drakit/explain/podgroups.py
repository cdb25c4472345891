"""Why a PodGroup does not run, or how much of it does. Pure.

In:  a cluster, the name of a group.
Out: an ObjectExplanation with one per member. Members are tried as the scheduler does it: one after the other, each in
     sight of those before.
"""

from __future__ import annotations

from drakit.api import Pod, PodGroup
from drakit.api.podclaims import pod_group_name
from drakit.base.errors import NotFound
from drakit.explain.answers import ObjectExplanation, Standing
from drakit.explain.cluster import ClusterObjects
from drakit.explain.completion import completed
from drakit.explain.pods import explained
from drakit.scheduler.cycles.cycle import Placement
from drakit.scheduler.podgroups.groups import least


def explain_podgroup(
    cluster: ClusterObjects, name: str, namespace: str = "default", *, suggest: bool = True
) -> ObjectExplanation:
    """Raise NotFound."""
    cluster = completed(cluster)
    group = cluster.find(PodGroup, name, namespace)
    if group is None:
        raise NotFound(f'podgroups.scheduling.k8s.io "{name}" not found in namespace {namespace}')
    members = _members(cluster, group)
    found, placed = _tried(cluster, members, suggest=suggest)
    running = sum(bool(pod.spec.node_name) for pod in members)
    needed = least(group)
    stuck = next((each for each in found if each.standing in (Standing.PENDING, Standing.WAITING)), None)
    head = f"PodGroup {namespace}/{name}"
    if running >= needed and stuck is None:
        standing, verdict = Standing.RUNNING, f"{head} runs: {running} of {len(members)} pods have a node."
    elif len(members) < needed:
        standing, verdict = Standing.WAITING, f"{head} waits: it needs {needed} pods at once and has {len(members)}."
    elif stuck is None or running + placed >= needed:
        standing = Standing.FITS if running < needed else Standing.RUNNING
        verdict = f"{head} has room: {running} of {len(members)} pods run, and {placed} more fit ({needed} needed)."
    else:
        standing = Standing.PENDING
        verdict = f"{head} does not run: it needs {needed} pods at once and {running + placed} fit. {stuck.verdict}"
    return ObjectExplanation(
        kind="PodGroup",
        namespace=namespace,
        name=name,
        standing=standing,
        verdict=verdict,
        nodes=stuck.nodes if stuck else (),
        requests=stuck.requests if stuck else (),
        missing=stuck.missing if stuck else (),
        suggestions=stuck.suggestions if stuck else (),
        message=stuck.message if stuck else "",
        members=tuple(found),
    )


def _members(cluster: ClusterObjects, group: PodGroup) -> list[Pod]:
    metadata = group.metadata
    mine = [
        pod
        for pod in cluster.all(Pod)
        if pod.metadata.namespace == metadata.namespace and pod_group_name(pod) == metadata.name
        if not pod.is_terminal
    ]
    return sorted(mine, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", _name(pod)))


def _name(pod: Pod) -> str:
    return pod.metadata.name


def _tried(cluster: ClusterObjects, members: list[Pod], *, suggest: bool) -> tuple[list[ObjectExplanation], int]:
    """The explanation of each member, and how many of the waiting members would be placed."""
    rehearsal, placed, told = cluster.rehearsal(), 0, False
    found: list[ObjectExplanation] = []
    for pod in members:
        # Suggestions are costly, and those for the first member that is stuck serve the group.
        one = explained(cluster, rehearsal, pod, suggest=suggest and not told)
        told = told or bool(one.suggestions)
        found.append(one)
        if not pod.spec.node_name and one.standing is Standing.FITS:
            known = rehearsal.pod(pod.metadata.namespace, pod.metadata.name) or pod
            # Placed for the members after it: they must not count the same devices again.
            placed += isinstance(rehearsal.place(known), Placement)
    return found, placed
