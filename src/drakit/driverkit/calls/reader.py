"""Claims from the server, with the driver's own identity.

In:  namespace, name and uid, as a kubelet sends them.
Out: the claim, checked: the same object, allocated, for this node. The client speaks the newest version that there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import NodeSelector, ResourceClaim, is_allocated
from drakit.base.errors import DrakitError, Terminal, Unavailable
from drakit.base.nodeselectors import matches
from drakit.client import CLAIMS, NODES, Client, NotFound
from drakit.driverkit.claims import ClaimRef


class ClaimUnusable(Terminal):
    """The claim cannot be prepared as it is."""


class ClaimReader:
    def __init__(self, client: Client, node_name: str) -> None:
        self._client = client
        self._node_name = node_name

    async def fetch(self, ref: ClaimRef) -> ResourceClaim:
        """Raise ClaimUnusable, or Unavailable when the server does not answer."""
        claim = await self._find(ref)
        if claim is None:
            raise ClaimUnusable(f"claim {ref}: not found")
        # Deleted and created again under the same name: the kubelet still means the old one.
        if claim.metadata.uid != ref.uid:
            raise ClaimUnusable(f"claim {ref}: it was replaced: uid is {claim.metadata.uid}, not {ref.uid}")
        if not is_allocated(claim):
            raise ClaimUnusable(f"claim {ref}: not allocated")
        await self._check_node(ref, claim)
        return claim

    async def find(self, ref: ClaimRef) -> ResourceClaim | None:
        """The claim if it is there still; one of the same name and another uid is another claim. Raise Unavailable."""
        claim = await self._find(ref)
        return claim if claim is not None and claim.metadata.uid == ref.uid else None

    async def _find(self, ref: ClaimRef) -> ResourceClaim | None:
        try:
            return await self._client.get(CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return None
        except DrakitError as error:
            raise Unavailable(f"claim {ref}: {error}") from error

    async def _check_node(self, ref: ClaimRef, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        selector = allocation.node_selector if allocation else None
        if selector is None:
            return
        labels = await self._labels(ref) if _asks_for_labels(selector) else {}
        if not matches(selector, name=self._node_name, labels=labels):
            raise ClaimUnusable(f"claim {ref}: allocated for other nodes than {self._node_name}")

    async def _labels(self, ref: ClaimRef) -> Mapping[str, str]:
        try:
            node = await self._client.get(NODES, self._node_name)
        except DrakitError as error:
            raise Unavailable(f"claim {ref}: node {self._node_name}: {error}") from error
        return node.view.metadata.labels


def _asks_for_labels(selector: NodeSelector) -> bool:
    """Most selectors just name the node, and need no look at it."""
    return any(term.match_expressions for term in selector.node_selector_terms)
