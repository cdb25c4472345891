"""Profiles: a pool in the terms of one plan, so that pools which a plan cannot tell apart are one and the same.

In:  a plan and the views of a node.
Out: per device a Trait (which alternatives select it, on which they fail, what it costs), per pool a Profile, and for
     the pools of a node a Layout: bit sets over all its devices. Each is made once and shared by all nodes alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from drakit.allocator.inventory.capacity import consumption
from drakit.allocator.search.constraints import Values
from drakit.base.taints import untolerated

if TYPE_CHECKING:
    from drakit.allocator.inventory.contents import Content, Problem
    from drakit.allocator.inventory.pools import PoolView
    from drakit.allocator.inventory.shapes import Build, CounterKey, Shape
    from drakit.allocator.search.bounds import Outlook
    from drakit.allocator.search.plans import Alternative, Plan
    from drakit.allocator.search.search import Answer
    from drakit.api import DeviceTaint

Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Trait:
    """A device as one plan sees it; the bits stand for the plan's alternatives.

    selected: every selector matches, the node may use it, and empty it is large enough.
    failing:  a selector could not be evaluated on it.
    usable:   selected, and neither a taint nor a gate is in the way.
    """

    selected: int
    failing: int
    usable: int
    values: tuple[Values | None, ...]
    consumes: tuple[tuple[CounterKey, int], ...]
    shared: bool
    capacity: Amounts
    takes: tuple[Amounts | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A pool as one plan sees it. Interned: equal pools are one object."""

    traits: tuple[Trait, ...]
    counters: tuple[CounterKey, ...]
    problem: Problem | None


def _profile_of(plan: Plan, content: Content) -> Profile:
    traits = tuple(_trait_of(plan, content, position) for position in range(len(content.shapes)))
    key = (tuple(map(id, traits)), content.makeup.counters, content.problem)
    found = plan.profiles.get(key)
    if found is None:
        found = plan.profiles[key] = Profile(traits, content.makeup.counters, content.problem)
    return found


def _trait_of(plan: Plan, content: Content, position: int) -> Trait:
    made = _make_trait(
        plan,
        content.shapes[position],
        tuple(content.values(each.attribute, lists=each.lists)[position] for each in plan.constraints),
        content.taints[position],
        reachable=bool(content.reachable >> position & 1),
    )
    return plan.traits.setdefault(made, made)


def _make_trait(
    plan: Plan, shape: Shape, values: tuple[Values | None, ...], taints: tuple[DeviceTaint, ...], *, reachable: bool
) -> Trait:
    features, build = plan.features, shape.build
    shared = build.shared and features.consumable
    selected = failing = usable = 0
    takes: list[Amounts | None] = []
    for each in plan.alternatives if features.binding or not build.binding else ():
        verdict = each.selection.verdict(shape)
        taken = _taken(each, build) if features.consumable else ()
        takes.append(taken)
        bit = 1 << each.index
        if verdict.fails:
            failing |= bit
        elif verdict.matches and reachable and taken is not None:
            selected |= bit
            tainted = features.taints and untolerated(taints, each.tolerations) is not None
            if not tainted and (features.partitions or not build.consumes):
                usable |= bit
    return Trait(
        selected,
        failing,
        usable,
        values,
        tuple(build.consumes.items()) if features.partitions else (),
        shared,
        tuple((name, each.value.nanos) for name, each in build.capacity.items()) if shared else (),
        tuple(takes) if shared else (),
    )


def _taken(wanted: Alternative, build: Build) -> Amounts | None:
    amounts = consumption(wanted.capacity, build.capacity)
    return None if amounts is None else tuple((name, amount.nanos) for name, amount in amounts.items())


