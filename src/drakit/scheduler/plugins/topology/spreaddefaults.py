"""Constraints of pods that have none of their own: pods of one service or set are spread.

In:  the args of the plugin; Services, ReplicaSets, StatefulSets and ReplicationControllers.
Out: constraints that select by what these select by together; none for pods that none of them selects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from drakit.api import from_plain
from drakit.api.objects.pods import Pod, TopologySpreadConstraint
from drakit.base.labels import LabelSelector, LabelSelectorRequirement
from drakit.client import REPLICA_SETS, SERVICES, Key, Resource
from drakit.client.resources import resource
from drakit.informers import Informer, Informers
from drakit.scheduler.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from drakit.scheduler.plugins.topology.terms import SCHEDULE_ANYWAY, Constraints, constraints_of

SYSTEM = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY
    ),
)
"""What Kubernetes asks for where nobody says otherwise."""
_CONTROLLER = ("v1", "ReplicationController")
_OWNERS: Mapping[tuple[str, str], Resource[Any]] = {
    ("apps/v1", "ReplicaSet"): REPLICA_SETS,
    ("apps/v1", "StatefulSet"): resource("statefulsets.apps"),
    _CONTROLLER: resource("replicationcontrollers"),
}


class SpreadDefaults:
    def __init__(self, informers: Informers, args: PodTopologySpreadArgs) -> None:
        self.system = args.defaulting_type == SYSTEM_DEFAULTING
        self._constraints = SYSTEM if self.system else args.default_constraints
        self._owners: dict[tuple[str, str], Informer[Any]] = {}
        self._services: Informer[Any] | None = None
        # Nobody is asked of what nobody needs.
        if self._constraints:
            self._owners = {kind: informers.of(each) for kind, each in _OWNERS.items()}
            self._services = informers.of(SERVICES)

    def concern(self, pod: Pod) -> bool:
        """Whether the pod may have some; cheap."""
        owner = pod.metadata.controller
        if owner is not None and (owner.api_version, owner.kind) in self._owners:
            return True
        return self._services is not None and len(self._services.cache) > 0 and bool(pod.metadata.labels)

    def of(self, pod: Pod, when_unsatisfiable: str) -> Constraints:
        selector = self._selector(pod) if self.concern(pod) else None
        if selector is None:
            return ()
        asked = tuple(replace(each, label_selector=selector, match_label_keys=()) for each in self._constraints)
        return constraints_of(
            replace(pod, spec=replace(pod.spec, topology_spread_constraints=asked)), when_unsatisfiable
        )

    def _selector(self, pod: Pod) -> LabelSelector | None:
        """What all that select the pod ask for; None when they ask for nothing, as upstream takes it."""
        labels = self._of_services(pod)
        kind, asked = self._of_owner(pod)
        if kind == _CONTROLLER:
            labels, asked = {**labels, **asked}, {}
        own = from_plain(LabelSelector, asked)
        if not labels:
            return own if own.match_labels or own.match_expressions else None
        # Of two demands on one label both hold, so neither may take the place of the other.
        also = (
            LabelSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in own.match_labels.items()
        )
        return LabelSelector(match_labels=labels, match_expressions=(*also, *own.match_expressions))

    def _of_owner(self, pod: Pod) -> tuple[tuple[str, str], Mapping[str, Any]]:
        """The kind of the pod's controller, and the selector that it has."""
        owner = pod.metadata.controller
        informer = self._owners.get((owner.api_version, owner.kind)) if owner is not None else None
        if owner is None or informer is None:
            return ("", ""), {}
        found = informer.cache.get(Key(pod.metadata.namespace, owner.name))
        asked = (found.document.get("spec") or {}).get("selector") if found is not None else None
        return (owner.api_version, owner.kind), asked or {}

    def _of_services(self, pod: Pod) -> dict[str, str]:
        labels: dict[str, str] = {}
        for each in self._services.cache.all(pod.metadata.namespace) if self._services is not None else ():
            asked: Mapping[str, str] = (each.document.get("spec") or {}).get("selector") or {}
            if asked.items() <= pod.metadata.labels.items():
                labels.update(asked)
        return labels
