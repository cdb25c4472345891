"""The extension points of a scheduling attempt, in the order in which they are called.

pre_enqueue             may the pod enter the queue at all?
pre_filter              once per attempt: what the pod needs, which nodes come into question
filter                  many nodes at once: which do not fit, and why
post_filter             when none fits: can something be done about it?
score                   many nodes at once: which fits best
reserve / unreserve     take what the pod gets, in memory / give it back, also what was written since
permit                  may the pod be bound now? (a gang that is not complete: no)
pre_bind                write what must be there before the pod is bound
bind                    bind

Everything up to `permit`, but for `post_filter`, is synchronous: an attempt sees one state of the cluster, and what it
reserves is taken when the next attempt begins. `pre_bind` and `bind` run apart, many pods at a time.

A plugin implements the protocols of the points that it has a part in; its `name` is the one in configuration files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from drakit.api.objects.pods import Pod
from drakit.scheduler.framework.cycle import CycleState
from drakit.scheduler.framework.events import Interest
from drakit.scheduler.framework.nodes import NodeInfo
from drakit.scheduler.framework.statuses import PluginStatus

Rejections = Mapping[str, PluginStatus]
"""The status of each refused node by name; a node that is not in it fits."""


@runtime_checkable
class Plugin(Protocol):
    @property
    def name(self) -> str: ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """A plugin that names the events which can help a pod that it refused. Without it, any event wakes the pod."""

    def interests(self) -> Sequence[Interest]: ...


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    def pre_enqueue(self, pod: Pod) -> PluginStatus:
        """SUCCESS, or why the pod must wait outside of the queue. Cheap, and free of side effects."""
        ...


@runtime_checkable
class PreFilter(Plugin, Protocol):
    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        """A status, and the names of the only nodes that can work (None: any). SKIP: `filter` has nothing to do."""
        ...


@runtime_checkable
class Filter(Plugin, Protocol):
    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        """The nodes of these that do not fit. A status of ERROR ends the attempt.

        Called again with other nodes until enough fit; with what-if nodes (pods removed) by preemption.
        """
        ...


@runtime_checkable
class PostFilter(Plugin, Protocol):
    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> PluginStatus:
        """SUCCESS: something was done, the pod is tried again soon. UNSCHEDULABLE: nothing can be done."""
        ...


RemovePods = Callable[[CycleState, Collection[str]], None]
"""Makes of a state after `pre_filter` what it would be if the pods of these uids were gone."""


@runtime_checkable
class PreemptionExtensions(Plugin, Protocol):
    """A plugin that accounts for something no NodeInfo has, as devices. Preemption asks it; all is synchronous."""

    def suppose(self, pod: Pod) -> RemovePods:
        """What removes pods from a state of that pod's attempt, on the cluster as it is now."""
        ...

    def hold(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        """Keep what the pod would get on the node, in a state that may be supposed, from pods of lower priority.

        `state.assumed` is made to look as the pod will on its node.
        """
        ...

    def let_go(self, uid: str) -> None:
        """Keep nothing for that pod any more."""
        ...


@runtime_checkable
class Score(Plugin, Protocol):
    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int] | int:
        """A score from 0 to 100 for each node, higher is better, normalized over these nodes; or one for all."""
        ...


@runtime_checkable
class Reserve(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        """Take it, in memory."""
        ...

    async def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Undo `reserve` at once, then what `pre_bind` wrote. Never fails: it logs and goes on.

        Called for every plugin, in reverse, also for those whose `reserve` was not reached; safe to repeat. Does not
        give up control before memory is as if the pod had never been reserved.
        """
        ...


@runtime_checkable
class Permit(Plugin, Protocol):
    def permit(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus: ...


@runtime_checkable
class PreBind(Plugin, Protocol):
    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        """May take long. Not SUCCESS: the pod is unreserved and tried again."""
        ...


@runtime_checkable
class WaitsBeforeBind(Plugin, Protocol):
    """A plugin whose `pre_bind` may wait for others. Meanwhile the pod's `nominatedNodeName` names its node."""

    def waits(self, state: CycleState, pod: Pod, node: str) -> bool: ...


@runtime_checkable
class Bind(Plugin, Protocol):
    async def bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus: ...
