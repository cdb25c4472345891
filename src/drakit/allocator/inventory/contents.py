"""Contents: the devices of a pool without their names, shared by all pools that are alike.

In:  shapes and taints of the devices of a view, in order.
Out: a Content, and what selectors and constraints make of its devices as bit sets and rows of values. Each is found out
     once per content and holds for every plan that asks the same.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from drakit.allocator.inventory.shapes import Build, CounterKey, Shape
from drakit.allocator.search.constraints import Values, attribute_values
from drakit.api import DeviceTaint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.allocator.inventory.selectors import Selection
    from drakit.allocator.search.constraints import Constraint

Taints = tuple[tuple[DeviceTaint, ...], ...]
_MAX_REMEMBERED = 256
_MAX_READINGS = 20_000


class Problem(Enum):
    """Why no device of a pool can be used."""

    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class Question:
    """What a plan wants to know of contents: which devices its selectors accept, which values are compared."""

    __slots__ = ("attributes", "key", "selections")

    def __init__(self, selections: Sequence[Selection], constraints: Sequence[Constraint]) -> None:
        self.selections = tuple(selections)
        self.attributes = tuple((each.attribute, each.lists) for each in constraints)
        # One text, because a text remembers its hash.
        self.key = "\n\0\0".join((*(each.key for each in selections), *map(str, self.attributes)))


class Reading:
    """The answer of contents to a question. It says nothing but who answers alike: those of one makeup share it.

    A plan asks one question, so contents with the same reading are the same to it.
    """

    __slots__ = ()


class Makeup:
    """All of a content that does not hang on attributes. Interned; there are as many as there are kinds of machines."""

    __slots__ = ("__weakref__", "builds", "counters", "reachable", "readings", "taints")

    def __init__(
        self, builds: tuple[Build, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> None:
        self.builds = builds
        self.taints = taints
        self.reachable = reachable
        self.counters = counters
        self.readings: dict[object, Reading] = {}

    def reading(self, key: object) -> Reading:
        found = self.readings.get(key)
        if found is None:
            if len(self.readings) >= _MAX_READINGS:
                self.readings.clear()
            found = self.readings[key] = Reading()
        return found


class Content:
    """What a search can tell of a pool. Interned.

    Devices whose own node selection leaves a node out are listed all the same, as selectors run on them first; the bits
    of `reachable` are those of the other ones.
    """

    __slots__ = ("__weakref__", "_readings", "_values", "_verdicts", "makeup", "problem", "shapes")

    def __init__(self, shapes: tuple[Shape, ...], makeup: Makeup, problem: Problem | None = None) -> None:
        self.shapes = shapes
        self.makeup = makeup
        self.problem = problem
        self._readings: dict[str, Reading] = {}
        self._verdicts: dict[str, tuple[int, int]] = {}
        self._values: dict[tuple[str, bool], tuple[Values | None, ...]] = {}

    @property
    def taints(self) -> Taints:
        return self.makeup.taints

    @property
    def reachable(self) -> int:
        return self.makeup.reachable

    def reading(self, question: Question) -> Reading:
        found = self._readings.get(question.key)
        if found is None:
            if len(self._readings) >= _MAX_REMEMBERED:
                self._readings.clear()
            found = self._readings[question.key] = self._read(question)
        return found

    def _read(self, question: Question) -> Reading:
        key = (
            self.problem,
            tuple([self.verdicts(each) for each in question.selections]),
            tuple([self.values(name, lists=lists) for name, lists in question.attributes]),
        )
        return self.makeup.reading(key)

    def verdicts(self, selection: Selection) -> tuple[int, int]:
        """The devices that the selectors accept, and those on which one of them fails."""
        found = self._verdicts.get(selection.key)
        if found is None:
            if len(self._verdicts) >= _MAX_REMEMBERED:
                self._verdicts.clear()
            found = self._verdicts[selection.key] = self._judge(selection)
        return found

    def _judge(self, selection: Selection) -> tuple[int, int]:
        matching = failing = 0
        for position, shape in enumerate(self.shapes):
            verdict = selection.verdict(shape)
            matching |= verdict.matches << position
            failing |= verdict.fails << position
        return matching, failing

    def values(self, attribute: str, *, lists: bool) -> tuple[Values | None, ...]:
        """The values of an attribute, device by device."""
        key = (attribute, lists)
        found = self._values.get(key)
        if found is None:
            if len(self._values) >= _MAX_REMEMBERED:
                self._values.clear()
            found = self._values[key] = tuple(
                attribute_values(shape.driver, shape.device.attributes, attribute, lists=lists) for shape in self.shapes
            )
        return found


def unusable(problem: Problem) -> Content:
    """The content of a pool that serves nobody."""
    return Content((), _NOTHING, problem)


_NOTHING = Makeup((), (), 0, ())
EMPTY = Content((), _NOTHING)


class Contents:
    """The contents in use; one that no view holds any more is forgotten."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[object, Content] = WeakValueDictionary()
        self._makeups: WeakValueDictionary[object, Makeup] = WeakValueDictionary()

    def of(
        self, shapes: tuple[Shape, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> Content:
        makeup = self._makeup(tuple(shape.build for shape in shapes), taints, reachable, counters)
        content = self._known.get((shapes, makeup))
        if content is None:
            content = self._known[shapes, makeup] = Content(shapes, makeup)
        return content

    def _makeup(
        self, builds: tuple[Build, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> Makeup:
        key = (builds, taints, reachable, counters)
        makeup = self._makeups.get(key)
        if makeup is None:
            makeup = self._makeups[key] = Makeup(*key)
        return makeup
