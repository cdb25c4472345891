"""SchedulingGates: a pod with gates stays out of the queue until they are taken away."""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.pods import Pod
from drakit.scheduler.config.names import SCHEDULING_GATES
from drakit.scheduler.framework import SUCCESS, Action, Hint, Interest, PluginStatus
from drakit.scheduler.plugins.interests import on_the_pod, queue_if


class SchedulingGates:
    name = SCHEDULING_GATES

    def pre_enqueue(self, pod: Pod) -> PluginStatus:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return PluginStatus.unresolvable(f"waiting for scheduling gates: [{gates}]")

    def interests(self) -> Sequence[Interest]:
        return (on_the_pod(Action.UPDATE_POD_GATES, _after_gates),)


def _after_gates(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return queue_if(pod.metadata.uid == new.metadata.uid)
