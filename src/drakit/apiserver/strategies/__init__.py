"""How each kind is written: its strategy."""

from __future__ import annotations

from functools import cache

from drakit.api.registry import Kind
from drakit.apiserver.strategies import core, dra, neighbours, pods
from drakit.apiserver.strategies.base import KindStrategy

_STRATEGIES: dict[tuple[str, str], type[KindStrategy]] = {
    **neighbours.STRATEGIES,
    ("resource.k8s.io", "DeviceClass"): dra.ClassStrategy,
    ("resource.k8s.io", "ResourceClaim"): dra.ClaimStrategy,
    ("resource.k8s.io", "ResourceClaimTemplate"): dra.TemplateStrategy,
    ("resource.k8s.io", "ResourceSlice"): dra.SliceStrategy,
    ("resource.k8s.io", "DeviceTaintRule"): dra.TaintRuleStrategy,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): dra.PoolStatusStrategy,
    ("scheduling.k8s.io", "PodGroup"): dra.PodGroupStrategy,
    ("scheduling.k8s.io", "Workload"): dra.WorkloadStrategy,
    ("scheduling.k8s.io", "PriorityClass"): core.PriorityClassStrategy,
    ("", "Pod"): pods.PodStrategy,
    ("", "Namespace"): core.NamespaceStrategy,
    ("", "Node"): core.NodeStrategy,
    ("", "Event"): core.EventStrategy,
    ("", "Secret"): core.SecretStrategy,
    ("", "ServiceAccount"): core.ServiceAccountStrategy,
    ("", "ResourceQuota"): core.QuotaStrategy,
    ("", "Service"): core.ServiceStrategy,
    ("coordination.k8s.io", "Lease"): core.LeaseStrategy,
    ("apps", "ReplicaSet"): core.ReplicaSetStrategy,
    ("apps", "Deployment"): core.RolloutStrategy,
    ("apps", "DaemonSet"): core.DaemonSetStrategy,
}
_BY_GROUP: dict[str, type[KindStrategy]] = {
    "rbac.authorization.k8s.io": core.RoleStrategy,
    "admissionregistration.k8s.io": core.PolicyStrategy,
}


@cache
def strategy_of(kind: Kind) -> KindStrategy:
    """The strategy of a kind; the ordinary one for a kind that is not listed."""
    made = _STRATEGIES.get((kind.group, kind.kind)) or _BY_GROUP.get(kind.group, KindStrategy)
    return made(kind)


__all__ = ["KindStrategy", "strategy_of"]
