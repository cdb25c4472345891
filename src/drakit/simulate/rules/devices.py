"""What must hold of devices, counters and capacity: nothing is given away twice.

In:  the judge's view of the store; the claim that has just got devices, if one has.
Out: what is wrong, in words.

Who held what while a gate was off may hold too much of what the gate is for. Then the rule is asked of each claim that
gets devices once everybody has the gate again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from drakit.api.objects.plain import Plain
from drakit.simulate.rules.promises import PARTS, SHARES, Place

if TYPE_CHECKING:
    from drakit.simulate.rules.judge import Judge

CounterKey = tuple[str, str, str, str]
"""Driver, pool, counter set, counter."""


def given_twice(judge: Judge, fresh: str = "") -> Iterator[str]:
    """`fresh` is the name of the claim that has just got its devices."""
    mine = [place for claim, place, _ in judge.uses() if claim == fresh]
    yield from _held_twice(judge, mine)
    yield from _overdrawn_capacity(judge, mine)
    yield from _overdrawn_counters(judge, mine)


def _held_twice(judge: Judge, mine: list[Place]) -> Iterator[str]:
    """Without its guard, a server without the gate of shares may make the share that it is sent the whole device."""
    alone: dict[Place, str] = {}
    shared: dict[Place, str] = {}
    for claim, place, result in judge.uses():
        holders = shared if result.get("shareID") else alone
        if holders.setdefault(place, claim) != claim and holders is alone:
            yield f"device {'/'.join(place)} is held by {alone[place]} and {claim}"
    for place in sorted(alone.keys() & shared.keys()):
        asked = judge.guarded or _is_asked(judge, SHARES, [place] if place in mine else [])
        if alone[place] != shared[place] and asked:
            yield f"device {'/'.join(place)} is held by {alone[place]} alone, and {shared[place]} has a share"


def _overdrawn_capacity(judge: Judge, mine: list[Place]) -> Iterator[str]:
    consumed: Counter[Place] = Counter()
    for _, place, result in judge.uses():
        if result.get("shareID"):
            consumed[place] += sum(int(each) for each in (result.get("consumedCapacity") or {}).values())
    for place, amount in consumed.items():
        room = sum(int(each["value"]) for each in judge.devices.get(place, {}).get("capacity", {}).values())
        if amount > room and _is_asked(judge, SHARES, [place] if place in mine else []):
            yield f"{amount} of {room} of the capacity of {'/'.join(place)} are taken"


def _overdrawn_counters(judge: Judge, mine: list[Place]) -> Iterator[str]:
    taken: Counter[CounterKey] = Counter()
    places: dict[CounterKey, list[Place]] = defaultdict(list)
    for claim, place, _ in judge.uses():
        if (claim, place) in judge.withdrawn:
            continue
        for key, amount in counters_of(place, judge.devices.get(place, {})):
            taken[key] += amount
            places[key].append(place)
    for key, amount in taken.items():
        concerned = places[key] if set(mine) & set(places[key]) else []
        if amount > judge.counters.get(key, 0) and _is_asked(judge, PARTS, concerned):
            yield f"{amount} of {judge.counters.get(key)} of counter {'/'.join(key)} are taken"


def _is_asked(judge: Judge, gate: str, concerned: list[Place]) -> bool:
    """Always where the gate was never off; else of a decision about these devices that has just been made."""
    return judge.gates.always(gate) or (bool(concerned) and judge.gates.asked(gate, *concerned))


def counters_of(place: Place, device: Plain) -> Iterator[tuple[CounterKey, int]]:
    """What a device takes of the counters of its pool."""
    for each in device.get("consumesCounters") or ():
        for name, counter in each["counters"].items():
            yield (place[0], place[1], each["counterSet"], name), int(counter["value"])
