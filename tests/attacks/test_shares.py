"""One user's load is that user's: others, and the cluster's own components, have their turn."""

from __future__ import annotations

import asyncio
import threading

import pytest

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.admission.criteria.worker import FLOW, Worker
from drakit.apiserver.auth import identities
from drakit.apiserver.auth.authentication import StaticTokens
from drakit.apiserver.auth.identities import is_component
from drakit.apiserver.failures import ApiError
from drakit.apiserver.serving.shares import BodyBudget, Lane, Limits, Shares
from tests.apiserver.calls import CLAIMS, on_loop
from tests.attacks.sockets import connect, get, on_socket, whole_answer


async def enter(lane: Lane, user: str) -> None:
    """Take a turn as the server does."""
    turn = lane.enter(user)
    if turn is not None:
        await lane.wait(user, turn)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@on_loop
async def test_a_users_requests_wait_for_their_own_and_for_no_others() -> None:
    lane = Lane(100, 2)
    order: list[str] = []

    async def request(user: str, name: str, done: asyncio.Event) -> None:
        await enter(lane, user)
        order.append(name)
        await done.wait()
        lane.leave(user)

    done = asyncio.Event()
    tasks = [asyncio.create_task(request("ann", f"a{number}", done)) for number in range(10)]
    await settle()
    assert order == ["a0", "a1"]
    tasks.append(asyncio.create_task(request("bob", "b", done)))
    await settle()
    assert order == ["a0", "a1", "b"]
    done.set()
    await asyncio.gather(*tasks)
    assert order == ["a0", "a1", "b", *(f"a{number}" for number in range(2, 10))]
    assert (lane.count, lane._flows) == (0, {})


@on_loop
async def test_one_user_does_not_fill_the_lane() -> None:
    lane = Lane(10, 2)
    tasks = [asyncio.create_task(enter(lane, "ann")) for _ in range(8)]
    await settle()
    refused = [task for task in tasks if task.done() and task.exception()]
    assert len(refused) == 3
    await enter(lane, "bob")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@on_loop
async def test_who_gives_up_waiting_leaves_no_trace() -> None:
    lane = Lane(10, 1)
    await enter(lane, "ann")
    waiting = [asyncio.create_task(enter(lane, "ann")) for _ in range(2)]
    await settle()
    waiting[0].cancel()
    await settle()
    lane.leave("ann")
    await waiting[1]
    assert lane.count == 1
    late = asyncio.create_task(enter(lane, "ann"))
    await settle()
    lane.leave("ann")  # gives the turn to `late`, which is cancelled in the same moment
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    assert (lane.count, lane._flows) == (0, {})


@on_loop
async def test_who_gives_up_while_another_leaves_is_passed_over() -> None:
    lane = Lane(10, 1)
    await enter(lane, "ann")
    gone, next_one = (asyncio.create_task(enter(lane, "ann")) for _ in range(2))
    await settle()
    gone.cancel()
    lane.leave("ann")  # before `gone` hears that it was cancelled
    await next_one
    with pytest.raises(asyncio.CancelledError):
        await gone
    lane.leave("ann")
    assert (lane.count, lane._flows) == (0, {})


def test_bodies_are_bounded_in_all_and_per_user() -> None:
    budget = BodyBudget(100)
    budget.take("ann", 25)
    with pytest.raises(ApiError, match="Too many requests"):
        budget.take("ann", 1)
    for user in ("bob", "cid", "dan"):
        budget.take(user, 25)
    with pytest.raises(ApiError):
        budget.take("eve", 1)
    budget.give_back("ann", 25)
    budget.take("eve", 25)
    assert budget.used == 100


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (identities.SCHEDULER, True),
        (identities.controller("node-controller"), True),
        (identities.node_agent("node-a"), True),
        (identities.ADMIN, True),
        (identities.account("default", "bot"), False),
        (User(name="system:anonymous"), False),
        (User(name="ann"), False),
    ],
)
def test_components_of_the_cluster_have_a_lane_of_their_own(user: User, expected: bool) -> None:
    shares = Shares(Limits())
    assert is_component(user) is expected
    assert (shares.lane(user, reading=True) is shares.components[True]) is expected


@on_loop
async def test_a_users_flood_is_read_behind_what_others_send() -> None:
    """200 connections of one user have a request each. That of another user is sent last, and not answered last."""
    tokens = StaticTokens({f"of-{name}": User(name=name) for name in ("ann", "mob")})
    answered: list[str] = []

    async def listen(user: str, reader: asyncio.StreamReader) -> None:
        assert (await whole_answer(reader))[0] == 200
        answered.append(user)

    async with on_socket(Settings(tokens=tokens)) as (_, port):
        senders = [(user, *await connect(port)) for user in ["mob"] * 200 + ["ann"]]
        for _ in range(2):  # the first time, the server learns whose connections these are
            answered.clear()
            for user, _, writer in senders:
                writer.write(get(CLAIMS, f"authorization: Bearer of-{user}"))
            await asyncio.gather(*(listen(user, reader) for user, reader, _ in senders))
        assert answered.index("ann") < 100
        for _, _, writer in senders:
            writer.close()


@on_loop
async def test_large_objects_of_one_user_wait_behind_their_own() -> None:
    worker = Worker("test")
    order: list[str] = []

    async def work(user: str, name: str) -> None:
        FLOW.set(user)
        await worker.call(lambda: order.append(name))

    tasks = [asyncio.create_task(work("mob", f"m{number}")) for number in range(10)]
    tasks += [asyncio.create_task(work("ann", f"a{number}")) for number in range(2)]
    await asyncio.gather(*tasks)
    worker.close()
    assert order[:5] == ["m0", "m1", "a0", "m2", "a1"]
    assert (worker._busy, worker._waiting) == (False, {})


@on_loop
async def test_who_gives_up_waiting_for_the_thread_holds_nobody_up() -> None:
    worker = Worker("test")
    release = threading.Event()
    first = asyncio.create_task(worker.call(lambda: release.wait(10)))
    await settle()
    gone, next_one = (asyncio.create_task(worker.call(lambda: "done")) for _ in range(2))
    await settle()
    gone.cancel()
    await settle()
    release.set()
    assert (await first, await next_one) == (True, "done")
    worker.close()
    assert (worker._busy, worker._waiting) == (False, {})


@on_loop
async def test_who_gives_up_when_the_thread_is_free_for_it_passes_it_on() -> None:
    worker = Worker("test")
    worker._busy = True
    gone, next_one = (asyncio.create_task(worker.call(lambda: "done")) for _ in range(2))
    await settle()
    worker._pass_on()
    gone.cancel()
    assert await next_one == "done"
    worker.close()
    assert (worker._busy, worker._waiting) == (False, {})
