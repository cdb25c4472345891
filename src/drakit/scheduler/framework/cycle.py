"""The state of one pod in one attempt, passed from extension point to extension point.

A plugin keeps what it worked out under its own name and reads nobody else's. The state goes with the pod into the
binding cycle, where other pods' attempts cannot touch it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from drakit.api.objects.pods import Pod


class CycleState:
    """`pod` is the pod as it was taken from the queue; `assumed` how it will look on its node.

    A plugin's `reserve` may replace `assumed`: what the pod's status will say counts in the ledger from then on.
    """

    __slots__ = ("_data", "assumed", "document", "pod", "skip_filter", "skip_score")

    def __init__(self, pod: Pod, document: Any = None) -> None:
        self.pod = pod
        self.assumed = pod
        self.document = document  # the whole pod as JSON, where a patch needs it
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self._data: dict[str, Any] = {}

    def fork(self) -> CycleState:
        """Another state with the same content, for a what-if: what plugins put into it later is not seen by this."""
        forked = CycleState(self.pod, self.document)
        forked.assumed = self.assumed
        forked.skip_filter, forked.skip_score = set(self.skip_filter), set(self.skip_score)
        forked._data = dict(self._data)
        return forked

    def put(self, plugin: str, value: Any) -> None:
        self._data[plugin] = value

    def get(self, plugin: str) -> Any:
        """What the plugin put, or None."""
        return self._data.get(plugin)


def on_node(pod: Pod, node: str) -> Pod:
    """The pod as it will be when it is bound."""
    return replace(pod, spec=replace(pod.spec, node_name=node))