class Layout:
    """The devices of a node in the order of evaluation, as one plan sees them. Bit i stands for device i.

    `answers` remembers searches by what is in use, `left` the devices that they leave free; like everything here they
    are the same for all nodes that look alike.
    """

    def __init__(self, plan: Plan, profiles: tuple[Profile, ...]) -> None:
        self.plan = plan
        self.profiles = profiles
        self.traits = tuple(trait for profile in profiles for trait in profile.traits)
        self.offsets: list[int] = []
        self.pool_of: list[int] = []
        for number, profile in enumerate(profiles):
            self.offsets.append(len(self.pool_of))
            self.pool_of += [number] * len(profile.traits)
        # What comes before any search: an answer that no use of devices can change.
        self.checked = False
        self.refusal: Answer | None = None
        self.outlooks: dict[int, Outlook] = {}
        self.answers: dict[object, Answer] = {}
        self.left: dict[object, int] = {}

    def mask(self, bits: str, alternative: int) -> int:
        """The devices whose trait has the bit of the alternative set."""
        found = 0
        for position, trait in enumerate(self.traits):
            found |= (getattr(trait, bits) >> alternative & 1) << position
        return found

    @cached_property
    def selected(self) -> tuple[int, ...]:
        return tuple(self.mask("selected", each.index) for each in self.plan.alternatives)

    @cached_property
    def failing(self) -> tuple[int, ...]:
        return tuple(self.mask("failing", each.index) for each in self.plan.alternatives)

    @cached_property
    def usable(self) -> tuple[int, ...]:
        return tuple(self.mask("usable", each.index) for each in self.plan.alternatives)

    @cached_property
    def shared(self) -> int:
        """Devices that serve several allocations at once."""
        return sum(trait.shared << position for position, trait in enumerate(self.traits))

    @cached_property
    def counters(self) -> tuple[tuple[int, CounterKey], ...]:
        """All counters of the node's pools, by position of the pool."""
        return tuple((number, key) for number, profile in enumerate(self.profiles) for key in profile.counters)

    @cached_property
    def consumes(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """What each device takes of the counters, by position of the counter."""
        index = {counter: position for position, counter in enumerate(self.counters)}
        return tuple(
            tuple((index[self.pool_of[position], key], amount) for key, amount in trait.consumes)
            for position, trait in enumerate(self.traits)
        )

    @cached_property
    def consumers(self) -> int:
        """The devices that take something of a counter."""
        return sum(bool(each) << position for position, each in enumerate(self.consumes))

    @cached_property
    def prices(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per counter the amounts that devices take, and which devices. What shared ones take may be paid already."""
        tables: list[dict[int, int]] = [{} for _ in self.counters]
        for position, (trait, consumes) in enumerate(zip(self.traits, self.consumes, strict=True)):
            for counter, amount in consumes if not trait.shared else ():
                tables[counter][amount] = tables[counter].get(amount, 0) | 1 << position
        return tuple(tuple(table.items()) for table in tables)

    @cached_property
    def dearest(self) -> tuple[int, ...]:
        """Per counter the most that a device takes of it; a counter that nobody uses is short when it is below zero."""
        return tuple(max((amount for amount, _ in prices), default=0) for prices in self.prices)

    @cached_property
    def value_masks(self) -> tuple[Mapping[object, int], ...]:
        """Per constraint the devices that have a value."""
        tables: list[dict[object, int]] = [{} for _ in self.plan.constraints]
        for position, trait in enumerate(self.traits):
            for table, values in zip(tables, trait.values, strict=True):
                for value in values or ():
                    table[value] = table.get(value, 0) | 1 << position
        return tuple(tables)

    @cached_property
    def having(self) -> tuple[int, ...]:
        """Per constraint the devices that have the attribute at all."""
        return tuple(
            sum((trait.values[each.index] is not None) << position for position, trait in enumerate(self.traits))
            for each in self.plan.constraints
        )

    @cached_property
    def comparable(self) -> tuple[int, ...]:
        """Per constraint the devices whose attribute has a value that can be compared."""
        return tuple(
            sum(bool(trait.values[each.index]) << position for position, trait in enumerate(self.traits))
            for each in self.plan.constraints
        )

    @cached_property
    def budgets(self) -> tuple[tuple[int, ...], ...]:
        """Counters that are added up: each by itself, and those of one name in all the sets of a pool."""
        groups: dict[object, list[int]] = {}
        for position, (pool, (_, name)) in enumerate(self.counters):
            groups.setdefault((pool, name), []).append(position)
        together = [tuple(group) for group in groups.values() if len(group) > 1]
        return (*((position,) for position in range(len(self.counters))), *together)

    @cached_property
    def budgets_of(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per counter the budgets that it is part of."""
        found: list[list[tuple[int, ...]]] = [[] for _ in self.counters]
        for budget in self.budgets:
            for counter in budget:
                found[counter].append(budget)
        return tuple(map(tuple, found))


def layout_of(plan: Plan, views: tuple[PoolView, ...]) -> Layout:
    """The layout of a node's views, remembered with the plan."""
    question = plan.question
    readings = tuple([view.content.reading(question) for view in views])
    found = plan.layouts.get(readings)
    if found is None:
        profiles = tuple(_profile_of(plan, view.content) for view in views)
        # Readings that differ may come to the same for this plan.
        found = plan.layouts[readings] = plan.layouts.get(profiles) or Layout(plan, profiles)
        plan.layouts[profiles] = found
    return found


def bits_of(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
