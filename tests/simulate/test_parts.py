"""The simulator's parts: loops, disks, shrinking, the command."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from drakit.simulate.__main__ import main
from drakit.simulate.disk import JournalDisk
from drakit.simulate.diskfiles import DiskFiles
from drakit.simulate.loops import Deadlock, LoopClock, SeededLoop, SteppedLoop
from drakit.simulate.processes import Graveyard, Process, undisturbed
from drakit.simulate.runs import RunPlan, RunResult, RunStep
from drakit.simulate.shrink import shrink
from drakit.simulate.transcripts import coverage, transcript
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
        owed = killed.promise(ConnectionError("gone"))
        await asyncio.sleep(1)
        killed.kill()
        with pytest.raises(ConnectionError):
            await owed
        paused.pause()
        await asyncio.sleep(60)
        paused.resume()
        await asyncio.sleep(1)

    with undisturbed():
        loop.run_until_complete(play())
        assert said == ["paused at 61", "paused cleans up"]
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


@pytest.mark.parametrize("arguments", [["--seeds", "9..3"], ["--seeds", "x"], ["--faults", "floods"]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[1] in capsys.readouterr().err
