"""The solver of one layout: the checks that come first, then the search.

In:  what is in use of the pools of a node.
Out: the answer, which depends on nothing else.
"""

from __future__ import annotations

from functools import cached_property, reduce
from operator import or_

from drakit.allocator.inventory.usage import Usages
from drakit.allocator.search.answer import HasExpired, SearchAnswer, SearchResult
from drakit.allocator.search.bounds import Outlook
from drakit.allocator.search.checks import precheck
from drakit.allocator.search.layouts import Layout
from drakit.allocator.search.occupancy import Occupancy
from drakit.allocator.search.search import Search


class Solver:
    """Keeps what all searches on a layout have in common."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._outlooks: dict[tuple[int, bool], Outlook] = {}
        self._latest: Occupancy | None = None

    @cached_property
    def _refusal(self) -> SearchAnswer | None:
        """An answer that no use of devices can change."""
        return precheck(self.layout)

    @cached_property
    def _failing(self) -> int:
        return reduce(or_, self.layout.failing, 0)

    def solve(self, usages: Usages, expired: HasExpired | None = None) -> SearchAnswer:
        if self._refusal:
            return self._refusal
        found = self.begin(usages, expired).run()
        # Admin access looks at a device beside its users. It takes one with room where there is one, as Kubernetes
        # does; where there is none, it needs no room.
        if found.result is SearchResult.NONE and self._shared_admin:
            return self.begin(usages, expired, admin_room=False).run()
        return found

    @cached_property
    def _shared_admin(self) -> bool:
        """Whether admin access is asked for a device that may be exhausted."""
        layout = self.layout
        return any(each.admin and layout.usable[each.index] & layout.shared for each in layout.plan.alternatives)

    def begin(self, usages: Usages, expired: HasExpired | None = None, *, admin_room: bool = True) -> Search:
        """A search that has not run yet."""
        occupancy = self._occupancy(usages)
        return Search(self._outlook(occupancy, admin_room=admin_room), occupancy, expired)

    def _occupancy(self, usages: Usages) -> Occupancy:
        """Little changes between two pods, so the latest occupancy is reused as far as it still holds."""
        if self._latest is None:
            self.layout.prepare()
            self._latest = Occupancy(self.layout, usages)
        else:
            self._latest = self._latest.after(usages)
        return self._latest

    def _outlook(self, occupancy: Occupancy, *, admin_room: bool) -> Outlook:
        """The outlook of a search. It differs only in those devices that are in use and on which selectors fail."""
        hidden = occupancy.held & self._failing
        found = self._outlooks.get((hidden, admin_room))
        if found is None:
            found = self._outlooks[hidden, admin_room] = Outlook(self.layout, hidden, admin_room=admin_room)
        return found
