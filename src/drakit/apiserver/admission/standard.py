"""The plugins of this server, with the names and in the order of kube-apiserver.

In:  the parts of the server that plugins need.
Out: all plugins. `chain.choose` picks the enabled ones.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from drakit.apiserver.admission.chain import AdmissionPlugin
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.plugins.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from drakit.apiserver.admission.plugins.device_ownership import DeviceOwnership
from drakit.apiserver.admission.plugins.limits import LimitRanger
from drakit.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from drakit.apiserver.admission.plugins.node_restriction import NodeRestriction
from drakit.apiserver.admission.plugins.node_taints import TaintNodesByCondition
from drakit.apiserver.admission.plugins.pod_groups import PodGroupWorkloadExists
from drakit.apiserver.admission.plugins.pod_resize import PodResizeValidator
from drakit.apiserver.admission.plugins.priority import Priority
from drakit.apiserver.admission.plugins.quota import ResourceQuotas
from drakit.apiserver.admission.plugins.runtime_class import RuntimeClasses
from drakit.apiserver.admission.plugins.service_account import ServiceAccountAdmission
from drakit.apiserver.admission.plugins.service_addresses import ServiceAddresses
from drakit.apiserver.admission.plugins.storage_protection import StorageObjectInUseProtection
from drakit.apiserver.admission.plugins.tolerations import DefaultTolerationSeconds
from drakit.apiserver.admission.policies.mutating import MutatingAdmissionPolicies
from drakit.apiserver.admission.policies.plugin import ValidatingAdmissionPolicies
from drakit.apiserver.admission.webhooks.caller import Caller, ServiceResolver
from drakit.apiserver.admission.webhooks.plugin import MutatingWebhooks, ValidatingWebhooks
from drakit.apiserver.auth.authorization import Authorizer
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.base.clock import Clock


def standard_plugins(
    objects: ObjectStore,
    *,
    clock: Clock,
    random: Random,
    new_uid: Callable[[], str],
    caller: Caller,
    worker: Worker,
    authorizer: Authorizer,
) -> list[AdmissionPlugin]:
    """All plugins, in order. Quota comes last: it charges for what all others have let through."""
    return [
        NamespaceLifecycle(objects),
        LimitRanger(objects),
        ServiceAccountAdmission(objects, random, clock),
        NodeRestriction(objects),
        Priority(objects),
        DefaultTolerationSeconds(),
        TaintNodesByCondition(),
        PodResizeValidator(),
        PodGroupWorkloadExists(objects),
        StorageObjectInUseProtection(),
        RuntimeClasses(objects),
        CertificateApproval(authorizer),
        CertificateSigning(authorizer),
        CertificateSubjectRestriction(),
        DeviceOwnership(objects),
        MutatingAdmissionPolicies(objects, worker, authorizer, clock),
        MutatingWebhooks(objects, caller, new_uid, worker, authorizer, clock),
        ServiceAddresses(objects, random),
        ValidatingAdmissionPolicies(objects, worker, authorizer),
        ValidatingWebhooks(objects, caller, new_uid, worker, authorizer),
        ResourceQuotas(objects),
    ]


__all__ = ["Caller", "ServiceResolver", "standard_plugins"]
