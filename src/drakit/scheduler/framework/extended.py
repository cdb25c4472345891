"""Extended resources that devices provide instead of the node: what other plugins may ask about them."""

from __future__ import annotations

from typing import Protocol

from drakit.scheduler.framework.nodes import NodeInfo


class ExtendedResources(Protocol):
    def is_backed_by_class(self, resource: str, node: NodeInfo, /) -> bool:
        """Whether a class of devices is asked for the resource on that node.

        True where the node itself advertises none of it and a class has it as its explicit or implicit name. Whoever
        checks amounts then leaves the resource alone.
        """
        ...

    def is_advertised(self, resource: str, /) -> bool:
        """Whether some node advertises more than none of the resource itself."""
        ...

    def totals(self, resource: str, node: NodeInfo, /) -> tuple[int, int]:
        """How many devices that node has of the class behind the resource, and how many of these are in use."""
        ...


class NoDevices:
    """The answers of a cluster in which no class provides an extended resource."""

    def is_backed_by_class(self, *_: object) -> bool:
        return False

    def is_advertised(self, *_: object) -> bool:
        return True

    def totals(self, *_: object) -> tuple[int, int]:
        return 0, 0
