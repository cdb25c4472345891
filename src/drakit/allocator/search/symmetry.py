"""Symmetry: which devices, and which groups of devices with counters of their own, are interchangeable.

In:  a layout.
Out: a key for a state of the search. Keys are equal when states differ only in which interchangeable devices are taken.

Ten partitions of each of eight cards are 80 devices. What matters is how many cards are left in which condition, not
which cards. Two devices are of one kind when they are in one pool and have the same trait. Two groups (the devices that
share counters, directly or through each other) are alike when they list the same devices in the same order on counters
of their own. Which devices of a kind, or which of several groups alike, were taken makes no difference to what can be
allocated next, because all that is left is tried in every combination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drakit.allocator.search.layouts import Layout


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """The kinds of a group as bit sets, and its counters, both in the order in which they first appear."""

    kinds: tuple[int, ...]
    counters: tuple[int, ...]


class Symmetry:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        alike: dict[object, list[DeviceGroup]] = {}
        for members in self._connected():
            alike.setdefault(self._signature(members), []).append(self._group(members))
        self._classes = tuple(tuple(groups) for groups in alike.values())
        kinds = sum(len(group.kinds) for groups in self._classes for group in groups)
        # Whether any two devices or groups are interchangeable at all.
        self.helps = kinds < len(layout.traits) or any(len(groups) > 1 for groups in self._classes)

    def key(self, left: int, free: int, counters: Sequence[int]) -> object:
        """`left` may be taken for the request at hand, `free` for any later one; `counters` is what is left of each."""
        return tuple(
            [
                _state(groups[0], left, free, counters)
                if len(groups) == 1
                else tuple(sorted([_state(group, left, free, counters) for group in groups]))
                for groups in self._classes
            ]
        )

    def _connected(self) -> Iterator[list[int]]:
        """The devices in groups: those that share a counter, directly or through others, and those without, by kind."""
        # Union-find: counters are nodes too, so devices that share one end up under the same root.
        parent: dict[object, object] = {}

        def root(each: object) -> object:
            while parent.setdefault(each, each) != each:
                each = parent[each]
            return each

        layout = self._layout
        for position, trait in enumerate(layout.traits):
            consumes = layout.consumes[position]
            home: object = ("kind", layout.pool_of[position], *_kind(layout, position))
            if consumes or trait.shared:
                home = ("device", position)
            for counter, _ in consumes:
                parent[root(("counter", counter))] = root(home)
            parent[root(("device", position))] = root(home)
        groups: dict[object, list[int]] = {}
        for position in range(len(layout.traits)):
            groups.setdefault(root(("device", position)), []).append(position)
        yield from groups.values()

    def _signature(self, members: list[int]) -> object:
        """Equal for groups alike. A shared device is counted by itself, so its group is like no other."""
        layout = self._layout
        if any(layout.traits[position].shared for position in members):
            return members[0]
        numbers: dict[int, int] = {}
        listed = []
        for position in members:
            trait = layout.traits[position]
            use = tuple(
                (numbers.setdefault(counter, len(numbers)), amount) for counter, amount in layout.consumes[position]
            )
            listed.append((trait.selected, trait.failing, trait.usable, layout.values_of(position), use))
        return layout.pool_of[members[0]], tuple(listed)

    def _group(self, members: list[int]) -> DeviceGroup:
        layout = self._layout
        kinds: dict[object, int] = {}
        counters: dict[int, None] = {}
        for position in members:
            key = position if layout.traits[position].shared else _kind(layout, position)
            kinds[key] = kinds.get(key, 0) | 1 << position
            counters |= dict.fromkeys(counter for counter, _ in layout.consumes[position])
        return DeviceGroup(tuple(kinds.values()), tuple(counters))


def _kind(layout: Layout, device: int) -> tuple[int, object]:
    """Equal for devices that a plan cannot tell apart. Traits are interned, and the layout keeps them."""
    return id(layout.traits[device]), layout.values_of(device)


def _state(group: DeviceGroup, left: int, free: int, counters: Sequence[int]) -> tuple[int, ...]:
    state = [counters[counter] for counter in group.counters]
    for kind in group.kinds:
        state.append((left & kind).bit_count())
        state.append((free & kind).bit_count())
    return tuple(state)
