"""The plugin DeviceOwnership: a device has one owner, whoever writes the status of claims."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.store import SQLiteStore
from drakit.store.etcd import EtcdAccess, EtcdStore
from tests.apiserver.calls import CLAIMS, SLICES, Answer, Api, on_loop, serving
from tests.builders.documents import DRIVER, Plain, claim_document, request_of, slice_document
from tests.builders.etcd import etcd_cluster

OWNED = Settings(enable_plugins=("DeviceOwnership",))
NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]}
SHARE = "aaaaaaaa-0000-4000-8000-{:012d}"


def result(device: str, **fields: Any) -> Plain:
    return {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": device, **fields}


def share(device: str, number: int, amount: str) -> Plain:
    return result(device, shareID=SHARE.format(number), consumedCapacity={"memory": amount})


async def allocate(api: Api, name: str, *results: Plain, **options: Any) -> Answer:
    """Write the status of a claim as a scheduler would that believes all this is free."""
    found = (await api.get(f"{CLAIMS}/{name}")).body
    found["status"] = {"allocation": {"devices": {"results": list(results)}, "nodeSelector": NODE}} if results else {}
    return await api.update(f"{CLAIMS}/{name}/status", found, **options)


async def publish(api: Api) -> None:
    shared = {"name": "nic", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "8"}}}
    takes = [{"counterSet": "set", "counters": {"memory": {"value": "40"}}}]
    parts = [{"name": f"part-{each}", "consumesCounters": takes} for each in range(3)]
    counters = slice_document("counters", count=2)
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [{"name": "set", "counters": {"memory": {"value": "80"}}}]
    for each in (slice_document("devices", "d0", "d1", shared, *parts, count=2), counters):
        assert (await api.create(SLICES, each)).code == 201


async def make_claims(api: Api, *names: str) -> None:
    for name in names:
        assert (await api.create(CLAIMS, claim_document(name, request_of("gpu")))).code == 201


@on_loop
async def test_a_device_that_another_claim_holds_is_refused_with_both_names() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first", "second")
        assert (await allocate(api, "first", result("d0"))).code == 200
        answer = await allocate(api, "second", result("d0"))
        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
        assert answer.message.endswith(
            f"claim default/second cannot have device {DRIVER}/pool/d0: it is allocated to claim default/first"
        )
        assert (await allocate(api, "second", result("d1"))).code == 200


@asynccontextmanager
async def on_disk(path: Path, settings: Settings = OWNED) -> AsyncIterator[Api]:
    """A server whose writes take their time: others come in between."""
    clock = FakeClock()
    async with (
        await SQLiteStore.open(path / "store.db", clock=clock) as store,
        await build_server(store, clock=clock, settings=settings) as server,
    ):
        yield Api(server, clock)


@on_loop
async def test_of_two_writes_at_once_one_is_refused(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as api:
        await publish(api)
        await make_claims(api, "first", "second")
        answers = await asyncio.gather(*(allocate(api, name, result("d0")) for name in ("first", "second")))
        assert sorted(answer.code for answer in answers) == [200, 409]


@on_loop
async def test_capacity_is_not_overdrawn() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first", "second", "third")
        assert (await allocate(api, "first", share("nic", 1, "5"))).code == 200
        answer = await allocate(api, "second", share("nic", 2, "4"))
        assert answer.code == 409
        assert "capacity memory does not suffice beside claim default/first" in answer.message
        assert (await allocate(api, "second", share("nic", 2, "3"))).code == 200
        assert (await allocate(api, "third", share("nic", 3, "-3"))).code == 200
        assert (await allocate(api, "third", share("nic", 3, "1"))).code in (409, 422)


@on_loop
async def test_counters_are_not_overdrawn() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first", "second", "third")
        assert (await allocate(api, "first", result("part-0"))).code == 200
        assert (await allocate(api, "second", result("part-1"))).code == 200
        answer = await allocate(api, "third", result("part-2"))
        assert answer.code == 409
        assert "counter memory of set does not suffice beside claim default/" in answer.message


@on_loop
async def test_a_device_twice_in_one_claim_is_refused() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first")
        answer = await allocate(api, "first", result("d0"), share("d0", 1, "1"))
        assert answer.code == 409
        assert "it is allocated to itself, in another result" in answer.message


@on_loop
async def test_admin_access_is_exempt() -> None:
    async with serving(OWNED) as api:
        labels = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await api.patch("/api/v1/namespaces/default", labels)
        await publish(api)
        await make_claims(api, "first", "admin", "third")
        assert (await allocate(api, "first", result("d0"))).code == 200
        looks = [result(each, adminAccess=True) for each in ("d0", "d1")]
        assert (await allocate(api, "admin", *looks)).code == 200
        assert (await allocate(api, "third", result("d1"))).code == 200


@on_loop
async def test_what_nobody_publishes_is_not_judged() -> None:
    async with serving(OWNED) as api:
        await make_claims(api, "first", "second")
        assert (await allocate(api, "first", result("gone"))).code == 200
        assert (await allocate(api, "second", result("gone"))).code == 200


@on_loop
async def test_a_device_is_free_again_when_its_claim_is_deallocated_or_gone() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first", "second", "third")
        assert (await allocate(api, "first", result("d0"))).code == 200
        assert (await allocate(api, "first")).code == 200
        assert (await allocate(api, "second", result("d0"))).code == 200
        await api.delete(f"{CLAIMS}/second")
        assert (await allocate(api, "third", result("d0"))).code == 200


@on_loop
async def test_a_refused_write_and_a_dry_run_hold_nothing() -> None:
    async with serving(OWNED) as api:
        await publish(api)
        await make_claims(api, "first", "second")
        assert (await allocate(api, "first", result("d0"), dryRun="All")).code == 200
        stale = claim_document("first", request_of("gpu"), resourceVersion="1")
        stale["status"] = {"allocation": {"devices": {"results": [result("d0")]}}}
        assert (await api.update(f"{CLAIMS}/first/status", stale)).code == 409
        assert (await allocate(api, "second", result("d0"))).code == 200


@on_loop
async def test_a_claim_that_lost_a_race_long_ago_may_still_be_written() -> None:
    """Two claims with one device, from before the slice was published: conditions and reservations still go through."""
    async with serving(OWNED) as api:
        await make_claims(api, "first", "second")
        await allocate(api, "first", result("d0"))
        await allocate(api, "second", result("d0"))
        await publish(api)
        user = {"resource": "pods", "name": "p", "uid": "u"}
        answer = await api.patch(f"{CLAIMS}/second/status", {"status": {"reservedFor": [user]}})
        assert answer.code == 200


@on_loop
async def test_without_the_plugin_the_server_stores_what_it_is_told() -> None:
    async with serving() as api:
        await publish(api)
        await make_claims(api, "first", "second")
        assert (await allocate(api, "first", result("d0"))).code == 200
        assert (await allocate(api, "second", result("d0"))).code == 200


# Many clients write at random: the ledger never overdraws


def overdrawn(claims: list[Plain]) -> list[str]:
    """What claims take together that is not there, counted from scratch."""
    whole: dict[str, int] = {}
    shares: dict[str, list[int]] = {}
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation") or {"devices": {"results": []}}
        for each in allocation["devices"]["results"]:
            if each.get("adminAccess"):
                continue
            if each.get("shareID"):
                shares.setdefault(each["device"], []).append(int(each["consumedCapacity"]["memory"]))
            else:
                whole[each["device"]] = whole.get(each["device"], 0) + 1
    found = [f"{device} has {count} owners" for device, count in whole.items() if count > 1]
    found += [f"{device} is shared and owned" for device in whole.keys() & shares.keys()]
    found += [f"{device} is overdrawn" for device, amounts in shares.items() if sum(amounts) > 8]
    if sum(device.startswith("part-") for device in whole) > 2:
        found.append("the counters are overdrawn")
    return found


def any_allocation(random: Random) -> list[Plain]:
    match random.randrange(6):
        case 0:
            return []
        case 1:
            return [share("nic", random.randrange(1000), str(random.randrange(0, 9)))]
        case 2:
            return [result("nic")]
        case 3:
            return [result(random.choice(["d0", "d1"]), adminAccess=True)]
        case _:
            chosen = random.sample(["d0", "d1", "part-0", "part-1", "part-2"], random.randrange(1, 3))
            return [result(each) for each in chosen]


async def write_at_random(apis: Sequence[Api], seed: int, *, clients: int = 6, writes: int = 30) -> set[int]:
    """Clients, each of one of the servers, allocate and free at random; the codes that they got."""
    labels = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    await apis[0].patch("/api/v1/namespaces/default", labels)
    await publish(apis[0])
    names = [f"c{each}" for each in range(8)]
    await make_claims(apis[0], *names)
    codes: set[int] = set()

    async def client(number: int) -> None:
        random, api = Random(seed * 100 + number), apis[number % len(apis)]
        for _ in range(writes):
            name = random.choice(names)
            if random.randrange(10) == 0:
                await api.delete(f"{CLAIMS}/{name}")
                await api.create(CLAIMS, claim_document(name, request_of("gpu")))
                continue
            if (await api.get(f"{CLAIMS}/{name}")).code != 200:
                continue
            wanted = any_allocation(random)
            if wanted:  # an allocation never changes: it goes first
                await allocate(api, name)
            codes.add((await allocate(api, name, *wanted)).code)
            await asyncio.sleep(0)
            assert overdrawn((await api.get(CLAIMS)).body["items"]) == []

    await asyncio.gather(*(client(number) for number in range(clients)))
    return codes


@on_loop
@pytest.mark.parametrize("seed", range(5))
async def test_many_clients_that_write_at_random_never_overdraw_the_ledger(tmp_path: Path, seed: int) -> None:
    async with on_disk(tmp_path, Settings(enable_plugins=("DeviceOwnership",), random=Random(seed))) as api:
        assert {200, 409} <= await write_at_random([api], seed)


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd")) as (member,):
        yield member.client


@asynccontextmanager
async def on_etcd(address: str, prefix: str) -> AsyncIterator[Api]:
    clock = FakeClock()
    async with (
        await EtcdStore.open(EtcdAccess(endpoints=(address,), prefix=prefix)) as store,
        await build_server(store, clock=clock, settings=OWNED) as server,
    ):
        yield Api(server, clock)


@on_loop
@pytest.mark.parametrize("seed", range(3))
async def test_two_servers_on_one_etcd_never_overdraw_the_ledger(etcd: str, seed: int) -> None:
    async with on_etcd(etcd, f"/random-{seed}") as one, on_etcd(etcd, f"/random-{seed}") as other:
        assert {200, 409} <= await write_at_random([one, other], seed, clients=8, writes=15)


@on_loop
async def test_of_two_servers_that_allocate_one_device_at_once_one_is_refused(etcd: str) -> None:
    async with on_etcd(etcd, "/at-once") as one, on_etcd(etcd, "/at-once") as other:
        await publish(one)
        for turn in range(10):
            names = [f"{turn}-one", f"{turn}-other"]
            await make_claims(one, *names)
            answers = await asyncio.gather(
                *(allocate(api, name, result("d0")) for api, name in zip((one, other), names, strict=True))
            )
            assert sorted(answer.code for answer in answers) == [200, 409]
            # Free again by the other server than the one that allocates next: its ledger must not be behind.
            for name, answer in zip(names, answers, strict=True):
                if answer.code == 200:
                    assert (await allocate(other, name)).code == 200
