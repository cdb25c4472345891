"""The ledger: who holds what, claim by claim."""

from __future__ import annotations

from drakit.allocator import Ledger
from drakit.api import ResourceClaim, from_plain, to_plain
from tests.builders.objects import GPU, claim_of, held

POOL = (GPU, "pool")


def test_a_claim_holds_its_devices_until_it_is_gone() -> None:
    ledger = Ledger([held("a", "one", "two")])
    assert ledger.use(POOL).dedicated == {"one", "two"}
    assert {each.claim for each in ledger.use(POOL).devices["one"]} == {"default/a"}
    ledger.remove("uid-a")
    assert ledger == Ledger()


def test_a_claim_that_loses_its_allocation_holds_nothing() -> None:
    ledger = Ledger([held("a", "one")])
    ledger.put(claim_of(name="a"))
    assert not ledger.use(POOL).devices


def test_an_update_replaces_what_a_claim_holds() -> None:
    ledger = Ledger([held("a", "one")])
    ledger.put(held("a", "two"))
    assert ledger.use(POOL).dedicated == {"two"}


def test_a_claim_that_is_told_of_again_changes_nothing() -> None:
    told = held("a", "one")
    ledger = Ledger([told])
    assert not ledger.put(told)
    assert not ledger.put(held("a", "one"))
    assert list(ledger.put(held("a", "two"))) == [POOL]


def test_two_claims_on_one_device_both_have_to_go() -> None:
    ledger = Ledger([held("a", "one"), held("b", "one")])
    ledger.remove("uid-a")
    assert ledger.use(POOL).dedicated == {"one"}
    ledger.remove("uid-b")
    assert not ledger.use(POOL).dedicated


def test_shares_add_up_and_count_without_amounts() -> None:
    shares = [held(f"c{n}", "nic", shareID=f"s{n}", consumedCapacity={"bandwidth": "2"}) for n in range(2)]
    ledger = Ledger([*shares, held("bare", "nic", shareID="s"), held("only", "other", shareID="t")])
    assert ledger.use(POOL).shares == {"nic": {"bandwidth": 4 * 10**9}, "other": {}}
    assert not ledger.use(POOL).dedicated


def test_two_shares_of_one_claim_count_twice() -> None:
    share = {"request": "r", "driver": GPU, "pool": "pool", "device": "nic", "consumedCapacity": {"bandwidth": "2"}}
    results = [{**share, "shareID": "s"}, {**share, "shareID": "t"}]
    status = {"allocation": {"devices": {"results": results}}}
    ledger = Ledger([from_plain(ResourceClaim, {"metadata": {"name": "a", "uid": "a"}, "status": status})])
    assert ledger.use(POOL).shares == {"nic": {"bandwidth": 4 * 10**9}}


def test_admin_access_is_never_charged() -> None:
    assert Ledger([held("a", "one", adminAccess=True)]) == Ledger()


def test_what_is_in_flight_hides_what_is_stored() -> None:
    ledger = Ledger([held("a", "one")])
    moving = held("a", "two")
    assert moving.status.allocation
    ledger.begin(moving, moving.status.allocation)
    assert ledger.use(POOL).dedicated == {"two"}
    ledger.put(held("a", "three"))
    assert ledger.use(POOL).dedicated == {"two"}
    ledger.end("uid-a")
    assert ledger.use(POOL).dedicated == {"three"}


def test_an_unknown_share_is_a_whole_device() -> None:
    ledger = Ledger([held("a", "nic", shareID="s")], consumable=False)
    assert ledger.use(POOL).dedicated == {"nic"}


def test_claims_without_a_uid_are_told_apart_by_name() -> None:
    claims = [from_plain(ResourceClaim, {**to_plain(held(name, name)), "metadata": {"name": name}}) for name in "ab"]
    ledger = Ledger(claims)
    assert ledger.use(POOL).dedicated == {"a", "b"}
