"""Why a pod was not placed, in one sentence of upstream's.

In:  what plugins said: before any node was looked at, about single nodes, or about the chosen one.
Out: `0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims.`, and the plugins that an event must
     convince before the pod is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from drakit.scheduler.framework import Code, NodeInfo, PluginStatus

NO_NODES = "no nodes available to schedule pods"
_NONE: frozenset[str] = frozenset()


class SchedulingRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended that placed nothing.

    `can_help`: the plugins that act when nothing fits are asked, with `rejections`: nodes by name. `node` is set when
    plugins have to unreserve there. `is_soon`: the pod is tried again after its backoff,
    whatever happens meanwhile.
    """

    status: PluginStatus
    message: str
    plugins: frozenset[str] = _NONE
    pending: frozenset[str] = _NONE
    rejections: Mapping[str, PluginStatus] = {}
    can_help: bool = False
    node: str = ""
    is_soon: bool = False

    @property
    def is_error(self) -> bool:
        return not self.status.is_rejected

    def with_more(self, sentence: str) -> SchedulingRefusal:
        """And one more sentence for people."""
        if not sentence:
            return self
        # What a plugin that tried to help says ends without a full stop, as upstream.
        said = self.message if self.message.endswith(".") else f"{self.message}."
        return msgspec.structs.replace(self, message=f"{said} {sentence}")

    def with_help(self, help_: PluginStatus) -> SchedulingRefusal:
        """The same refusal with the result of PostFilter."""
        message = f"{self.message} {help_.message}" if help_.message else self.message
        return msgspec.structs.replace(self, message=message, is_soon=help_.code is Code.ERROR)


def failed(status: PluginStatus, *, node: str = "") -> SchedulingRefusal:
    """A plugin failed."""
    return SchedulingRefusal(status=status, message=status.message, node=node)


def without_nodes() -> SchedulingRefusal:
    return SchedulingRefusal(status=PluginStatus.unresolvable(NO_NODES), message=NO_NODES)


def of_all(status: PluginStatus, nodes: Sequence[NodeInfo], *, plugins: frozenset[str] = _NONE) -> SchedulingRefusal:
    """Refused before any node was looked at."""
    rejecting, pending = _by_code((status,))
    return SchedulingRefusal(
        status=status,
        message=f"{_head(len(nodes))} {status.message}.",
        plugins=rejecting | plugins,
        pending=pending,
        rejections={node.name: status for node in nodes},
        can_help=True,
    )


def of_each(
    rejections: Mapping[str, PluginStatus], total: int, *, plugins: frozenset[str] = _NONE
) -> SchedulingRefusal:
    """Refused node by node; what `plugins` left out from the start is missing in `rejections`."""
    rejecting, pending = _by_code(rejections.values())
    counts = Counter(reason for status in rejections.values() for reason in status.reasons)
    if plugins and total > len(rejections):
        counts[f"node(s) didn't satisfy plugin(s) {in_brackets(plugins)}"] += total - len(rejections)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return SchedulingRefusal(
        status=PluginStatus(Code.UNSCHEDULABLE),
        message=f"{_head(total)} {reasons}." if reasons else _head(total),
        plugins=rejecting | plugins,
        pending=pending,
        rejections=rejections,
        can_help=True,
    )


def of_chosen(status: PluginStatus, node: str) -> SchedulingRefusal:
    """Refused on the node that had been chosen."""
    rejecting, pending = _by_code((status,))
    reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
    message = f"{_head(1)} {reasons}." if reasons else _head(1)
    return SchedulingRefusal(status=status, message=message, plugins=rejecting, pending=pending, node=node)


def in_brackets(names: Iterable[str]) -> str:
    return f"[{' '.join(sorted(names))}]"


def _head(nodes: int) -> str:
    return f"0/{nodes} nodes are available:"


def _by_code(statuses: Iterable[PluginStatus]) -> tuple[frozenset[str], frozenset[str]]:
    """The plugins that refused, and those that wait for something under way."""
    named = {(each.plugin, each.code is Code.PENDING) for each in statuses if each.plugin}
    return frozenset(name for name, waits in named if not waits), frozenset(name for name, waits in named if waits)
