"""The quality-of-service class of a pod, from its spec alone: what claims bring does not change it."""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api.pods import Pod, ResourceRequirements

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")


def qos_class(pod: Pod) -> str:
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        return _class([pod.spec.resources])
    return _class(each.resources for each in (*pod.spec.init_containers, *pod.spec.containers))


def _class(all_resources: Iterable[ResourceRequirements]) -> str:
    anything, guaranteed = False, True
    for resources in all_resources:
        asked = {name: amount for name, amount in resources.requests.items() if name in _COUNTED and amount}
        limits = {name: amount for name, amount in resources.limits.items() if name in _COUNTED and amount}
        anything = anything or bool(asked or limits)
        guaranteed = guaranteed and limits.keys() == set(_COUNTED) and asked.items() <= limits.items()
    if not anything:
        return BEST_EFFORT
    return GUARANTEED if guaranteed else BURSTABLE
