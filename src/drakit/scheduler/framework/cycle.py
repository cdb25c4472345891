"""What is known of one pod in one attempt, handed from extension point to extension point.

A plugin keeps what it worked out under its own name and reads nobody else's. The state goes with the pod into the
binding cycle, where other pods' attempts cannot touch it.
"""

from __future__ import annotations

from typing import Any

from drakit.api.pods import Pod


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

    def put(self, plugin: str, value: Any) -> None:
        self._data[plugin] = value

    def get(self, plugin: str) -> Any:
        """What the plugin put, or None."""
        return self._data.get(plugin)
