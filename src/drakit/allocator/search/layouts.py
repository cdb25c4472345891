"""Layouts: the devices of a node in the terms of one plan. Nodes that a plan cannot tell apart have the same layout.

In:  a plan and the views of a node.
Out: per device DeviceTraits (which alternatives select it, on which they fail, what it costs), per pool PoolTraits, and
     for the pools of a node a Layout: bit sets over all its devices. Each is made once and shared by all that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.inventory.contents import DeviceList, QueryResult
from drakit.allocator.inventory.deadlines import check_time
from drakit.allocator.inventory.pools import Views
from drakit.allocator.inventory.shapes import CounterKey
from drakit.allocator.search.plans import Plan
from drakit.allocator.search.traits import DeviceTraits, PoolKind, PoolTraits, Row, traits_of

_MAX_VIEWS = 1_000
"""Views are kept by their tuples; those that the inventory has replaced must not pile up."""


class Layout:
    """The devices of a node in the order of evaluation, as one plan sees them. Bit i stands for device i.

    `offsets` are the positions of the first device of each pool, `pool_of` the pool of each device. The bit sets
    `selected`, `failing` and `usable` are by alternative.
    """

    def __init__(self, plan: Plan, pools: tuple[PoolTraits, ...]) -> None:
        self.plan = plan
        self.pools = pools
        self._kinds = [pool.kind for pool in pools]
        self.traits = tuple([traits for kind in self._kinds for traits in kind.devices])
        self.offsets: list[int] = []
        self.pool_of: list[int] = []
        for number, kind in enumerate(self._kinds):
            self.offsets.append(len(self.pool_of))
            self.pool_of += [number] * len(kind.devices)

    def prepare(self) -> None:
        """Work out now what every search needs, in steps between which the time may be over."""
        for name in _NEEDED:
            check_time()
            getattr(self, name)

    def _joined(self, sets: Iterable[int]) -> int:
        """One set of what is a set in each pool."""
        joined = 0
        for offset, each in zip(self.offsets, sets, strict=True):
            if each:
                joined |= each << offset
        return joined

    def _by_alternative(self, sets: Callable[[PoolKind], tuple[int, ...]]) -> tuple[int, ...]:
        each_pool = [sets(kind) for kind in self._kinds]
        return tuple(
            [self._joined([each[index] for each in each_pool]) for index in range(len(self.plan.alternatives))]
        )

    def _by_constraint(self, sets: Callable[[PoolTraits], list[int]]) -> tuple[int, ...]:
        each_pool = [sets(pool) for pool in self.pools]
        return tuple([self._joined([each[index] for each in each_pool]) for index in range(len(self.plan.constraints))])

    def devices_of(self, pool: int) -> tuple[int, int]:
        """The position of a pool's first device, and the one behind its last."""
        first = self.offsets[pool]
        return first, first + len(self._kinds[pool].devices)

    def values_of(self, device: int) -> tuple[Values | None, ...]:
        """Per constraint of the plan, the device's values of its attribute; None: it does not have the attribute."""
        pool = self.pool_of[device]
        position = device - self.offsets[pool]
        return tuple([row[position] for row in self.pools[pool].rows])

    @cached_property
    def selected(self) -> tuple[int, ...]:
        return self._by_alternative(lambda kind: kind.selected)

    @cached_property
    def failing(self) -> tuple[int, ...]:
        return self._by_alternative(lambda kind: kind.failing)

    @cached_property
    def usable(self) -> tuple[int, ...]:
        return self._by_alternative(lambda kind: kind.usable)

    @cached_property
    def shared(self) -> int:
        """Devices that serve several allocations at once."""
        return self._joined([kind.shared for kind in self._kinds])

    @cached_property
    def counters(self) -> tuple[tuple[int, CounterKey], ...]:
        """All counters of the node's pools, by position of the pool."""
        return tuple([(number, key) for number, kind in enumerate(self._kinds) for key in kind.counters])

    @cached_property
    def _first_counters(self) -> tuple[int, ...]:
        return tuple(accumulate([len(kind.counters) for kind in self._kinds], initial=0))

    @cached_property
    def consumes(self) -> Mapping[int, tuple[tuple[int, int], ...]]:
        """What each device takes of the counters, by position of the counter."""
        return _Consumes(self)

    @cached_property
    def consumers(self) -> int:
        """The devices that take something of a counter."""
        return self._joined([kind.consumers for kind in self._kinds])

    @cached_property
    def dearest(self) -> tuple[int, ...]:
        """Per counter the most that a device takes of it; a counter that nobody uses is short when it is below zero."""
        return tuple([amount for kind in self._kinds for amount in kind.dearest])

    def dearer(self, counter: int, left: int) -> int:
        """The devices that take more of a counter than it has left. What shared ones take may be paid already."""
        pool, _ = self.counters[counter]
        return self._kinds[pool].dearer(counter - self._first_counters[pool], left) << self.offsets[pool]

    @cached_property
    def value_masks(self) -> tuple[Mapping[object, int], ...]:
        """Per constraint the devices that have a value."""
        tables: list[dict[object, int]] = [{} for _ in self.plan.constraints]
        for offset, pool in zip(self.offsets, self.pools, strict=True):
            for table, values in zip(tables, pool.values, strict=True):
                for value, devices in values.items():
                    table[value] = table.get(value, 0) | devices << offset
        return tuple(tables)

    @cached_property
    def having(self) -> tuple[int, ...]:
        """Per constraint the devices that have the attribute at all."""
        return self._by_constraint(lambda pool: pool.having)

    @cached_property
    def comparable(self) -> tuple[int, ...]:
        """Per constraint the devices whose attribute has a value that can be compared."""
        return self._by_constraint(lambda pool: pool.comparable)

    @cached_property
    def _single_valued(self) -> tuple[int, ...]:
        """Per constraint the devices whose attribute has one value."""
        return self._by_constraint(lambda pool: pool.single_valued)

    def values_among(self, constraint: int, devices: int) -> Iterator[object]:
        """The values that devices have for a constraint, those of the first device first."""
        masks, single = self.value_masks[constraint], self._single_valued[constraint]
        while devices:
            low = devices & -devices
            values = self.values_of(low.bit_length() - 1)[constraint] or ()
            yield from values
            devices ^= low
            # Whoever has this one value and no other has been answered for. Lists with further values stay.
            if len(values) == 1:
                devices &= ~(masks[next(iter(values))] & single)

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
        return tuple(tuple(each) for each in found)


