"""The control loops of a cluster: claims and everything that lives and dies with them.

`Controllers(client).run()` follows the server and acts until it is cancelled; behind a leader election, one replica of
several does. Each controller is level-triggered: killed after any write and started again, it ends in the same state.
"""

from drakit.controllers.claims import ClaimController
from drakit.controllers.composition import ALL, BY_NAME, Controllers, Make, chosen, run_all
from drakit.controllers.context import ControllerContext, LoopOwner
from drakit.controllers.eviction import DeviceTaintEviction
from drakit.controllers.garbage import FinishedPods, GarbageCollector, NamespaceController
from drakit.controllers.nodes import NodeHealth, NodeRemains, NodeTaintEviction
from drakit.controllers.podgroups import PodGroupProtection
from drakit.controllers.poolstatus import PoolStatusController
from drakit.controllers.quotas import QuotaController
from drakit.controllers.replicasets import ReplicaSetController
from drakit.controllers.serviceaccounts import ServiceAccountController

__all__ = [
    "ALL",
    "BY_NAME",
    "ClaimController",
    "ControllerContext",
    "Controllers",
    "DeviceTaintEviction",
    "FinishedPods",
    "GarbageCollector",
    "LoopOwner",
    "Make",
    "NamespaceController",
    "NodeHealth",
    "NodeRemains",
    "NodeTaintEviction",
    "PodGroupProtection",
    "PoolStatusController",
    "QuotaController",
    "ReplicaSetController",
    "ServiceAccountController",
    "chosen",
    "run_all",
]
