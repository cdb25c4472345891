"""The inventory: everything an allocation depends on, kept up to date object by object.

In:  slices, nodes, classes, taint rules and claims, as they come and go.
Out: per node the pools that it sees, in the order of evaluation; and forks for what-if, which share everything.

Updating one slice touches its pool alone. Everything held is immutable, so a fork copies no object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from drakit.allocator.inventory.contents import Contents
from drakit.allocator.inventory.ledger import Ledger, Usage
from drakit.allocator.inventory.pools import Place, Pool, PoolKey, PoolView, Settings, Views
from drakit.allocator.inventory.shapes import Shapes
from drakit.allocator.inventory.tables import Cache, Table
from drakit.allocator.inventory.taintrules import Rules, read_rule
from drakit.allocator.search.answers import Journal
from drakit.allocator.search.plans import Plans
from drakit.api import AllocationResult, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from drakit.base.gates import FeatureGates
from drakit.selectors import Gates

_MAX_ALIKE = 20_000


class Inventory:
    """Not safe for use by several threads at once; a fork is independent of its origin."""

    def __init__(self, gates: FeatureGates | None = None) -> None:
        self.gates = gates or FeatureGates.defaults()
        self.plans = Plans()
        self.journal: Journal | None = Journal()
        self.ledger = Ledger(consumable=self.gates.enabled("DRAConsumableCapacity"), on_change=self._used)
        partitions = self.gates.enabled("DRAPartitionableDevices")
        self._settings = Settings(Shapes(), Contents(), Rules().taints_of, partitions)
        self._slices: Table[str, ResourceSlice] = Table()
        self._pools: Table[PoolKey, Pool] = Table()
        self._nodes: Table[str, Place] = Table()
        self._classes: Table[str, DeviceClass] = Table()
        self._rules: Table[str, DeviceTaintRule] = Table()
        # Pools by the nodes that their slices name, and those that other nodes may see too.
        self._homes: Table[str, frozenset[PoolKey]] = Table()
        self._wide: Table[PoolKey, None] = Table()
        self._troubled: Table[PoolKey, None] = Table()
        self._views: Cache[str, Views] = Cache()
        self._alike: dict[Views, Views] = {}  # nodes that see the same pools share one tuple

    def fork(self) -> Inventory:
        """An inventory with the same content; changes to one are not seen by the other."""
        forked = Inventory.__new__(Inventory)
        forked.gates, forked.plans, forked._settings = self.gates, self.plans, self._settings
        forked.journal = None
        forked.ledger = self.ledger.fork()
        forked._slices, forked._pools, forked._nodes = self._slices.fork(), self._pools.fork(), self._nodes.fork()
        forked._classes, forked._rules = self._classes.fork(), self._rules.fork()
        forked._homes, forked._wide, forked._troubled = self._homes.fork(), self._wide.fork(), self._troubled.fork()
        forked._views, forked._alike = self._views.fork(), self._alike
        return forked

    def put(self, value: Node | ResourceSlice | DeviceClass | DeviceTaintRule | ResourceClaim) -> None:
        """Take in an object of any kind that counts."""
        match value:
            case Node():
                self.put_node(value)
            case ResourceSlice():
                self.put_slice(value)
            case DeviceClass():
                self.put_class(value)
            case DeviceTaintRule():
                self.put_rule(value)
            case ResourceClaim():
                self.put_claim(value)

    # Nodes

    def put_node(self, node: Node) -> None:
        place = Place(node.metadata.name, node.metadata.labels)
        if self._nodes.get(place.name) != place:
            self._nodes.put(place.name, place)
            self._forget(place.name)

    def remove_node(self, name: str) -> None:
        self._nodes.drop(name)
        self._forget(name)

    @property
    def nodes(self) -> Mapping[str, Place]:
        return self._nodes.rows

    def place(self, node: str) -> Place:
        """The node as it is known; one that is not known has no labels."""
        return self._nodes.rows.get(node) or Place(node, {})

    # Slices

    def put_slice(self, each: ResourceSlice) -> None:
        before = self._slices.get(each.metadata.name)
        if before is not None and _key(before) != _key(each):
            self.remove_slice(each.metadata.name)
        self._slices.put(each.metadata.name, each)
        key = _key(each)
        pool = self._pools.get(key)
        others = [other for other in pool.slices if other.metadata.name != each.metadata.name] if pool else []
        self._put_pool(Pool(key, [*others, each], self._settings))

    def remove_slice(self, name: str) -> None:
        each = self._slices.drop(name)
        pool = self._pools.get(_key(each)) if each else None
        if pool:
            self._put_pool(
                Pool(pool.key, [other for other in pool.slices if other.metadata.name != name], self._settings)
            )

    @property
    def slices(self) -> Mapping[str, ResourceSlice]:
        return self._slices.rows

    @property
    def pools(self) -> Mapping[PoolKey, Pool]:
        return self._pools.rows

    def _put_pool(self, pool: Pool) -> None:
        before = self._pools.get(pool.key)
        if pool.slices:
            self._pools.put(pool.key, pool)
        else:
            self._pools.drop(pool.key)
        old = before.homes if before else frozenset()
        for node in old - pool.homes:
            self._homes.put(node, (self._homes.get(node) or frozenset()) - {pool.key})
        for node in pool.homes - old:
            self._homes.put(node, (self._homes.get(node) or frozenset()) | {pool.key})
        changed = _mark(self._wide, pool.key, on=pool.wide) or pool.wide
        troubled = not pool.wide and pool.foreign is not None and pool.foreign.problem is not None
        changed = _mark(self._troubled, pool.key, on=troubled) or troubled or changed
        if changed:
            self._forget_all()
        for node in old | pool.homes:
            self._forget(node)

    # Classes and taint rules

    def put_class(self, each: DeviceClass) -> None:
        self._classes.put(each.metadata.name, each)
        self._reread_rules(each.metadata.name)

    def remove_class(self, name: str) -> None:
        self._classes.drop(name)
        self._reread_rules(name)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        return self._classes.rows

    def put_rule(self, rule: DeviceTaintRule) -> None:
        self._rules.put(rule.metadata.name, rule)
        self._apply_rules()

    def remove_rule(self, name: str) -> None:
        if self._rules.drop(name) is not None:
            self._apply_rules()

    @property
    def rules(self) -> Mapping[str, DeviceTaintRule]:
        return self._rules.rows

    def _reread_rules(self, class_name: str) -> None:
        if any(_class_of(rule) == class_name for rule in self._rules.rows.values()):
            self._apply_rules()

    def _apply_rules(self) -> None:
        if not (self.gates.enabled("DRADeviceTaints") and self.gates.enabled("DRADeviceTaintRules")):
            return
        gates = Gates(self.gates.enabled("DRAListTypeAttributes"), self.gates.enabled("DRAConsumableCapacity"))
        read = [read_rule(self._rules.rows[name], self._classes.rows, gates) for name in sorted(self._rules)]
        rules = Rules(rule for rule in read if rule)
        settings = self._settings = replace(self._settings, taints_of=rules.taints_of)
        self._forget_all()
        for key, pool in list(self._pools.rows.items()):
            self._pools.put(key, pool.resettled(settings))

    # Claims

    def put_claim(self, claim: ResourceClaim) -> None:
        self.ledger.put(claim)

    def remove_claim(self, uid: str) -> None:
        self.ledger.remove(uid)

    def begin_allocation(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        self.ledger.begin(claim, allocation)

    def end_allocation(self, uid: str) -> None:
        self.ledger.end(uid)

    # What a node sees

    def views(self, node: str) -> Views:
        """The pools that the node sees: those without binding conditions first, then by driver and pool name."""
        found = self._views.rows.get(node)
        if found is None:
            found = self._look(self.place(node))
            if len(self._alike) > _MAX_ALIKE:
                self._alike.clear()
            found = self._alike.setdefault(found, found)
            self._views.rows[node] = found
        return found

    def _forget(self, node: str) -> None:
        self._views.forget(node)
        if self.journal is not None:
            self.journal.add((node,))

    def _forget_all(self) -> None:
        self._views.forget_all()
        if self.journal is not None:
            self.journal.add_all()

    def _used(self, key: PoolKey) -> None:
        """The use of a pool changed. Only the nodes that its slices name can tell, unless others see it too."""
        pool = self._pools.get(key)
        if pool is None or self.journal is None:
            return
        if pool.wide:
            self.journal.add_all()
        else:
            self.journal.add(pool.homes)

    @property
    def known_views(self) -> Mapping[str, Views]:
        """What was worked out already; a node that is missing has not been looked at since it changed."""
        return self._views.rows

    def usages(self, views: Iterable[PoolView]) -> tuple[Usage, ...]:
        return tuple(map(self.ledger.usage, views))

    def _look(self, place: Place) -> Views:
        pools = self._pools.rows
        local = self._homes.get(place.name) or frozenset()
        seen = [pools[key].view(place) for key in {*local, *self._wide.rows}]
        seen += [pools[key].foreign for key in self._troubled.rows if key not in local]
        return tuple(sorted((view for view in seen if view is not None), key=_order))


def _order(view: PoolView) -> tuple[bool, PoolKey]:
    return view.binding, view.key


def _key(each: ResourceSlice) -> PoolKey:
    return each.spec.driver, each.spec.pool.name


def _class_of(rule: DeviceTaintRule) -> str | None:
    return rule.spec.device_selector.device_class_name if rule.spec.device_selector else None


def _mark(table: Table[PoolKey, None], key: PoolKey, *, on: bool) -> bool:
    """Set or clear a mark; tell whether that changed anything."""
    if on == (key in table):
        return False
    if on:
        table.put(key, None)
    else:
        table.drop(key)
    return True
