"""Log files in the CRI's format, read from either end, and while they grow."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.base.clock import FakeClock
from drakit.nodeagent.server import logfiles
from drakit.nodeagent.server.logfiles import LogSelection, read_log, tail_start
from tests.client.servers import on_loop, turns
from tests.nodeagent.server.hosts import record


async def read(path: Path, *, tail: int | None = None, selection: LogSelection | None = None) -> bytes:
    lines = read_log(path, selection or LogSelection(), clock=FakeClock(), tail=tail)
    return b"".join([text async for text in lines])


def log_of(directory: Path, *records: str) -> Path:
    path = directory / "0.log"
    path.write_text("".join(records))
    return path


@on_loop
async def test_lines_of_both_streams_come_in_order(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("one"), record("two", stream="stderr"), record(""), record("three  spaced "))
    assert await read(path) == b"one\ntwo\n\nthree  spaced \n"


@on_loop
async def test_parts_of_a_line_are_joined_and_have_one_timestamp(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("long ", tag="P"), record("line", second=1), record("next", second=2))
    assert await read(path) == b"long line\nnext\n"
    stamped = await read(path, selection=LogSelection(timestamps=True))
    assert stamped == b"2026-01-01T00:00:00.000000000Z long line\n2026-01-01T00:00:02.000000000Z next\n"


@on_loop
async def test_only_what_is_not_older_than_a_time(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("old"), record("just", second=5), record("new", second=6))
    since = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert await read(path, selection=LogSelection(since=since)) == b"just\nnew\n"


@pytest.mark.parametrize(("limit", "text"), [(1, b"o"), (4, b"one\n"), (5, b"one\nt"), (99, b"one\ntwo\n")])
@on_loop
async def test_no_more_bytes_than_were_asked_for(tmp_path: Path, limit: int, text: bytes) -> None:
    path = log_of(tmp_path, record("one"), record("two"))
    assert await read(path, selection=LogSelection(limit_bytes=limit)) == text


@on_loop
async def test_records_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = log_of(tmp_path, "garbage\n", "2026-01-01T00:00:00Z elsewhere F x\n", record("good"))
    assert await read(path) == b"good\n"


@pytest.mark.parametrize(
    ("lines", "text"), [(0, b""), (1, b"d\n"), (2, b"bc\nd\n"), (3, b"a\nbc\nd\n"), (9, b"a\nbc\nd\n")]
)
@on_loop
async def test_the_last_lines_count_lines_not_parts(tmp_path: Path, lines: int, text: bytes) -> None:
    path = log_of(tmp_path, record("a"), record("b", tag="P"), record("c"), record("d"))
    assert await read(path, tail=lines) == text


@settings(max_examples=60)
@given(st.lists(st.tuples(st.text("xy z", max_size=8), st.sampled_from("FP")), max_size=12), st.integers(0, 14))
def test_a_tail_found_from_the_end_is_the_one_found_from_the_start(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str]], lines: int
) -> None:
    path = log_of(tmp_path_factory.mktemp("logs"), *(record(text, tag=tag) for text, tag in records))
    starts, offset = [0], 0
    for line in path.read_bytes().splitlines(keepends=True):
        offset += len(line)
        if line[37:40] == b" F ":
            starts.append(offset)
    whole = len(starts) - 1
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as file:
        patch.setattr(logfiles, "BLOCK", 7)
        assert tail_start(file, lines) == (starts[whole - lines] if lines < whole else 0)


@on_loop
async def test_what_is_not_finished_yet_is_no_line_of_the_tail(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("one"), record("two"), record("three")[:-3])
    assert await read(path, tail=1) == b"two\nthr\n"


class Followed:
    """A follower on a clock of its own, and the container that it follows."""

    def __init__(self, path: Path, *, tail: int | None = None) -> None:
        self.clock = FakeClock()
        self.running = True
        self.text = b""
        self.task = asyncio.ensure_future(self._follow(path, tail))

    async def _follow(self, path: Path, tail: int | None) -> None:
        async for text in read_log(path, LogSelection(), clock=self.clock, tail=tail, follow=self._runs):
            self.text += text

    async def _runs(self) -> bool:
        return self.running

    async def pass_time(self, seconds: float = 1.5) -> bytes:
        await self.clock.run_for(seconds)
        return self.text

    async def end(self) -> bytes:
        self.running = False
        await self.clock.run_for(3)
        await self.task
        return self.text


@on_loop
async def test_a_follower_gets_what_is_written_until_the_container_ends(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("before"))
    follower = Followed(path)
    assert await follower.pass_time() == b"before\n"
    with path.open("a") as file:
        file.write(record("half")[:-2])
        file.flush()
        assert await follower.pass_time() == b"before\n"
        file.write("f\n")
        file.flush()
        assert await follower.pass_time() == b"before\nhalf\n"
        file.write(record("last words"))
    assert await follower.end() == b"before\nhalf\nlast words\n"


@on_loop
async def test_a_follower_of_no_lines_gets_only_new_ones(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("before"))
    follower = Followed(path, tail=0)
    assert await follower.pass_time() == b""
    with path.open("a") as file:
        file.write(record("after"))
    assert await follower.end() == b"after\n"


@on_loop
async def test_a_follower_goes_on_in_the_file_that_rotation_puts_in_its_place(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("one"))
    follower = Followed(path)
    await follower.pass_time()
    old = path.open("a")
    path.rename(tmp_path / "0.log.1")
    await follower.pass_time()
    old.write(record("two"))  # the writer has not been told yet
    old.close()
    log_of(tmp_path, record("three"))
    assert await follower.pass_time() == b"one\ntwo\nthree\n"
    assert await follower.end() == b"one\ntwo\nthree\n"


@on_loop
async def test_a_follower_starts_over_in_a_file_that_was_cut(tmp_path: Path) -> None:
    path = log_of(tmp_path, record("a long first line"))
    follower = Followed(path)
    await follower.pass_time()
    os.truncate(path, 0)
    await follower.pass_time()
    with path.open("a") as file:
        file.write(record("anew"))
    assert await follower.end() == b"a long first line\nanew\n"


@on_loop
async def test_a_reader_of_a_file_that_grows_all_the_time_comes_to_an_end(tmp_path: Path) -> None:
    path = log_of(tmp_path, *(record("x" * 1000) for _ in range(200)))
    sizes = []
    async for text in read_log(path, LogSelection(), clock=FakeClock()):
        sizes.append(len(text))
        with path.open("a") as file:
            file.write(record("more"))
    assert sum(sizes) == 200 * 1001
    assert max(sizes) <= logfiles.BLOCK


@on_loop
async def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(record("").encode()[:-1] + b"x" * (3 * logfiles.LONGEST_RECORD) + b"\n" + record("good").encode())
    assert (await read(path)).endswith(b"good\n")
    assert len(await read(path)) < logfiles.LONGEST_RECORD


@on_loop
async def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await read(tmp_path / "none.log")


@on_loop
async def test_a_follower_that_is_left_closes_its_file(tmp_path: Path) -> None:
    follower = Followed(log_of(tmp_path, record("one")))
    await follower.pass_time()
    follower.task.cancel()
    await turns()
    assert follower.task.cancelled()
