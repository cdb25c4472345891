"""The order in which nodes are searched: zone after zone in turn, so that the first nodes found are spread.

In:  nodes that come, go and change their zone.
Out: their names, one of each zone, then the second of each zone, and so on; zones and nodes as they came.
"""

from __future__ import annotations

from itertools import chain, zip_longest

from drakit.api.objects.cluster import Node

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"  # what objects of old clusters still carry
_BETA_REGION = "failure-domain.beta.kubernetes.io/region"

ZoneKey = tuple[str, str]


def zone_of(node: Node) -> ZoneKey:
    """Region and zone; empty where a node does not say."""
    labels = node.metadata.labels
    return labels.get(_BETA_REGION, labels.get(REGION, "")), labels.get(_BETA_ZONE, labels.get(ZONE, ""))


class NodeOrder:
    """Invariant: every name is in exactly one place, and no place is empty."""

    def __init__(self) -> None:
        self._zones: dict[ZoneKey, dict[str, None]] = {}
        self._of: dict[str, ZoneKey] = {}

    def put(self, node: Node) -> bool:
        """Add or move a node; return whether the order changed."""
        name, place = node.metadata.name, zone_of(node)
        if self._of.get(name) == place:
            return False
        self.remove(name)
        self._of[name] = place
        self._zones.setdefault(place, {})[name] = None
        return True

    def remove(self, name: str) -> None:
        place = self._of.pop(name, None)
        if place is None:
            return
        names = self._zones[place]
        del names[name]
        if not names:
            del self._zones[place]

    def names(self) -> list[str]:
        rounds = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(rounds) if name is not None]
