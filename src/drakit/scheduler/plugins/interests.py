"""Short ways to say which events a plugin is interested in."""

from __future__ import annotations

from drakit.scheduler.framework import Action, ClusterEvent, EventResource, Hint, HintFunction, Interest


def on_node(action: Action, hint: HintFunction | None = None) -> Interest:
    return Interest(ClusterEvent(EventResource.NODE, action), hint)


def on_bound_pod(action: Action, hint: HintFunction | None = None) -> Interest:
    return Interest(ClusterEvent(EventResource.POD, action), hint)


def on_the_pod(action: Action, hint: HintFunction | None = None) -> Interest:
    """On the very pod that waits."""
    return Interest(ClusterEvent(EventResource.TARGET_POD, action), hint)


def on_class(action: Action, hint: HintFunction | None = None) -> Interest:
    return Interest(ClusterEvent(EventResource.CLASS, action), hint)


def queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
