"""The simulator's parts: loops, disks, shrinking, the command."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

import drakit.simulate.__main__ as command
from drakit.api import ObjectMeta, ResourceClaim
from drakit.client import CLAIMS
from drakit.simulate.__main__ import main
from drakit.simulate.disks.files import DiskFiles, SimulatedLock
from drakit.simulate.disks.journal import JournalDisk
from drakit.simulate.links import NodeSockets
from drakit.simulate.loops import PROCESS, START, Deadlock, LoopClock, SeededLoop, SteppedLoop
from drakit.simulate.processes import Graveyard, Process, undisturbed
from drakit.simulate.rules.watchers import HistoryEntry, ShadowWatch, WriteHistory
from drakit.simulate.runs import RunPlan, RunResult, RunStep, plan_of, run
from drakit.simulate.shrink import shrink
from drakit.simulate.transcripts import coverage, transcript
from drakit.simulate.workers import played
from drakit.store.errors import StoreUnavailable
from drakit.store.records import Record, StoreEvent


def seeded(seed: int) -> list[str]:
    """Three processes that take turns, as this seed has it."""
    loop, said = SeededLoop(Random(seed)), list[str]()
    graveyard = Graveyard(loop)

    async def work(name: str) -> None:
        for number in range(4):
            said.append(f"{name}{number}")
            await asyncio.sleep(0)

    async def play() -> None:
        await asyncio.gather(*(Process(each, 1, loop).spawn(work(each)) for each in "abc"))

    with undisturbed():
        loop.run_until_complete(play())
        graveyard.bury()
    loop.close()
    return said


def test_the_seed_says_who_runs_next() -> None:
    assert seeded(1) == seeded(1)
    assert len({tuple(seeded(each)) for each in range(20)}) > 10
    for name in "abc":
        assert [each for each in seeded(3) if each[0] == name] == [f"{name}{number}" for number in range(4)]


def test_a_killed_process_does_not_clean_up_and_a_paused_one_goes_on() -> None:
    loop, said = SeededLoop(Random(1)), list[str]()
    graveyard = Graveyard(loop)

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(10)
            said.append(f"{name} at {loop.time():.0f}")
        finally:
            said.append(f"{name} cleans up")

    async def play() -> None:
        killed, paused = Process("killed", 1, loop), Process("paused", 1, loop)
        killed.spawn(work("killed"))
        paused.spawn(work("paused"))
        killed.answer(lambda: asyncio.sleep(10), ConnectionError("gone"), lambda _, error: said.append(str(error)))
        await asyncio.sleep(1)
        killed.kill()
        paused.pause()
        await asyncio.sleep(60)
        paused.resume()
        await asyncio.sleep(1)

    with undisturbed():
        loop.run_until_complete(play())
        assert said == ["gone", "paused at 61", "paused cleans up"]
        graveyard.bury()
    loop.close()


def test_a_loop_in_which_nothing_can_happen_says_so() -> None:
    loop = SeededLoop(Random(1))
    waiting = loop.create_future()
    with pytest.raises(Deadlock):
        loop.run_until_complete(waiting)
    waiting.cancel()
    loop.close()


def test_a_stepped_loop_moves_from_timer_to_timer() -> None:
    said: list[float] = []

    async def work(clock: LoopClock) -> None:
        for _ in range(3):
            await clock.sleep(1000)
            said.append(clock.monotonic())

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        task = asyncio.create_task(work(LoopClock(loop)))
        await loop.advance(2500)
        assert said == [1000, 2000]
        assert loop.time() == 2500
        await loop.advance(500)
        await task

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(play())
    assert said == [1000, 2000, 3000]


def event(revision: int) -> StoreEvent:
    return StoreEvent(revision, f"/k{revision}", Record(f"/k{revision}", b"v", revision, revision), None)


@pytest.mark.timeout(60)
def test_time_flows_for_who_listens() -> None:
    """A server that looks every now and then whether it should end would never end where time stands still."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        before = loop.flows
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0):
            assert (before, loop.flows) == (False, True)
            await asyncio.sleep(0.05)

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(play())


