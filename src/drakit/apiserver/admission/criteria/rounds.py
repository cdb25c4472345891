"""Which webhooks and policies are called a second time for one change.

In:  what was called in the first round, and whether the object changed afterwards.
Out: those with reinvocationPolicy IfNeeded that have not seen the object as it is now.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, field

from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.chain import ObjectChange


@dataclass(slots=True)
class Rounds:
    """`asked` are those that may be called again, `again` those that have to be. One plugin's memory of one change."""

    asked: set[Hashable] = field(default_factory=set)
    again: set[Hashable] = field(default_factory=set)
    left: Plain | None = None

    def begin(self, change: ObjectChange) -> None:
        # Another plugin changed the object after the first round of this one.
        if change.repeated and self.left != change.new:
            self.changed()

    def changed(self) -> None:
        self.again |= self.asked
        self.asked = set()

    def end(self, change: ObjectChange) -> None:
        # A copy: plugins change the object in place.
        self.left = copy.deepcopy(change.new)
