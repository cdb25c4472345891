"""Constraints of pods that have none of their own: the replicas of one set are spread.

In:  the args of the plugin, ReplicaSets.
Out: constraints with the selector of the pod's ReplicaSet; none for pods without one.
"""

from __future__ import annotations

import msgspec

from drakit.api.objects.pods import Pod, TopologySpreadConstraint
from drakit.client import REPLICA_SETS, Key
from drakit.informers import Informers
from drakit.scheduler.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from drakit.scheduler.plugins.topology.terms import SCHEDULE_ANYWAY, Constraints, constraints_of

SYSTEM = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY
    ),
)
"""What Kubernetes asks for where nobody says otherwise."""


class SpreadDefaults:
    def __init__(self, informers: Informers, args: PodTopologySpreadArgs) -> None:
        self.system = args.defaulting_type == SYSTEM_DEFAULTING
        self._constraints = SYSTEM if self.system else args.default_constraints
        self._sets = informers.of(REPLICA_SETS) if self._constraints else None

    def concern(self, pod: Pod) -> bool:
        """Whether the pod may have some; cheap."""
        owner = pod.metadata.controller
        return self._sets is not None and owner is not None and owner.kind == "ReplicaSet"

    def of(self, pod: Pod, when_unsatisfiable: str) -> Constraints:
        owner = pod.metadata.controller
        if self._sets is None or owner is None or not self.concern(pod):
            return ()
        found = self._sets.cache.get(Key(pod.metadata.namespace, owner.name))
        if found is None or found.view.spec.selector is None:
            return ()
        selector = found.view.spec.selector
        asked = tuple(msgspec.structs.replace(each, label_selector=selector) for each in self._constraints)
        spec = msgspec.structs.replace(pod.spec, topology_spread_constraints=asked)
        return constraints_of(msgspec.structs.replace(pod, spec=spec), when_unsatisfiable)
