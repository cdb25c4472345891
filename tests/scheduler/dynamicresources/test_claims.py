"""The claims as they are now: newest of informer and own writes; flights; the ledger that follows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Inventory, Ledger
from drakit.api import AllocationResult, from_plain
from drakit.api.objects.claims import ResourceClaim
from drakit.client import CLAIMS, Client, InProcess, key_of
from drakit.informers import Informer
from drakit.scheduler.dynamicresources.state.claims import Claims, InFlightAllocation
from tests.builders.manifests import allocation
from tests.builders.manifests import claim as manifest

POOL = ("gpu.example.com", "pool")


class Nobody:
    async def handle(self, request: Any) -> Any:
        raise AssertionError(f"nobody asks: {request}")


class World:
    """The informer is fed by hand."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.informer: Informer[ResourceClaim] = Informer(Client(InProcess(Nobody())), CLAIMS)
        self.claims = Claims(self.informer, self.inventory)

    def list(self, *claims: ResourceClaim) -> None:
        """The watch was lost: the informer has the whole state anew."""
        self.informer.replace({key_of(each): each for each in claims})

    @property
    def busy(self) -> set[str]:
        return set(self.inventory.ledger.use(POOL).devices)


def state(version: int, device: str = "", *, name: str = "c", uid: str = "u", owner: str = "") -> ResourceClaim:
    plain = manifest(name, uid=uid, resourceVersion=str(version))
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
        plain["metadata"]["ownerReferences"] = [reference]
    if device:
        plain["status"] = {"allocation": allocation(device)}
    return from_plain(ResourceClaim, plain)


def result(device: str) -> AllocationResult:
    return from_plain(AllocationResult, allocation(device))


def test_an_own_write_counts_until_the_informer_has_it_or_something_newer() -> None:
    world = World()
    world.informer.put(state(1))
    world.claims.assume(state(3, "d0"))
    world.informer.put(state(2))
    assert world.claims.get("default", "c") == state(3, "d0")
    assert world.busy == {"d0"}
    world.informer.put(state(3, "d0"))
    world.informer.put(state(4))
    assert world.claims.get("default", "c") == state(4)
    assert world.busy == set()


def test_an_own_write_that_comes_late_is_not_taken() -> None:
    world = World()
    world.informer.put(state(5))
    world.claims.assume(state(3, "d0"))
    assert world.claims.get("default", "c") == state(5)
    assert world.busy == set()


def test_what_flies_is_never_free_on_its_way_to_the_store() -> None:
    world = World()
    world.informer.put(state(1))
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(2))  # the finalizer
    assert world.busy == {"d0"}
    world.claims.assume(state(3, "d0"))
    assert world.busy == {"d0"}
    world.informer.put(state(3, "d0"))
    assert world.busy == {"d0"}
    assert world.claims.flight("u") is None
    assert asyncio.run(flight.landed()) is None


def test_what_is_given_up_is_free_again() -> None:
    world = World()
    world.informer.put(state(1))
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.claims.end(flight)
    assert world.busy == set()
    assert world.claims.flight("u") is None


def test_what_is_shared_is_free_with_the_last_sharer() -> None:
    world = World()
    first = world.claims.begin(state(1), result("d0"), "group")
    second = world.claims.begin(state(1), result("d1"), "group")
    assert first is second
    assert world.busy == {"d0"}
    world.claims.end(first)
    assert world.busy == {"d0"}
    world.claims.end(second)
    assert world.busy == set()


def test_giving_up_what_was_stored_meanwhile_frees_nothing() -> None:
    world = World()
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(3, "d0"))
    world.claims.end(flight)
    assert world.busy == {"d0"}


def test_a_flight_tells_whose_device_it_took() -> None:
    world = World()
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(2, "d0", name="other", uid="v"))
    world.informer.put(state(3, "d0"))
    assert asyncio.run(flight.landed()) == "gpu.example.com/pool/d0"


def test_a_flight_does_not_care_for_what_came_after_it() -> None:
    world = World()
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(3, "d0"))
    world.informer.put(state(4, "d0", name="other", uid="v"))
    assert asyncio.run(flight.landed()) is None


def test_a_flight_ends_when_what_was_stored_is_gone_before_it_was_seen() -> None:
    world = World()
    world.informer.put(state(1))
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.claims.assume(state(3, "d0"))
    world.informer.put(state(4))
    assert asyncio.run(flight.landed()) is None
    assert world.busy == set()


def test_a_flight_ends_also_when_that_is_seen_before_the_answer_comes() -> None:
    world = World()
    world.informer.put(state(1))
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(4))
    assert world.busy == {"d0"}
    world.claims.assume(state(3, "d0"))
    assert asyncio.run(flight.landed()) is None
    assert world.busy == set()


def test_a_flight_ends_when_another_claim_has_the_name() -> None:
    world = World()
    world.informer.put(state(1))
    flight = world.claims.begin(state(1), result("d0"), "pod")
    world.informer.put(state(4, uid="v"))
    assert asyncio.run(flight.landed()) is None
    assert world.busy == set()


def created(world: World) -> InFlightAllocation:
    """A claim that was made, allocated, and never seen."""
    flight = world.claims.begin(state(1, uid="provisional"), result("d0"), "pod")
    world.claims.assume(state(2))
    world.claims.rename(flight, state(2))
    world.claims.assume(state(3, "d0"))
    return flight


