"""Admission plugins, a module each, under the names and in the order that kube-apiserver gives them.

In:  changes on their way to the store.
Out: completed objects; refusals in Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from drakit.apiserver.admission import Plugin
from drakit.apiserver.admitting.calling import Caller, ServiceResolver
from drakit.apiserver.admitting.namespace_lifecycle import NamespaceLifecycle
from drakit.apiserver.admitting.node_restriction import NodeRestriction
from drakit.apiserver.admitting.pod_groups import PodGroupWorkloadExists
from drakit.apiserver.admitting.pod_resize import PodResizeValidator
from drakit.apiserver.admitting.policies import ValidatingAdmissionPolicies
from drakit.apiserver.admitting.priority import Priority
from drakit.apiserver.admitting.quota import ResourceQuotas
from drakit.apiserver.admitting.service_account import ServiceAccount
from drakit.apiserver.admitting.tolerations import DefaultTolerationSeconds
from drakit.apiserver.admitting.webhooks import MutatingWebhooks, ValidatingWebhooks
from drakit.apiserver.keeping import Keeper
from drakit.base.clock import Clock


def standard_plugins(
    keeper: Keeper, *, clock: Clock, random: Random, new_uid: Callable[[], str], caller: Caller
) -> list[Plugin]:
    """Every plugin, in order: what completes objects first; the quota, which charges, last."""
    return [
        NamespaceLifecycle(keeper),
        ServiceAccount(keeper, random, clock),
        NodeRestriction(keeper),
        Priority(keeper),
        DefaultTolerationSeconds(),
        PodResizeValidator(),
        PodGroupWorkloadExists(keeper),
        MutatingWebhooks(keeper, caller, new_uid, clock),
        ValidatingAdmissionPolicies(keeper),
        ValidatingWebhooks(keeper, caller, new_uid),
        ResourceQuotas(keeper),
    ]


__all__ = ["Caller", "ServiceResolver", "standard_plugins"]
