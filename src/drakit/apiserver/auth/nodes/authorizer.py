"""The node authorizer: a node may run its own pods, and touch nothing of other nodes.

In:  requests of users `system:node:<name>` in the group `system:nodes`.
Out: allow, or no opinion with the reason. The plugin NodeRestriction, which sees objects, narrows writes further.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drakit.api.exchange import User
from drakit.apiserver.auth.authorization import Attributes, AuthorizationResult, Decision
from drakit.apiserver.auth.nodes.graph import Relations
from drakit.apiserver.auth.rbac.rules import CompiledRule
from drakit.base import fieldselectors
from drakit.base.errors import UsageError

NODES = "system:nodes"
PREFIX = "system:node:"
LEASES = "kube-node-lease"
_READ = ("get", "list", "watch")
_OWN = ("get", "create", "update", "patch", "delete")
_ALLOW = AuthorizationResult(Decision.ALLOW)
_NO_OPINION = AuthorizationResult(Decision.NO_OPINION)


def node_of(user: User) -> str | None:
    """The node of a user `system:node:<name>`; None for other users."""
    if not user.name.startswith(PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(PREFIX)


class NodeAuthorizer:
    """Decides by relations between a node and objects. `rules` of the role `system:node` hold for everything else."""

    def __init__(self, relations: Relations, rules: tuple[CompiledRule, ...]) -> None:
        self._relations = relations
        self._rules = rules
        self._divided: Mapping[tuple[str, str], Callable[[str, Attributes], AuthorizationResult]] = {
            ("", "secrets"): self._read,
            ("", "configmaps"): self._read,
            ("", "persistentvolumeclaims"): self._get,
            ("", "persistentvolumes"): self._get,
            ("", "serviceaccounts"): self._account,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
            ("coordination.k8s.io", "leases"): self._lease,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("storage.k8s.io", "volumeattachments"): self._get,
        }

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return self.decide(attributes)

    def decide(self, asked: Attributes) -> AuthorizationResult:
        node = node_of(asked.user)
        if node is None:
            return _NO_OPINION
        if not node:
            return _unless(f'unknown node for user "{asked.user.name}"')
        divided = self._divided.get((asked.group, asked.resource)) if asked.is_resource else None
        if divided is not None:
            return divided(node, asked)
        return _ALLOW if any(rule.allows(asked) for rule in self._rules) else _NO_OPINION

    def _related(self, node: str, asked: Attributes) -> AuthorizationResult:
        if not asked.name:
            return _unless("No Object name found")
        if self._relations.related(node, asked.resource, asked.namespace, asked.name):
            return _ALLOW
        return _unless(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.verb != "get":
            return _unless("can only get individual resources of this type")
        if asked.subresource:
            return _unless("cannot get subresource")
        return self._related(node, asked)

    def _read(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.verb not in _READ:
            return _unless("can only read resources of this type")
        if asked.subresource:
            return _unless("cannot read subresource")
        if not asked.namespace:
            return _unless("can only read namespaced object of this type")
        return self._related(node, asked)

    def _account(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.verb == "get" and not asked.subresource:
            return self._read(node, asked)
        if asked.verb != "create" or not asked.name:
            return _unless("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _unless("can only create token subresource of serviceaccount")
        return self._related(node, asked)

    def _lease(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.verb not in _OWN:
            return _unless("can only get, create, update, patch, or delete a node lease")
        if asked.namespace != LEASES:
            return _unless(f'can only access leases in the "{LEASES}" system namespace')
        # The name of a new lease is not in the path. NodeRestriction checks it.
        if asked.verb != "create" and asked.name != node:
            return _unless("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _csi_node(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.verb not in _OWN:
            return _unless("can only get, create, update, patch, or delete a CSINode")
        if asked.subresource:
            return _unless("cannot authorize CSINode subresources")
        # The name of a new one is not in the path. NodeRestriction checks it.
        if asked.verb != "create" and asked.name != node:
            return _unless("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _slice(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.subresource:
            return _unless("cannot authorize ResourceSlice subresources")
        if asked.verb == "create":
            return _ALLOW  # NodeRestriction checks the node of the new slice
        if asked.verb in ("get", "update", "patch", "delete"):
            return self._related(node, asked)
        if asked.verb in ("watch", "list", "deletecollection"):
            if _selects(asked, node):
                return _ALLOW
            return _unless("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _unless(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
            "delete, deletecollection"
        )

    def _node(self, node: str, asked: Attributes) -> AuthorizationResult:
        if asked.subresource == "status" and asked.verb in ("update", "patch"):
            return _ALLOW
        if asked.subresource:
            return _NO_OPINION
        if asked.verb in ("create", "update", "patch"):
            return _ALLOW
        if asked.verb not in _READ:
            return _NO_OPINION
        if asked.name == node:
            return _ALLOW
        what = f"'{asked.name}'" if asked.name else "all nodes"
        return _unless(f"node '{node}' cannot read {what}, only its own Node object")

    def _pod(self, node: str, asked: Attributes) -> AuthorizationResult:
        if (asked.subresource, asked.verb) in _POD_WRITES:
            return _ALLOW
        if asked.subresource or asked.verb not in _READ:
            return _NO_OPINION
        if asked.verb == "get":
            return self._get(node, asked)
        if _selects(asked, node):
            return _ALLOW
        if asked.name:
            return self._related(node, asked)
        return _unless("can only list/watch pods with spec.nodeName field selector")


_POD_WRITES = frozenset(
    (("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create"))
)


def _selects(asked: Attributes, node: str) -> bool:
    """Whether the field selector limits the request to this node."""
    try:
        selector = fieldselectors.parse(asked.field_selector)
    except UsageError:
        return False
    return any(term.equal and term.field == "spec.nodeName" and term.value == node for term in selector.terms)


def _unless(reason: str) -> AuthorizationResult:
    return AuthorizationResult(Decision.NO_OPINION, reason)
