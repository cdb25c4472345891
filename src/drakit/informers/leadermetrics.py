"""Metrics of leader election, under the names that upstream gives them.

In:  what electors tell.
Out: `leader_election_*` with the lease's name as label, in the registry that was passed in.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge


class _Families:
    """Registered once per registry: a registry refuses the same name twice."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.leading = Gauge(
            "leader_election_master_status",
            "Whether this process leads by the lease of that name: 0 is a standby, 1 the leader.",
            ["name"],
            registry=registry,
        )
        self.slow = Counter(
            "leader_election_slowpath_total",
            "How often the leader had to look at its lease before it could renew it.",
            ["name"],
            registry=registry,
        )


_FAMILIES: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class LeaderMetrics:
    """Of one elector."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        families = _FAMILIES.get(registry)
        if families is None:
            families = _FAMILIES[registry] = _Families(registry)
        self._leading = families.leading.labels(name)
        self._slow = families.slow.labels(name)

    def lead(self, leading: bool) -> None:
        self._leading.set(leading)

    def looked(self) -> None:
        self._slow.inc()