class _Consumes(dict[int, tuple[tuple[int, int], ...]]):
    """Worked out for a device when it is looked at: of thousands in wide pools a search takes a few."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def __missing__(self, device: int) -> tuple[tuple[int, int], ...]:
        layout = self._layout
        pool = layout.pool_of[device]
        first, found = layout._first_counters[pool], layout.pools[pool].kind.consumes[device - layout.offsets[pool]]
        if first:
            found = tuple([(first + counter, amount) for counter, amount in found])
        self[device] = found
        return found


_RARE = ("budgets", "budgets_of")
_NEEDED = tuple(name for name, each in vars(Layout).items() if isinstance(each, cached_property) and name not in _RARE)


class Layouts:
    """The layouts of one plan. Traits and layouts are interned: what is equal is one object."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # By what they depend on, and by themselves: resources that differ may come to the same for this plan.
        self._traits: dict[object, DeviceTraits] = {}
        self._kinds: dict[object, PoolKind] = {}
        self._pools: dict[tuple[PoolKind, tuple[Row, ...]], PoolTraits] = {}
        self._by_result: dict[QueryResult, PoolTraits] = {}
        self._by_results: dict[tuple[QueryResult, ...], Layout] = {}
        self._by_pools: dict[tuple[PoolTraits, ...], Layout] = {}
        # The inventory gives nodes that see the same pools the same tuple, which is kept here so that its id stays its.
        self._by_identity: dict[int, tuple[Views, Layout]] = {}

    def of(self, views: Views) -> Layout:
        known = self._by_identity.get(id(views))
        if known is None:
            if len(self._by_identity) >= _MAX_VIEWS:
                self._by_identity.clear()
            known = self._by_identity[id(views)] = (views, self._of(views))
        return known[1]

    def _of(self, views: Views) -> Layout:
        query = self._plan.query
        results = tuple([view.content.result(query) for view in views])
        found = self._by_results.get(results)
        if found is None:
            pools = tuple([self._pool(view.content, result) for view, result in zip(views, results, strict=True)])
            # Query results that differ may come to the same for this plan.
            found = self._by_results[results] = self._by_pools.get(pools) or Layout(self._plan, pools)
            self._by_pools[pools] = found
        return found

    def __len__(self) -> int:
        return max(len(self._pools), len(self._by_result), len(self._by_results))

    def clear(self) -> None:
        for each in (self._traits, self._kinds, self._pools, self._by_result, self._by_results, self._by_pools):
            each.clear()
        self._by_identity.clear()

    def _pool(self, content: DeviceList, result: QueryResult) -> PoolTraits:
        """Lists with the same result are the same to a plan."""
        found = self._by_result.get(result)
        if found is None:
            check_time()
            rows = tuple([content.values(each.attribute, lists=each.lists) for each in self._plan.constraints])
            key = (self._kind(content), rows)
            found = self._pools.get(key)
            if found is None:
                found = self._pools[key] = PoolTraits(*key)
            self._by_result[result] = found
        return found

    def _kind(self, content: DeviceList) -> PoolKind:
        matches = tuple([content.matches(each.selectors) for each in self._plan.alternatives])
        key = (content.resources, matches, content.problem)
        found = self._kinds.get(key)
        if found is None:
            devices = tuple([self._device(content, position, matches) for position in range(len(content.shapes))])
            same = (devices, content.resources.counters, content.problem)
            found = self._kinds[key] = self._kinds.get(same) or PoolKind(self._plan, *same)
            self._kinds[same] = found
        return found

    def _device(self, content: DeviceList, position: int, checked: tuple[tuple[int, int], ...]) -> DeviceTraits:
        matching = failing = 0
        for index, (matches, fails) in enumerate(checked):
            matching |= (matches >> position & 1) << index
            failing |= (fails >> position & 1) << index
        resources, taints = content.shapes[position].resources, content.taints[position]
        reachable = bool(content.reachable >> position & 1)
        key = (resources, matching, failing, taints, reachable)
        found = self._traits.get(key)
        if found is None:
            made = traits_of(self._plan, resources, matching, failing, taints, reachable=reachable)
            found = self._traits[key] = self._traits.setdefault(made, made)
        return found


def bits_of(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