def test_who_waits_for_a_claim_that_the_informer_has_gone_past_is_told() -> None:
    world = World()
    flight = created(world)
    world.list(state(4, name="other", uid="v"))
    assert asyncio.run(flight.landed()) is None
    assert world.claims.newest(state(3)) is None
    assert world.busy == {"d0"}
    world.claims.end(flight)
    assert world.busy == set()


def test_a_claim_that_comes_late_in_a_list_is_judged_all_the_same() -> None:
    world = World()
    flight = created(world)
    world.list(state(2, "d0", name="other", uid="v"), state(4, name="another", uid="w"), state(3, "d0"))
    assert asyncio.run(flight.landed()) == "gpu.example.com/pool/d0"
    assert world.claims.newest(state(3)) == state(3, "d0")


def test_a_claim_that_was_made_just_now_is_known_before_the_informer_has_it() -> None:
    world = World()
    world.claims.assume(state(3, "d0", owner="pod"))
    assert world.claims.controlled_by("pod") == [state(3, "d0", owner="pod")]
    world.claims.forget(state(3, "d0", owner="pod"))
    assert world.claims.controlled_by("pod") == []
    assert world.busy == set()


def test_a_claim_that_the_informer_has_gone_past_is_gone() -> None:
    world = World()
    world.claims.assume(state(3, "d0"))
    world.list(state(4, name="other", uid="v"))
    assert world.claims.get("default", "c") is None
    assert world.busy == set()


def test_a_claim_that_is_newer_than_a_list_stays_until_the_informer_has_gone_past_it() -> None:
    world = World()
    world.claims.assume(state(5, "d0"))
    world.list(state(4, name="other", uid="v"))
    assert world.busy == {"d0"}
    world.informer.put(state(6, name="other", uid="v"))
    assert world.busy == set()


def test_an_answer_that_comes_after_its_claim_has_come_and_gone_does_not_hold_devices_for_ever() -> None:
    world = World()
    world.informer.put(state(2))
    world.informer.remove(state(4))
    world.claims.assume(state(3, "d0"))
    world.informer.put(state(5, name="other", uid="v"))
    assert world.claims.get("default", "c") is None
    assert world.busy == set()


class Walked(dict[Any, Any]):
    """Counts how often somebody goes through all of it."""

    walks = 0

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()

    def items(self) -> Any:
        self.walks += 1
        return super().items()


def test_assumed_claims_are_gone_through_after_a_list_and_at_no_other_event() -> None:
    world = World()
    world.claims._assumed = assumed = Walked()
    for number in range(50):
        world.claims.assume(state(100 + number, name=f"assumed-{number}", uid=f"a{number}"))
    for version in range(1, 51):
        world.informer.put(state(version, name="other", uid="v"))
    assert assumed.walks == 0
    world.list(state(60, name="other", uid="v"))
    assert assumed.walks == 1


def test_a_flight_takes_the_name_that_its_claim_gets() -> None:
    world = World()
    flight = world.claims.begin(state(1, uid="provisional"), result("d0"), "pod")
    world.claims.rename(flight, state(2, uid="real"))
    assert world.claims.flight("provisional") is None
    assert world.claims.flight("real") is flight
    assert world.busy == {"d0"}
    world.informer.put(state(3, "d0", uid="real"))
    assert world.claims.flight("real") is None
    assert world.busy == {"d0"}


def test_a_claim_of_the_same_name_is_another_claim() -> None:
    world = World()
    world.informer.put(state(3, "d0"))
    world.informer.put(state(5, uid="v"))
    assert world.busy == set()
    assert world.claims.newest(state(3)) is None


def test_a_claim_that_is_deleted_frees_its_devices() -> None:
    world = World()
    world.informer.put(state(3, "d0"))
    world.claims.assume(state(4, "d0"))
    world.informer.remove(state(5, "d0"))
    assert world.claims.get("default", "c") is None
    assert world.busy == set()


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "see", "begin", "end"]), st.integers(0, 2), st.integers(0, 3)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_the_ledger_is_what_the_newest_states_and_flights_make_it(steps: list[tuple[str, int, int]]) -> None:
    """A server that counts up, an informer that lags, our own writes in between."""
    world, server, history = World(), dict[str, ResourceClaim](), list[ResourceClaim]()
    flights: dict[str, Any] = {}
    version, seen = 1, 0
    for what, number, device in steps:
        name = f"c{number}"
        if what == "write":
            version += 1
            written = state(version, f"{name}-{device}" if device else "", name=name, uid=name)
            server[name] = written
            history.append(written)
            world.claims.assume(written)
        elif what == "see" and seen < len(history):
            world.informer.put(history[seen])
            seen += 1
        elif what == "begin" and name in server and name not in flights:
            flights[name] = world.claims.begin(server[name], result(f"{name}-flying"), "pod")
        elif what == "end" and name in flights:
            world.claims.end(flights.pop(name))
    for late in history[seen:]:
        world.informer.put(late)
    for flight in flights.values():
        world.claims.end(flight)
    assert world.inventory.ledger == Ledger(server.values())
    assert all(world.claims.get("default", name) == claim for name, claim in server.items())


def test_versions_that_do_not_count_are_taken_as_they_come() -> None:
    world = World()
    odd = msgspec.structs.replace(state(1), metadata=msgspec.structs.replace(state(1).metadata, resource_version="x"))
    world.informer.put(odd)
    world.claims.assume(state(2, "d0"))
    assert world.busy == {"d0"}
