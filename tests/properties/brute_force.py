"""A naive allocator on plain manifests: slow, obvious, without any cleverness.

In:  slices, classes, claims as dicts; a function that evaluates one selector on one device.
Out: "allocated" with the picks of each claim, "none", "node-error" or "error". It tries every device in the specified
     order and undoes every step, so it is what the real search must agree with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from drakit.base.quantity import Quantity

Plain = dict[str, Any]
DeviceId = tuple[str, str, str]
Evaluate = Callable[[str, str, Plain], bool]
MAX_RESULTS = 32
DISTINCT = {"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAListTypeAttributes"}


class Abort(Exception):
    """The whole attempt ends: bad input, not a full node."""


class BadNode(Exception):
    """This node cannot be judged."""


class TooMany(Exception):
    """No choice of the requests from here on stays within the limit of a claim."""


@dataclass(eq=False)
class Candidate:
    """A device as the node sees it."""

    id: DeviceId
    device: Plain
    slice: Plain
    pool: NaivePool
    reachable: bool


@dataclass(eq=False)
class NaivePool:
    id: tuple[str, str]
    problem: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    everywhere: list[tuple[DeviceId, Plain]] = field(default_factory=list)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(eq=False)
class Alternative:
    """One request, or one sub-request of it."""

    claim: int
    parent: str
    name: str
    spec: Plain
    devices: list[Candidate]
    count: int
    takes_all: bool

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def admin(self) -> bool:
        return bool(self.spec.get("adminAccess"))


@dataclass(eq=False)
class Pick:
    alternative: Alternative
    candidate: Candidate
    consumed: dict[str, int] | None


def nanos(text: Any) -> int:
    return Quantity.parse(str(text)).nanos


def node_matches(spec: Plain, node: Plain) -> bool:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
    if spec.get("nodeName"):
        return bool(spec["nodeName"] == name)
    if spec.get("allNodes"):
        return True
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms", [])
    return any(_term_matches(term, labels, name) for term in terms)


def _term_matches(term: Plain, labels: Plain, name: str) -> bool:
    wants = [(labels, want) for want in term.get("matchExpressions", [])]
    wants += [({"metadata.name": name}, want) for want in term.get("matchFields", [])]
    return bool(wants) and all(_requirement_matches(have, want) for have, want in wants)


def _requirement_matches(have: Plain, want: Plain) -> bool:
    value, values = have.get(want["key"]), want.get("values", [])
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[want["operator"]]


class BruteForce:
    def __init__(self, case: Plain, evaluate: Evaluate) -> None:
        self.node: Plain = case["node"]
        self.claims: list[Plain] = case["claims"]
        self.classes = {each["metadata"]["name"]: each for each in case["classes"]}
        self.gates = set(case["featureGates"])
        self.evaluate = evaluate
        self.dedicated: set[DeviceId] = set()
        self.shares: dict[DeviceId, dict[str, int]] = {}
        self._count_use(case["allocatedClaims"])
        self.pools = list(self._gather(case["slices"]))
        self.picks: list[list[Pick]] = [[] for _ in self.claims]
        self.admin_room = True

    def _has_shared_admin(self) -> bool:
        everything = [each for pool in self.pools if not pool.problem for each in pool.candidates]
        asked = [each for claim in self.plan for request in claim for each in request if each.admin]
        return any(
            self._shared(candidate)
            and self._selected_without_error(each, candidate)
            and self._large_enough(each, candidate)
            and not self._taint_in_the_way(each, candidate)
            for each in asked
            for candidate in everything
        )

    def _selected_without_error(self, wanted: Alternative, candidate: Candidate) -> bool:
        """A selector that fails counts only where the search comes to it."""
        try:
            return self._selected(wanted, candidate)
        except Abort:
            return False

    def run(self) -> tuple[str, list[list[Pick]]]:
        try:
            self.plan = [self._plan_claim(index) for index in range(len(self.claims))]
            if self._allocate_claim(0):
                return "allocated", self.picks
            # Admin access takes a device with room where there is one; otherwise it needs none.
            self.admin_room = False
            if self._has_shared_admin() and self._allocate_claim(0):
                return "allocated", self.picks
        except Abort as why:
            return f"error: {why}", []
        except BadNode as why:
            return f"node-error: {why}", []
        return ("node-error" if any(pool.problem == "invalid" for pool in self.pools) else "none"), []

    # What is in use, and what there is

    def _count_use(self, claims: list[Plain]) -> None:
        for claim in claims:
            for result in claim["status"]["allocation"]["devices"].get("results", []):
                key = (result["driver"], result["pool"], result["device"])
                if result.get("adminAccess"):
                    continue
                if result.get("shareID") is None or "DRAConsumableCapacity" not in self.gates:
                    self.dedicated.add(key)
                    continue
                total = self.shares.setdefault(key, {})
                for name, amount in (result.get("consumedCapacity") or {}).items():
                    short = name.removeprefix(f"{key[0]}/")
                    total[short] = total.get(short, 0) + max(nanos(amount), 0)

    def _visible(self, spec: Plain) -> bool:
        partitions = "DRAPartitionableDevices" in self.gates
        if not partitions and (spec.get("perDeviceNodeSelection") is not None or spec.get("sharedCounters")):
            return False
        if spec.get("sharedCounters"):
            return True
        if spec.get("nodeName") or spec.get("allNodes") or spec.get("nodeSelector"):
            return node_matches(spec, self.node)
        if spec.get("perDeviceNodeSelection"):
            return any(node_matches(device, self.node) for device in spec.get("devices", []))
        return False

    def _gather(self, slices: list[Plain]) -> Iterator[NaivePool]:
        groups: dict[tuple[str, str], list[Plain]] = defaultdict(list)
        for each in slices:
            groups[each["spec"]["driver"], each["spec"]["pool"]["name"]].append(each)
        pools = [pool for key in sorted(groups) if (pool := self._pool(key, groups[key]))]
        yield from sorted(pools, key=lambda pool: any("bindingConditions" in c.device for c in pool.candidates))

    def _pool(self, key: tuple[str, str], slices: list[Plain]) -> NaivePool | None:
        visible = [each for each in slices if self._visible(each["spec"])]
        if not visible:
            return None
        generation = max(each["spec"]["pool"]["generation"] for each in visible)
        mine = [each for each in visible if each["spec"]["pool"]["generation"] == generation]
        counts = {each["spec"]["pool"]["resourceSliceCount"] for each in mine}
        whole = mine
        if counts != {len(mine)}:
            if any(each["spec"]["pool"]["generation"] > generation for each in slices):
                return None
            whole = [each for each in slices if each["spec"]["pool"]["generation"] == generation]
            counts = {each["spec"]["pool"]["resourceSliceCount"] for each in whole}
            if len(counts) > 1 or len(whole) > min(counts):
                return NaivePool(key, "invalid")
            if len(whole) < min(counts):
                return NaivePool(key, "incomplete")
        return self._valid_pool(NaivePool(key), mine, whole)

    def _valid_pool(self, pool: NaivePool, mine: list[Plain], whole: list[Plain]) -> NaivePool:
        partitions = "DRAPartitionableDevices" in self.gates
        names: set[str] = set()
        for each in sorted(mine, key=lambda each: each["metadata"]["name"]):
            spec = each["spec"]
            if partitions and spec.get("sharedCounters"):
                continue
            for device in spec.get("devices", []):
                if device["name"] in names:
                    return NaivePool(pool.id, "invalid")
                names.add(device["name"])
                reachable = not spec.get("perDeviceNodeSelection") or node_matches(device, self.node)
                pool.candidates.append(Candidate((*pool.id, device["name"]), device, each, pool, reachable))
        return self._with_counters(pool, mine, whole) if partitions else pool

    def _with_counters(self, pool: NaivePool, mine: list[Plain], whole: list[Plain]) -> NaivePool:
        seen: set[str] = set()
        for each in mine:
            for counter_set in each["spec"].get("sharedCounters", []):
                if counter_set["name"] in seen:
                    return NaivePool(pool.id, "invalid")
                seen.add(counter_set["name"])
                for name, counter in counter_set["counters"].items():
                    pool.counters[counter_set["name"], name] = nanos(counter["value"])
        for each in whole:
            for device in each["spec"].get("devices", []):
                if not set(consumption(device)) <= set(pool.counters):
                    return NaivePool(pool.id, "invalid")
                if any(use["counterSet"] not in seen for use in device.get("consumesCounters", [])):
                    return NaivePool(pool.id, "invalid")
                pool.everywhere.append(((*pool.id, device["name"]), device))
        return pool

    # What is asked for

    def _plan_claim(self, index: int) -> list[list[Alternative]]:
        devices = self.claims[index]["spec"]["devices"]
        plan = []
        for request in devices.get("requests", []):
            subs = request.get("firstAvailable", [])
            self._check_gates(request, subs)
            if subs:
                plan.append([self._alternative(index, request["name"], sub["name"], sub) for sub in subs])
            else:
                plan.append([self._alternative(index, "", request["name"], request["exactly"])])
        if sum(min(each.count for each in choices) for choices in plan) > MAX_RESULTS:
            raise Abort("number of requested devices exceeds the claim limit")
        for constraint in devices.get("constraints", []):
            if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
                raise Abort("unsupported constraint type")
            if not constraint.get("matchAttribute") and not self.gates & DISTINCT:
                raise Abort("DRAConsumableCapacity is disabled")
        return plan

    def _check_gates(self, request: Plain, subs: list[Plain]) -> None:
        if subs and "DRAPrioritizedList" not in self.gates:
            raise Abort("DRAPrioritizedList is disabled")
        if "DRAConsumableCapacity" not in self.gates:
            for each in [request.get("exactly") or {}, *subs]:
                if each.get("capacity") is not None:
                    raise Abort("DRAConsumableCapacity is disabled")

    def _alternative(self, claim: int, parent: str, name: str, spec: Plain) -> Alternative:
        if any(not each.get("cel") for each in spec.get("selectors", [])):
            raise Abort("unsupported selector type")
        if "DRAAdminAccess" not in self.gates and spec.get("adminAccess") is not None:
            raise Abort("admin access is disabled")
        if spec.get("deviceClassName") not in self.classes:
            raise Abort("no such device class")
        mode = spec.get("allocationMode")
        if mode == "ExactCount":
            return Alternative(claim, parent, name, spec, [], spec["count"], takes_all=False)
        if mode != "All":
            raise Abort("unsupported count mode")
        found = Alternative(claim, parent, name, spec, [], 0, takes_all=True)
        for pool in self.pools:
            if pool.problem:
                raise BadNode(f"all devices wanted, pool is {pool.problem}")
            found.devices += [
                each for each in pool.candidates if self._selected(found, each) and self._large_enough(found, each)
            ]
        found.count = len(found.devices)
        return found

    # Checks of one device

    def _selected(self, wanted: Alternative, candidate: Candidate) -> bool:
        if "DRADeviceBindingConditions" not in self.gates and candidate.device.get("bindingConditions"):
            return False
        cls = self.classes[wanted.spec["deviceClassName"]]
        for each in [*cls["spec"].get("selectors", []), *wanted.spec.get("selectors", [])]:
            if not self.evaluate(each["cel"]["expression"], candidate.id[0], candidate.device):
                return False
        return candidate.reachable

    def _consumed(self, wanted: Alternative, candidate: Candidate) -> dict[str, int] | None:
        """What a share takes of each capacity; None when the device can never serve the request."""
        driver = candidate.id[0]
        asked = (wanted.spec.get("capacity") or {}).get("requests") or {}
        requested = {name.removeprefix(f"{driver}/"): amount for name, amount in asked.items()}
        capacity = candidate.device.get("capacity") or {}
        if not set(requested) <= set(capacity):
            return None
        taken = {name: consumed_amount(requested.get(name), each) for name, each in capacity.items()}
        if any(amount is None or amount > nanos(capacity[name]["value"]) for name, amount in taken.items()):
            return None
        return {name: amount for name, amount in taken.items() if amount is not None}

    def _large_enough(self, wanted: Alternative, candidate: Candidate) -> bool:
        return "DRAConsumableCapacity" not in self.gates or self._consumed(wanted, candidate) is not None

    def _shared(self, candidate: Candidate) -> bool:
        return "DRAConsumableCapacity" in self.gates and bool(candidate.device.get("allowMultipleAllocations"))

    def _capacity_left(self, wanted: Alternative, candidate: Candidate) -> bool:
        if "DRAConsumableCapacity" not in self.gates:
            return True
        taken = self._consumed(wanted, candidate)
        if taken is None:
            return False
        if not self._shared(candidate) or (wanted.admin and not self.admin_room):
            return True
        used = dict(self.shares.get(candidate.id, {}))
        for pick in self._all_picks():
            if pick.candidate is candidate and (self.admin_room or not pick.alternative.admin):
                for name, amount in (pick.consumed or {}).items():
                    used[name] = used.get(name, 0) + amount
        capacity = candidate.device.get("capacity") or {}
        return all(used.get(name, 0) + amount <= nanos(capacity[name]["value"]) for name, amount in taken.items())

    def _all_picks(self) -> list[Pick]:
        return [pick for picks in self.picks for pick in picks]

    def _in_use(self, wanted: Alternative, candidate: Candidate) -> bool:
        takers = {
            p.alternative.claim for p in self._all_picks() if p.candidate is candidate and not self._shared(candidate)
        }
        if wanted.admin:
            return wanted.claim in takers
        # A device that was shared and is dedicated now is not available while a share of it is left.
        left_over = candidate.id in self.shares and not self._shared(candidate)
        return bool(takers) or candidate.id in self.dedicated or left_over

    def _counters_left(self, candidate: Candidate) -> bool:
        wanted = consumption(candidate.device)
        if not wanted:
            return True
        if "DRAPartitionableDevices" not in self.gates:
            return False
        left = dict(candidate.pool.counters)
        for key, device in candidate.pool.everywhere:
            if key in self.dedicated or key in self.shares:
                for counter, amount in consumption(device).items():
                    left[counter] -= amount
        charged: set[int] = set()
        for pick in self._all_picks():
            if pick.candidate.pool is candidate.pool and not self._already_charged(pick.candidate, charged):
                charged.add(id(pick.candidate))
                for counter, amount in consumption(pick.candidate.device).items():
                    left[counter] -= amount
        if not self._already_charged(candidate, charged):
            for counter, amount in wanted.items():
                left[counter] -= amount
        else:
            return True
        return all(amount >= 0 for amount in left.values())

    def _already_charged(self, candidate: Candidate, charged: set[int]) -> bool:
        return self._shared(candidate) and (candidate.id in self.shares or id(candidate) in charged)

    def _taint_in_the_way(self, wanted: Alternative, candidate: Candidate) -> bool:
        if "DRADeviceTaints" not in self.gates:
            return False
        tolerations = wanted.spec.get("tolerations", [])
        return any(
            taint["effect"] in ("NoSchedule", "NoExecute") and not any(tolerates(each, taint) for each in tolerations)
            for taint in candidate.device.get("taints", [])
        )

    def _constraints_hold(self, wanted: Alternative, candidate: Candidate) -> bool:
        for constraint in self.claims[wanted.claim]["spec"]["devices"].get("constraints", []):
            if not concerns(constraint, wanted):
                continue
            others = [p.candidate for p in self.picks[wanted.claim] if concerns(constraint, p.alternative)]
            lists = "DRAListTypeAttributes" in self.gates
            if name := constraint.get("matchAttribute"):
                if not may_match([attribute(each, name, lists) for each in [*others, candidate]], lists=lists):
                    return False
            elif not may_differ(
                [attribute(each, constraint["distinctAttribute"], lists) for each in [*others, candidate]]
            ):
                return False
        return True

    # The search

    def _allocate_claim(self, claim: int) -> bool:
        return claim >= len(self.claims) or self._allocate_request(claim, 0)

    def _allocate_request(self, claim: int, request: int) -> bool:
        if request >= len(self.plan[claim]):
            try:
                return self._allocate_claim(claim + 1)
            except TooMany:
                return False
        gave_up = 0
        for each in self.plan[claim][request]:
            try:
                if self._allocate_device(each, request, 0, 0):
                    return True
            except TooMany:
                gave_up += 1
        if gave_up == len(self.plan[claim][request]):
            raise TooMany
        return False

    def _allocate_device(self, wanted: Alternative, request: int, have: int, start: int) -> bool:
        if wanted.takes_all and not wanted.devices:
            return False
        if have >= wanted.count:
            return self._allocate_request(wanted.claim, request + 1)
        if len(self.picks[wanted.claim]) + wanted.count - have > MAX_RESULTS:
            raise TooMany
        if wanted.takes_all:
            return self._take(wanted, wanted.devices[have], request, have, 0)
        everything = [each for pool in self.pools if not pool.problem for each in pool.candidates]
        for position in range(start, len(everything)):
            candidate = everything[position]
            if self._in_use(wanted, candidate) or not self._selected(wanted, candidate):
                continue
            if self._capacity_left(wanted, candidate) and self._take(wanted, candidate, request, have, position + 1):
                return True
        return False

    def _take(self, wanted: Alternative, candidate: Candidate, request: int, have: int, start: int) -> bool:
        if (
            self._in_use(wanted, candidate)
            or not self._counters_left(candidate)
            or self._taint_in_the_way(wanted, candidate)
        ):
            return False
        if not self._constraints_hold(wanted, candidate):
            if wanted.takes_all:
                raise Abort("a constraint prevents getting all devices")
            return False
        if not self._capacity_left(wanted, candidate):
            return False
        consumed = self._consumed(wanted, candidate) if self._shared(candidate) else None
        self.picks[wanted.claim].append(Pick(wanted, candidate, consumed))
        done = False
        try:
            done = self._allocate_device(wanted, request, have + 1, start)
        finally:
            if not done:
                self.picks[wanted.claim].pop()
        return done


def consumption(device: Plain) -> dict[tuple[str, str], int]:
    used: dict[tuple[str, str], int] = {}
    for each in device.get("consumesCounters", []):
        for name, counter in each["counters"].items():
            key = (each["counterSet"], name)
            used[key] = used.get(key, 0) + nanos(counter["value"])
    return used


def consumed_amount(requested: Any, capacity: Plain) -> int | None:
    """What one share takes of this capacity; None when the policy forbids it."""
    policy = capacity.get("requestPolicy") or {}
    if requested is None:
        return _never_negative(nanos(policy.get("default", capacity["value"])))
    amount = nanos(requested)
    if amount < 0:
        return None
    if valid_range := policy.get("validRange"):
        amount = max(amount, nanos(valid_range["min"]))
        if "step" in valid_range:
            low, step = nanos(valid_range["min"]), nanos(valid_range["step"])
            amount = low + -(-(amount - low) // step) * step
        return None if "max" in valid_range and amount > nanos(valid_range["max"]) else _never_negative(amount)
    if "validValues" in policy:
        return min((value for each in policy["validValues"] if (value := nanos(each)) >= amount), default=None)
    return amount


def _never_negative(amount: int) -> int | None:
    return amount if amount >= 0 else None


def tolerates(toleration: Plain, taint: Plain) -> bool:
    if (
        toleration.get("effect", taint["effect"]) != taint["effect"]
        or toleration.get("key", taint["key"]) != taint["key"]
    ):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def concerns(constraint: Plain, wanted: Alternative) -> bool:
    names = constraint.get("requests") or []
    return not names or wanted.full_name in names or (bool(wanted.parent) and wanted.parent in names)


def attribute(candidate: Candidate, name: str, lists: bool) -> frozenset[tuple[str, Any]] | None:
    """The values; empty when of a kind that cannot be compared; None when the device has no such attribute."""
    attributes = candidate.device.get("attributes") or {}
    domain, _, short = name.partition("/")
    found = attributes.get(name)
    if found is None and domain == candidate.id[0]:
        found = attributes.get(short)
    if found is None:
        return None
    for kind in ("int", "bool", "string", "version"):
        if kind in found:
            return frozenset({(kind, found[kind])})
        if lists and found.get(kind + "s"):
            return frozenset((kind, each) for each in found[kind + "s"])
    return frozenset()


def may_match(values: list[frozenset[tuple[str, Any]] | None], *, lists: bool) -> bool:
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return False
    return (len(values) == 1 and not lists) or bool(frozenset.intersection(*known))


def may_differ(values: list[frozenset[tuple[str, Any]] | None]) -> bool:
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return False
    last = known.pop()
    return not known or (bool(last) and not any(last & each for each in known))
