"""The plugin NodeRestriction: what a node may write, as far as it depends on the object.

In:  changes by nodes that authorization, which does not see objects, allows.
Out: refusals of objects of other nodes, and of labels or taints that would attract pods to a node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.chain import CREATE, DELETE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.plugins.pod_references import first_reference
from drakit.apiserver.auth.nodes.authorizer import LEASES, node_of
from drakit.apiserver.auth.nodes.graph import MIRROR
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore

_POD = known_kind("v1", "Pod")
_NODE = known_kind("v1", "Node")
_RESTRICTED = "node-restriction.kubernetes.io"
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OWN_LABELS = frozenset(
    (
        "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
        "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    )
)  # fmt: skip
_OWN_STATUS = "update pod status for pods with spec.nodeName set to itself"
_CLAIM_STATUS = {
    "resourceClaimStatuses": "resource claim statues",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}

Check = Callable[[str, ObjectChange], Awaitable[None]]


class NodeRestriction(AdmissionPlugin):
    name = "NodeRestriction"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._checks: Mapping[tuple[str, str], Check] = {
            ("", "pods"): self._pod,
            ("", "nodes"): self._node,
            ("", "serviceaccounts"): self._account,
            ("coordination.k8s.io", "leases"): self._lease,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("storage.k8s.io", "csinodes"): self._csi_node,
        }

    def passes_over(self, change: ObjectChange) -> bool:
        return node_of(change.user) is None

    async def admit(self, change: ObjectChange) -> None:
        node = node_of(change.user)
        if not node:
            raise change.forbid(f'could not determine node from user "{change.user.name}"')
        check = self._checks.get((change.kind.group, change.kind.plural))
        if check is not None:
            await check(node, change)

    async def _pod(self, node: str, change: ObjectChange) -> None:
        match change.subresource:
            case "":
                await self._whole_pod(node, change)
            case "status":
                _check_status(node, change)
            case "eviction":
                if _node_name(change.old) != node:
                    raise change.forbid(f"node {node} can only evict pods with spec.nodeName set to itself")
            case other:
                why = f"unexpected pod subresource \"{other}\", only 'status' and 'eviction' are allowed"
                raise change.forbid(why)

    async def _whole_pod(self, node: str, change: ObjectChange) -> None:
        if change.operation == CREATE:
            _check_mirror(node, change)
            await self._check_owner(node, change)
            if reference := first_reference(change.document):
                raise change.forbid(f'node "{node}" can not create pods that reference {reference}')
        elif change.operation != DELETE:
            why = f'unexpected operation "{change.operation}", node "{node}" can only create and delete mirror pods'
            raise change.forbid(why)
        elif _node_name(change.old) != node:
            raise change.forbid(f'node "{node}" can only delete pods with spec.nodeName set to itself')

    async def _check_owner(self, node: str, change: ObjectChange) -> None:
        """A mirror pod must be owned by its node, so that it is deleted with the node."""
        owners = change.document["metadata"].get("ownerReferences") or []
        only = f'node "{node}" can only create pods with'
        if len(owners) > 1:
            raise change.forbid(f"{only} a single owner reference set to itself")
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            raise change.forbid(f"{only} an owner reference set to itself")
        if not owner.get("controller"):
            raise change.forbid(f"{only} a controller owner reference set to itself")
        if owner.get("blockOwnerDeletion"):
            raise change.forbid(f'node "{node}" must not set blockOwnerDeletion on an owner reference')
        found = await self._objects.get(_NODE, "", node)
        if owner.get("uid") != found.uid:
            raise change.forbid(f"node {node} UID mismatch: expected {owner.get('uid')} got {found.uid}")

    async def _csi_node(self, node: str, change: ObjectChange) -> None:
        if change.name != node:
            raise change.forbid("can only access CSINode with the same name as the requesting node")

    async def _node(self, node: str, change: ObjectChange) -> None:
        if change.name != node:
            raise change.forbid(f'node "{node}" is not allowed to modify node "{change.name}"')
        if change.operation == CREATE:
            labels = _forbidden_labels(change.document, None)
            if labels:
                raise change.forbid(f'node "{node}" is not allowed to set the following labels: {", ".join(labels)}')
        elif change.operation == UPDATE and change.old is not None:
            _check_node_update(node, change, change.document, change.old.document)

    async def _account(self, node: str, change: ObjectChange) -> None:
        """A node may request tokens only for pods that run on it, bound to the pod."""
        if change.operation != CREATE or change.subresource != "token":
            return
        bound = _part(_part(change.sent, "spec"), "boundObjectRef")
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            raise change.forbid("node requested token not bound to a pod")
        if not bound.get("uid"):
            raise change.forbid("node requested token with a pod binding without a uid")
        pod = await self._objects.get(_POD, change.namespace, bound["name"])
        if bound["uid"] != pod.uid:
            raise change.forbid(
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. The object "
                "might have been deleted and then recreated"
            )
        if _node_name(pod) != node:
            raise change.forbid("node requested token bound to a pod scheduled on a different node")

    async def _lease(self, node: str, change: ObjectChange) -> None:
        if change.namespace != LEASES:
            raise change.forbid(f'can only access leases in the "{LEASES}" system namespace')
        if change.name != node:
            raise change.forbid("can only access node lease with the same name as the requesting node")

    async def _slice(self, node: str, change: ObjectChange) -> None:
        """Updates need no check: authorization knows the node of a slice, and validation does not let it change."""
        if change.operation == CREATE and _node_name(change.document) != node:
            raise change.forbid("can only create ResourceSlice with the same NodeName as the requesting node")
        if change.operation == DELETE and _node_name(change.old) != node:
            raise change.forbid("can only delete ResourceSlice with the same NodeName as the requesting node")


def _check_mirror(node: str, change: ObjectChange) -> None:
    if MIRROR not in (change.document["metadata"].get("annotations") or {}):
        why = f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        raise change.forbid(why)
    if _node_name(change.document) != node:
        raise change.forbid(f'node "{node}" can only create pods with spec.nodeName set to itself')


def _check_status(node: str, change: ObjectChange) -> None:
    if change.operation != UPDATE or change.old is None:
        raise change.forbid(f'unexpected operation "{change.operation}"')
    new, old = change.document, change.old.document
    if _node_name(old) != node:
        raise change.forbid(f'node "{node}" can only {_OWN_STATUS}')
    if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        raise change.forbid(f'node "{node}" cannot update labels through pod status')
    for field, words in _CLAIM_STATUS.items():
        if ((new.get("status") or {}).get(field) or None) != ((old.get("status") or {}).get(field) or None):
            raise change.forbid(f'node "{node}" cannot update {words}')


def _check_node_update(node: str, change: ObjectChange, new: Plain, old: Plain) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if after.get("configSource") and after["configSource"] != before.get("configSource"):
        raise change.forbid(f'node "{node}" is not allowed to update configSource to a new non-nil configSource')
    if (after.get("taints") or []) != (before.get("taints") or []):
        raise change.forbid(f'node "{node}" is not allowed to modify taints')
    if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):
        raise change.forbid(f'node "{node}" is not allowed to modify ownerReferences')
    if labels := _forbidden_labels(new, old):
        raise change.forbid(f"is not allowed to modify labels: {', '.join(labels)}")


def _forbidden_labels(new: Plain, old: Plain | None) -> list[str]:
    """The labels that this write changes and a node may not set."""
    before = (old["metadata"].get("labels") or {}) if old else {}
    after = new["metadata"].get("labels") or {}
    changed = (key for key in sorted({*before, *after}) if before.get(key) != after.get(key))
    return [key for key in changed if not _is_own(key)]


def _is_own(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _below(domain, _RESTRICTED):
        return False
    if not (_below(domain, "kubernetes.io") or _below(domain, "k8s.io")):
        return True
    return key in _OWN_LABELS or any(_below(domain, each) for each in _OWN_DOMAINS)


def _below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)


def _part(document: Any, name: str) -> Mapping[str, Any]:
    """A part of a document that was not validated yet; empty if it has another type."""
    found = document.get(name) if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _node_name(found: StoredObject | Mapping[str, Any] | None) -> str:
    document = found.document if isinstance(found, StoredObject) else found or {}
    return str((document.get("spec") or {}).get("nodeName") or "")
