"""Names that Kubernetes gives to finalizers, annotations, labels and taints, as far as several rooms use them."""

from __future__ import annotations

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a ResourceClaim from vanishing while it is allocated, or while a scheduler is about to allocate it."""
PODGROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Keeps a PodGroup from vanishing while it has pods."""
FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""On a generated claim: the entry of `spec.resourceClaims` that it was made for."""
EXTENDED_RESOURCE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""On a claim that the scheduler made for the extended resources of a pod: `true`."""
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"
"""On a namespace whose claims may ask for admin access: `true`."""

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Each class provides an extended resource of this prefix and its own name, whether it names another one or not."""
