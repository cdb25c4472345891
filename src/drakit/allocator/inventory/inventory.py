"""The inventory: everything an allocation depends on, kept up to date object by object.

In:  slices, nodes, classes, taint rules and claims, as they come and go.
Out: per node the pools that it sees, in the order of evaluation, and what is in use of them; and forks for what-if,
     which share everything.

Updating one slice touches its pool alone. Everything held is immutable, so a fork copies no object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from drakit.allocator.inventory.contents import DeviceLists
from drakit.allocator.inventory.deadlines import check_time
from drakit.allocator.inventory.ledger import Ledger
from drakit.allocator.inventory.nodes import NodeDevices
from drakit.allocator.inventory.pools import NodeLabels, Pool, PoolKey, PoolSettings, PoolView, Views
from drakit.allocator.inventory.selectors import selector_gates
from drakit.allocator.inventory.shapes import DeviceShapes
from drakit.allocator.inventory.tables import SharedCache, Table
from drakit.allocator.inventory.taintrules import TaintRules, read_rule
from drakit.allocator.inventory.usage import Usage, Usages
from drakit.allocator.inventory.wideviews import WideViews, ordered
from drakit.api import AllocationResult, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates

_MAX_ALIKE = 20_000
_MAX_LOG = 10_000


class Inventory:
    """Not safe for use by several threads at once; a fork is independent of its origin."""

    def __init__(self, gates: FeatureGates | None = None) -> None:
        """Without gates, those of Kubernetes' defaults."""
        self.gates = gates or FeatureGates.defaults()
        self.ledger = Ledger(consumable=self.gates.enabled("DRAConsumableCapacity"))
        self.remembered: dict[object, Any] = {}
        """What searches remember, by who remembers it; shared by forks, and no part of the content."""
        partitions = self.gates.enabled("DRAPartitionableDevices")
        self._settings = PoolSettings(DeviceShapes(), DeviceLists(), TaintRules().taints_of, partitions)
        self._slices: Table[str, ResourceSlice] = Table()
        self._pools: Table[PoolKey, Pool] = Table()
        self._nodes: Table[str, NodeLabels] = Table()
        self._classes: Table[str, DeviceClass] = Table()
        self._rules: Table[str, DeviceTaintRule] = Table()
        # Pools by the nodes that their slices name, and those that other nodes may see too.
        self._homes: Table[str, frozenset[PoolKey]] = Table()
        self._wide: Table[PoolKey, None] = Table()
        self._troubled: Table[PoolKey, None] = Table()
        # Views of wide pools, and those of these pools that have changed since.
        self._wide_views: WideViews | None = None
        self._stale: set[PoolKey] = set()
        self._views: SharedCache[str, Views] = SharedCache()
        self._alike: dict[Views, Views] = {}  # nodes that see the same pools share one tuple
        self._states: SharedCache[str, NodeDevices] = SharedCache()
        # The latest states by identity of their views, each with how much of the log it has taken in. The log has the
        # pools that many nodes reach, each time their use changed: such a state costs what changed, not what it sees.
        self._latest: dict[int, tuple[NodeDevices, int]] = {}
        # The nodes that share views, by identity of these: when many nodes get another state, all get it at once.
        self._sharing: dict[int, tuple[Views, dict[str, None]]] = {}
        self._log: list[PoolKey] = []

    def fork(self) -> Inventory:
        """An inventory with the same content; changes to one are not seen by the other."""
        forked = Inventory.__new__(Inventory)
        forked.gates, forked.remembered, forked._settings = self.gates, self.remembered, self._settings
        forked.ledger = self.ledger.fork()
        forked._slices, forked._pools, forked._nodes = self._slices.fork(), self._pools.fork(), self._nodes.fork()
        forked._classes, forked._rules = self._classes.fork(), self._rules.fork()
        forked._homes, forked._wide, forked._troubled = self._homes.fork(), self._wide.fork(), self._troubled.fork()
        forked._wide_views, forked._stale = self._wide_views, set(self._stale)
        forked._views, forked._alike = self._views.fork(), self._alike
        # `_latest` belongs to one log. A fork starts both anew: its states are found by node, in `_states`.
        forked._states, forked._latest, forked._log, forked._sharing = self._states.fork(), {}, [], {}
        return forked

    def put(self, value: object) -> None:
        """Take in an object of any kind that counts: typed, or what a reader of manifests returns (its `view` counts).

        Raise UsageError for everything else: an object that is dropped silently would make every answer wrong.
        """
        match getattr(value, "view", value):
            case Node() as node:
                self.put_node(node)
            case ResourceSlice() as each:
                self.put_slice(each)
            case DeviceClass() as each:
                self.put_class(each)
            case DeviceTaintRule() as rule:
                self.put_rule(rule)
            case ResourceClaim() as claim:
                self.put_claim(claim)
            case other:
                kinds = "Node, ResourceSlice, DeviceClass, DeviceTaintRule or ResourceClaim"
                raise UsageError(f"an inventory takes a {kinds}, not a {type(other).__name__}")

    # Nodes

    def put_node(self, node: Node) -> None:
        labels = NodeLabels(node.metadata.name, node.metadata.labels)
        # Nodes are written every few seconds (heartbeats). Only other labels can change which devices they see.
        if self._nodes.get(labels.name) != labels:
            self._nodes.put(labels.name, labels)
            self._forget(labels.name)

    def remove_node(self, name: str) -> None:
        self._nodes.drop(name)
        self._forget(name)

    @property
    def nodes(self) -> Mapping[str, NodeLabels]:
        return self._nodes.rows

    def labels_of(self, node: str) -> NodeLabels:
        """The node as it is known; one that is not known has no labels."""
        return self._nodes.rows.get(node) or NodeLabels(node, {})

    # Slices

    def put_slice(self, each: ResourceSlice) -> None:
        before = self._slices.get(each.metadata.name)
        # A slice that moved to another pool leaves the one it was in.
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
        changed = _set(self._wide, pool.key, on=pool.wide) or pool.wide
        # A pool with shared counters that is broken concerns nodes that have no slice in it: `All` fails there too.
        troubled = not pool.wide and pool.foreign is not None and pool.foreign.problem is not None
        changed = _set(self._troubled, pool.key, on=troubled) or troubled or changed
        if changed:
            wide, stale = self._wide_views, self._stale
            self._forget_all()
            # Made anew when a pool came, went or is wide no more. Otherwise all changes count when somebody asks next.
            if wide is not None and before is not None and before.wide and pool.wide and pool.slices:
                stale.add(pool.key)
                self._wide_views, self._stale = wide, stale
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
        gates = selector_gates(self.gates)
        read = [read_rule(self._rules.rows[name], self._classes.rows, gates) for name in sorted(self._rules)]
        rules = TaintRules(rule for rule in read if rule)
        # Rules can taint any device: every pool is made again. Rules change rarely, and shapes and lists are shared.
        settings = self._settings = replace(self._settings, taints_of=rules.taints_of)
        self._forget_all()
        for key, pool in list(self._pools.rows.items()):
            self._pools.put(key, pool.with_settings(settings))

    # Claims

    def put_claim(self, claim: ResourceClaim) -> None:
        self._used(self.ledger.put(claim))

    def remove_claim(self, uid: str) -> None:
        self._used(self.ledger.remove(uid))

    def begin_allocation(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        self._used(self.ledger.begin(claim, allocation))

    def end_allocation(self, uid: str) -> None:
        self._used(self.ledger.end(uid))

    # What a node sees

    def views(self, node: str) -> Views:
        """The pools that the node sees: those without binding conditions first, then by driver and pool name."""
        found = self._views.rows.get(node)
        if found is None:
            found = self._look(self.labels_of(node))
            if len(self._alike) > _MAX_ALIKE:
                self._alike.clear()
            # Interned: nodes with the same views then share states, answers and searches.
            found = self._alike.setdefault(found, found)
            self._views.rows[node] = found
        return found

    def state(self, node: str) -> NodeDevices:
        """The pools that the node sees and what is in use of them, as one object until something of it changes."""
        found = self._states.rows.get(node)
        if found is None:
            views = self.views(node)
            if self._wide:
                # Here, not where views are made: a fork may have made them, and both have them then. The tuple is
                # kept, so its id stays its own.
                self._sharing.setdefault(id(views), (views, {}))[1][node] = None
            found = self._states.rows[node] = self._state_of(views)
        return found

    def _state_of(self, views: Views) -> NodeDevices:
        """Nodes that see the same pools are in the same state."""
        usage, read = self.ledger.usage, len(self._log)
        # The state keeps its views, so their id stays theirs.
        found = self._latest.get(id(views))
        if found is None:
            state = NodeDevices(views, Usages([self._usage(view) for view in views]))
        elif found[1] == read:
            return found[0]
        else:
            state = found[0].after(self._log[found[1] :], usage)
        self._latest[id(views)] = (state, read)
        if sharing := self._sharing.get(id(views)):
            # One step for all nodes: a pass over 100 of them with 2,000 pools takes 0.41 instead of 0.64 ms by this and
            # by what `Usages` knows (CPU time, medians of three runs in turn).
            self._states.rows.update(dict.fromkeys(sharing[1], state))
        return state

    def _usage(self, view: PoolView) -> Usage:
        check_time()
        return self.ledger.usage(view)

    @property
    def states(self) -> Mapping[str, NodeDevices]:
        """The states that were worked out already; a node that is missing has to be asked for by `state`."""
        return self._states.rows

    @property
    def changed_nodes(self) -> list[str]:
        """The nodes whose state changed, in order; another list means that all may have changed."""
        return self._states.forgotten

    def _forget(self, node: str) -> None:
        self._forget_state(node)
        views = self._views.rows.get(node)
        if views is not None and (sharing := self._sharing.get(id(views))):
            sharing[1].pop(node, None)
            if not sharing[1]:
                del self._sharing[id(views)]
        self._views.forget(node)

    def _forget_state(self, node: str) -> None:
        self._states.forget(node)
        views = self._views.rows.get(node)
        if views is not None:
            # The log has only pools that many nodes reach; a change to any other cannot be made up for from it.
            self._latest.pop(id(views), None)

    def _forget_all(self) -> None:
        self._wide_views, self._stale = None, set()
        self._views.forget_all()
        self._states.forget_all()
        self._latest.clear()
        self._sharing.clear()
        self._log.clear()

    def _used(self, changed: Iterable[PoolKey]) -> None:
        """The use of pools changed. Only the nodes that their slices name can tell, unless others see them too."""
        for key in changed:
            pool = self._pools.get(key)
            if pool is None:
                continue
            if pool.wide:
                self._states.forget_all()
                self._log.append(key)
                continue
            for node in pool.homes:
                self._forget_state(node)
        # States that have read a part of the log would miss the rest, so both are dropped together.
        if len(self._log) > _MAX_LOG:
            self._latest.clear()
            self._log.clear()

    def _look(self, node: NodeLabels) -> Views:
        pools, local = self._pools.rows, self._homes.get(node.name) or frozenset()
        if self._wide_views is None:
            self._wide_views = WideViews(pools[key] for key in self._wide.rows)
        elif self._stale:
            self._wide_views = self._wide_views.with_pools({key: pools[key] for key in self._stale})
            self._stale = set()
        wide = self._wide_views.of(node)
        # A wide pool that also names this node is among `wide` already.
        near = [pools[key].view(node) for key in local if key not in self._wide]
        near += [pools[key].foreign for key in self._troubled.rows if key not in local]
        return ordered([*wide, *near]) if near else wide


def _key(each: ResourceSlice) -> PoolKey:
    return each.spec.driver, each.spec.pool.name


def _class_of(rule: DeviceTaintRule) -> str | None:
    return rule.spec.device_selector.device_class_name if rule.spec.device_selector else None


def _set(table: Table[PoolKey, None], key: PoolKey, *, on: bool) -> bool:
    """Put a key into a table or take it out; return whether that changed anything."""
    if on == (key in table):
        return False
    if on:
        table.put(key, None)
    else:
        table.drop(key)
    return True
