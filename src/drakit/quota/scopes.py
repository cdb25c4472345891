"""Which objects a quota counts: without scopes all objects, with scopes only the pods that match every scope."""

from __future__ import annotations

from drakit.api import Pod, ResourceQuota, ScopedResourceSelectorRequirement
from drakit.base.structs import Model
from drakit.quota.pods import is_best_effort


def covers(quota: ResourceQuota, obj: Model | None) -> bool:
    """Whether the quota counts this object; only pods have scopes."""
    requirements = _requirements(quota)
    if not requirements:
        return True
    return isinstance(obj, Pod) and all(_matches(each, obj) for each in requirements)


def _requirements(quota: ResourceQuota) -> list[ScopedResourceSelectorRequirement]:
    plain = [ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists") for scope in quota.spec.scopes]
    selector = quota.spec.scope_selector
    return plain + list(selector.match_expressions if selector else ())


def _matches(requirement: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    match requirement.scope_name:
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "PriorityClass":
            return _matches_priority(requirement, pod.spec.priority_class_name)
        case _:
            return False


def _matches_priority(requirement: ScopedResourceSelectorRequirement, name: str) -> bool:
    match requirement.operator:
        case "In":
            return name in requirement.values
        case "NotIn":
            return name not in requirement.values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case _:
            return False