def test_a_disk_keeps_what_was_flushed_and_a_batch_whole_or_not_at_all() -> None:
    kept = set()
    for seed in range(20):
        disk = JournalDisk(Random(seed))
        disk.begin([event(2)])
        disk.finish([event(2)])
        disk.begin([event(3), event(4)])
        disk.lose_power()
        kept.add(disk.revision)
    assert kept == {2, 4}


def test_a_full_disk_takes_nothing() -> None:
    disk = JournalDisk(Random(1))
    disk.full = True
    disk.begin([event(2)])
    with pytest.raises(StoreUnavailable):
        disk.finish([event(2)])
    assert disk.rows == []


def test_files_that_were_not_flushed_are_gone_with_the_power() -> None:
    async def play() -> None:
        files = DiskFiles()
        await files.write(Path("/a/kept"), b"1")
        await files.write(Path("/a/lost"), b"1", flush=False)
        await files.write(Path("/a/kept"), b"2", flush=False)
        assert await files.names(Path("/a")) == ["kept", "lost"]
        files.lose_power()
        assert await files.names(Path("/a")) == ["kept"]
        assert await files.read(Path("/a/kept")) == b"1"
        files.full = True
        with pytest.raises(OSError, match="No space left"):
            await files.write(Path("/a/more"), b"1")

    asyncio.run(play())


def test_a_lock_of_a_simulated_file_goes_with_its_process() -> None:
    files, path = DiskFiles(), Path("/a/lock")

    def opened_by(process: str) -> SimulatedLock:
        context = copy_context()
        context.run(PROCESS.set, process)
        return context.run(files.open_lock, path)

    old, new = opened_by("old"), opened_by("new")
    assert old.try_lock(1, 1)
    assert not new.try_lock(0, 0)
    assert new.try_lock(2, 1)
    files.unlock("old")
    assert new.try_lock(0, 0)
    new.close()
    assert opened_by("next").try_lock(0, 0)


