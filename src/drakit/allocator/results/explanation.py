"""The explanation of an allocation that failed.

In:  an inventory, the claims, a node, and the solver of its layout.
Out: Reasons. Nothing of this runs unless reasons are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.inventory.capacity import consumed_amount, problem, short_name
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.pools import Views
from drakit.allocator.inventory.usage import Usages
from drakit.allocator.results.builder import Site, site
from drakit.allocator.results.reasons import (
    Cause,
    ClaimReasons,
    DeviceRefusal,
    PoolTrouble,
    Reasons,
    RequestReasons,
)
from drakit.allocator.results.remedies import Fits, find_remedies
from drakit.allocator.search.answer import Pick
from drakit.allocator.search.bounds import Outlook
from drakit.allocator.search.constraints import Constraint
from drakit.allocator.search.layouts import Layout, bits_of
from drakit.allocator.search.occupancy import Occupancy
from drakit.allocator.search.options import Option
from drakit.allocator.search.plans import Alternative
from drakit.allocator.search.search import Search
from drakit.allocator.search.solver import Solver
from drakit.api import Device, ResourceClaim
from drakit.base.quantity import Format, Quantity
from drakit.base.taints import untolerated

_MAX_STEPS = 5_000


def explain(
    inventory: Inventory,
    claims: Sequence[ResourceClaim],
    node: str,
    solver: Solver,
    *,
    fits: Fits | None,
    searched: bool = True,
) -> Reasons:
    """Why the claims do not fit on the node. Without `fits` no remedies are looked for.

    Not `searched`, nothing is given to any request: quick, and blind to constraints between devices.
    """
    state = inventory.state(node)
    search = _best_partial(solver, state.usages) if searched else solver.begin(state.usages)
    inquiry = _Inquiry(inventory, claims, solver.layout, state.views, search)
    troubled = [view for view in state.views if view.problem]
    return Reasons(
        node,
        tuple(ClaimReasons(name_of(claim), tuple(inquiry.requests_of(number))) for number, claim in enumerate(claims)),
        tuple(PoolTrouble("/".join(view.key), view.problem.value, view.reason) for view in troubled if view.problem),
        tuple(find_remedies(inventory, claims, node, fits)) if fits is not None else (),
    )


def name_of(claim: ResourceClaim) -> str:
    meta = claim.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class _Recorder(Search):
    """A search without bounds that remembers the first of its deepest states."""

    def __init__(self, layout: Layout, usages: Usages) -> None:
        super().__init__(Outlook(layout, bounded=False), Occupancy(layout, usages), lambda: self.steps > _MAX_STEPS)
        self.best: tuple[Pick, ...] = ()

    def take(self, option: Option, device: int) -> tuple[Values | None, ...] | None:
        before = super().take(option, device)
        if before is not None and len(self.picks) > len(self.best):
            self.best = tuple(self.picks)
        return before


def _best_partial(solver: Solver, usages: Usages) -> Search:
    """A search in its deepest state. Requests that it never came to have got what was left for them."""
    # Without bounds: a search that prunes never sees the states that are worth showing.
    recorder = _Recorder(solver.layout, usages)
    recorder.run()
    search = solver.begin(usages)
    options = {option.index: option for options in search.outlook.options for option in options}
    # Taken again in the same order, in which each of them was possible.
    for pick in recorder.best:
        search.take(options[pick.alternative], pick.device)
    for alternatives in search.outlook.options:
        begun = {pick.alternative for pick in search.picks}
        tried = [option for option in alternatives if option.index in begun] or alternatives
        _serve(search, max(tried, key=lambda option: _servable(search, option)))
    return search


def _servable(search: Search, option: Option) -> tuple[bool, int]:
    """Whether an option can have all its devices, and how many it can have."""
    taken = _serve(search, option)
    whole = sum(pick.alternative == option.index for pick in search.picks) == option.count
    for device, before in reversed(taken):
        search.give_back(option, device, before)
    return whole, len(taken)


def _serve(search: Search, option: Option) -> list[tuple[int, tuple[Values | None, ...]]]:
    """Take what an option can still have, in order; all devices or none when it wants all."""
    missing = option.count - sum(pick.alternative == option.index for pick in search.picks)
    taken: list[tuple[int, tuple[Values | None, ...]]] = []
    for device in bits_of(search.outlook.candidates(search, option) & ~option.failing):
        if len(taken) == missing:
            break
        before = search.take(option, device)
        if before is not None:
            taken.append((device, before))
    if option.takes_all and len(taken) < missing:
        for device, before in reversed(taken):
            search.give_back(option, device, before)
        return []
    return taken


@dataclass
class _Inquiry:
    """Questions to the state that the best partial solution leaves behind."""

    inventory: Inventory
    claims: Sequence[ResourceClaim]
    layout: Layout
    views: Views
    search: Search

    @property
    def best(self) -> Sequence[Pick]:
        return self.search.picks

    def requests_of(self, claim: int) -> Iterator[RequestReasons]:
        for request in self.layout.plan.requests:
            if request.claim == claim:
                chosen = {pick.alternative for pick in self.best} & {each.index for each in request.alternatives}
                for each in request.alternatives:
                    # Of a prioritized list that is served, only the alternative that serves it is told.
                    if not chosen or each.index in chosen:
                        yield self._request(each)

    def _request(self, wanted: Alternative) -> RequestReasons:
        mine = {pick.device for pick in self.best if pick.alternative == wanted.index}
        refused: dict[tuple[Cause, str], list[str]] = {}
        usable: list[str] = []
        for device in range(len(self.layout.traits)):
            if device in mine:
                continue
            found = self._refusal(wanted, device)
            if found is None:
                usable.append(self._id(device))
            else:
                refused.setdefault(found, []).append(self._id(device))
        # The order of the checks, so that reasons read like the way of a device through them.
        order = list(Cause)
        kinds = sorted(refused, key=lambda kind: order.index(kind[0]))
        return RequestReasons(
            wanted.full_name,
            None if wanted.takes_all else wanted.count,
            len(self.layout.traits),
            tuple(self._id(device) for device in sorted(mine)),
            tuple(usable),
            tuple(DeviceRefusal(cause, detail, tuple(refused[cause, detail])) for cause, detail in kinds),
        )

    def _id(self, device: int) -> str:
        found = site(self.layout, self.views, device)
        return "/".join((*found.view.key, found.device.name))

    def _refusal(self, wanted: Alternative, device: int) -> tuple[Cause, str] | None:
        """The first check that the device fails.

        Selectors come before use, other than in the search: that a device of no interest is in use interests nobody.
        But a selector that would fail is not told of a device in use: the search never came to evaluate it. That
        another request has the device comes last: it may have it only because this one cannot.
        """
        found = site(self.layout, self.views, device)
        held, taken = self._held(wanted, device, found), self._taken(wanted, device)
        unselected = self._not_selected(wanted, device, found)
        if (held or taken) and unselected and unselected[0] is Cause.SELECTOR_ERROR:
            unselected = None
        return (
            unselected
            or held
            or self._taint(wanted, device)
            or self._constraint(wanted, device)
            or (None if taken else self._counters(device) or self._capacity(wanted, device, found))
            or taken
        )

    def _held(self, wanted: Alternative, device: int, found: Site) -> tuple[Cause, str] | None:
        if wanted.admin or not self.search.held >> device & 1:
            return None
        held = self.inventory.ledger.use(found.view.key).devices.get(found.device.name, frozenset())
        return Cause.IN_USE, f"in use by claim {', '.join(sorted({each.claim for each in held}))}"

    def _taken(self, wanted: Alternative, device: int) -> tuple[Cause, str] | None:
        taken = self.search.mine[wanted.claim] if wanted.admin else self.search.taken
        if not taken >> device & 1:
            return None
        takers = [pick.alternative for pick in self.best if pick.device == device]
        names = sorted({self.layout.plan.alternatives[each].full_name for each in takers})
        return Cause.IN_USE, f"taken by request {', '.join(names)} of this allocation"

    def _shape_of(self, device: int) -> tuple[int, int]:
        pool = self.layout.pool_of[device]
        return pool, device - self.layout.offsets[pool]

    def _not_selected(self, wanted: Alternative, device: int, found: Site) -> tuple[Cause, str] | None:
        _, position = self._shape_of(device)
        shape = found.view.content.shapes[position]
        if shape.resources.binding and not self.layout.plan.features.binding:
            return Cause.BINDING, "has binding conditions, but the DRADeviceBindingConditions feature is disabled"
        result = wanted.selectors.check(shape)
        if not result.matches:
            origin, number = wanted.selectors.origin(result.refused_by)
            owner = f"class {wanted.class_of(self.claims[wanted.claim])}" if origin == "class" else "the request"
            text = wanted.selectors.texts[result.refused_by]
            if result.error:
                return Cause.SELECTOR_ERROR, f"selector #{number} of {owner} fails: {result.error}: {text}"
            return Cause.SELECTOR, f"selector #{number} of {owner} is false: {text}"
        if not found.view.content.reachable >> position & 1:
            return Cause.NODE, "not accessible from this node"
        return None

    def _capacity(self, wanted: Alternative, device: int, found: Site) -> tuple[Cause, str] | None:
        if not self.layout.plan.features.consumable:
            return None
        capacities, driver = found.device.capacity, found.view.key[0]
        if told := problem(wanted.capacity, capacities, driver=driver):
            return Cause.CAPACITY, told
        used = {} if wanted.admin else self.search.used(device)
        drawn = {} if wanted.admin else self.search.drawn.get(device, {})
        asked = {short_name(driver, name): amount for name, amount in wanted.capacity.items()}
        for name, capacity in capacities.items():
            short = short_name(driver, name)
            amount = consumed_amount(asked.get(short), capacity)
            left = Quantity(capacity.value.nanos - used.get(short, 0) - drawn.get(short, 0), capacity.value.format)
            if amount is not None and amount > left:
                return Cause.CAPACITY, f"capacity {name}: {amount} needed, {left} left"
        return None

    def _counters(self, device: int) -> tuple[Cause, str] | None:
        trait = self.layout.traits[device]
        _, position = self._shape_of(device)
        found = site(self.layout, self.views, device)
        consumes = found.view.content.shapes[position].resources.consumes
        if consumes and not self.layout.plan.features.partitions:
            return Cause.GATE, "consumes counters, but the DRAPartitionableDevices feature is disabled"
        if not trait.consumes or self.search.counters_suffice(device):
            return None
        for counter, amount in self.layout.consumes[device]:
            left = self.search.left[counter]
            if left < amount:
                _, (counter_set, name) = self.layout.counters[counter]
                form = _notation(found.device, counter_set, name)
                amounts = f"{Quantity(amount, form)} needed, {Quantity(left, form)} left"
                return Cause.COUNTER, f"counter {name} of {counter_set}: {amounts}"
        return Cause.COUNTER, "the pool has a counter below zero: more is in use than it publishes"

    def _taint(self, wanted: Alternative, device: int) -> tuple[Cause, str] | None:
        if not self.layout.plan.features.taints:
            return None
        pool, position = self._shape_of(device)
        taint = untolerated(self.views[pool].content.taints[position], wanted.tolerations)
        if taint is None:
            return None
        value = f"={taint.value}" if taint.value else ""
        return Cause.TAINT, f"taint {taint.key}{value}:{taint.effect} is not tolerated"

    def _constraint(self, wanted: Alternative, device: int) -> tuple[Cause, str] | None:
        values = self.layout.values_of(device)
        for each in wanted.constraints:
            state = self.search.states[each.index]
            if each.add(state, values[each.index]) is None:
                return Cause.CONSTRAINT, _constraint_text(each, state, values[each.index])
        return None


def _notation(device: Device, counter_set: str, name: str) -> Format:
    """How the driver writes amounts of a counter: what is left of 80Gi is told in Gi."""
    for each in device.consumes_counters:
        if each.counter_set == counter_set and name in each.counters:
            return each.counters[name].value.format
    return Format.DECIMAL_SI


def _constraint_text(constraint: Constraint, state: Values | None, values: Values | None) -> str:
    kind = "distinctAttribute" if constraint.distinct else "matchAttribute"
    if values is None:
        return f"{kind} {constraint.attribute}: the device does not have it"
    if not values:
        return f"{kind} {constraint.attribute}: its value cannot be compared"
    chosen = f", chosen before: {_listed(state)}" if state else ""
    return f"{kind} {constraint.attribute}: value {_listed(values)}{chosen}"


def _listed(values: Values | None) -> str:
    return ", ".join(sorted(str(value) for _, value in values or ()))