@pytest.mark.timeout(60)
def test_a_socket_that_comes_while_the_agent_looks_is_seen() -> None:
    async def play() -> None:
        sockets = NodeSockets()
        sockets.sockets()
        sockets.break_off("nobody")
        sockets.remove("nobody")
        sockets.serve("gpu", cast("Any", None))
        async with asyncio.timeout(30):
            await sockets.changed()
        assert list(sockets.sockets()) == ["gpu"]
        waiting = asyncio.ensure_future(sockets.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(play())


def result_of(plan: RunPlan) -> RunResult:
    """A run that fails when both steps are in it."""
    names = {each.name for each in plan.steps}
    broken = ("pod x is wrong",) if {"fault a", "fault b"} <= names else ()
    return RunResult(plan, broken, "", ("0.0 start",), {("a", "running"): 2}, 1.0, 1)


def test_a_failure_is_shrunk_to_what_it_needs() -> None:
    steps = tuple(RunStep(float(number), f"fault {name}", 1) for number, name in enumerate("xaybz"))
    failed = result_of(RunPlan(1, 2, None, ("late",), steps))
    found = shrink(failed, play=result_of)
    assert [each.name for each in found.plan.steps] == ["fault a", "fault b"]
    assert found.plan.weather == ()
    text = "\n".join(transcript(found))
    assert "BROKEN: pod x is wrong" in text
    assert "python -m drakit.simulate --seeds 1 --transcript" in text
    assert "running" in "\n".join(coverage(Counter(found.met), ["a"]))


def test_the_command_tells_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--faults", "crash-scheduler,late"]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 runs" in said
    assert "crash-scheduler" in said


def test_a_broken_rule_is_told_with_its_transcript(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = RunResult(RunPlan(7, 1, None, (), ()), ("pod x is wrong",), "", ("0.0 start",), {}, 1.0, 1)
    monkeypatch.setattr(command, "played", lambda *_: nullcontext(iter([broken])))
    assert main(["--seeds", "7", "--tries", "0"]) == 1
    said = capsys.readouterr().out
    assert "BROKEN: pod x is wrong" in said
    assert "broken seeds: 7" in said


def test_an_interrupted_series_ends_with_its_summary(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def results() -> Iterator[RunResult]:
        yield RunResult(RunPlan(1, 1, None, (), ()), (), "", (), {("late", "running"): 1}, 1.0, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "played", lambda *_: nullcontext(results()))
    assert main(["--seeds", "1..9"]) == 130
    said = capsys.readouterr().out
    assert "1 of 9 runs" in said
    assert "late" in said


def test_a_series_is_gone_on_with_from_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    def play(seeds: Sequence[int], *_: object) -> Any:
        asked.append(list(seeds))
        made = (RunResult(RunPlan(each, 1, None, (), ()), ("x is wrong",) * (each == 2), "", (), {}, 1.0, 1)
                for each in seeds)  # fmt: skip
        return nullcontext(made)

    monkeypatch.setattr(command, "played", play)
    log = tmp_path / "runs.jsonl"
    main(["--seeds", "1..3", "--tries", "0", "--log", str(log)])
    with log.open("a") as file:
        file.write('{"seed":4,"viol')  # a series that was killed while it wrote
    main(["--seeds", "1..4", "--tries", "0", "--log", str(log)])
    assert asked == [[1, 2, 3], [2, 4]]


def test_a_run_in_a_fork_is_the_run_of_its_seed() -> None:
    with played([8, 108], 2, lambda seed: plan_of(seed, ("crash-scheduler", "late")).without_quiet()) as results:
        found = {each.plan.seed: each.digest for each in results}
    assert found == {each: run(plan_of(each, ("crash-scheduler", "late")).without_quiet()).digest for each in (8, 108)}


def test_a_run_in_a_fork_finds_no_files_of_the_one_before() -> None:
    """Agents that start again read what is in their directories."""
    seeds = (23, 123, 6323)
    with played(seeds, 1, plan_of) as results:
        found = {each.plan.seed: each.digest for each in results}
    assert found[6323] == run(plan_of(6323)).digest


def test_a_clock_that_goes_fast_waits_less_and_does_not_jump() -> None:
    loop, said = SeededLoop(Random(1)), list[float]()

    async def play() -> None:
        clock = LoopClock(loop)
        await clock.sleep(10)
        clock.go_at(2.0)
        await clock.sleep(10)
        said.extend((loop.time(), clock.monotonic()))
        clock.set_right()
        said.append((clock.now() - START).total_seconds())

    loop.run_until_complete(play())
    loop.close()
    assert said == [15.0, 20.0, 15.0]


def watched(*told: tuple[str, int, str]) -> list[str]:
    """What a watch is judged for that begins at 3, and is told this."""
    said, history = list[str](), WriteHistory()
    for entry in (HistoryEntry(5, "default/a", "ADDED"), HistoryEntry(8, "default/a", "MODIFIED")):
        history.add("resourceclaims", entry)
    watch = ShadowWatch(None, CLAIMS, history, said.append)  # type: ignore[arg-type]
    watch.begin(3)
    for kind, revision, name in told:
        watch.take(kind, revision, ResourceClaim(metadata=ObjectMeta(name=name, namespace="default")))
    return said


def test_a_watch_that_tells_all_is_right() -> None:
    assert watched(("BOOKMARK", 4, ""), ("ADDED", 5, "a"), ("BOOKMARK", 7, ""), ("MODIFIED", 8, "a")) == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([("MODIFIED", 8, "a")], "missed"),
        ([("BOOKMARK", 6, "")], "missed"),
        ([("ADDED", 5, "a"), ("ADDED", 5, "a")], "is told of 5 after 5"),
        ([("ADDED", 5, "b")], "is what happened"),
        ([("MODIFIED", 5, "a")], "is what happened"),
        ([("ADDED", 5, "a"), ("BOOKMARK", 4, "")], "goes back"),
    ],
)
def test_a_watch_that_tells_something_else_is_seen(told: list[tuple[str, int, str]], words: str) -> None:
    assert words in watched(*told)[0]


@pytest.mark.parametrize("arguments", [["--seeds", "9..3"], ["--seeds", "x"], ["--faults", "floods"], ["--jobs", "0"]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[1] in capsys.readouterr().err
