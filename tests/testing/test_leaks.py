"""What a cluster starts is gone when it is closed: tasks, threads, files, processes."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import threading
import urllib.request
from pathlib import Path

import pytest

from drakit.simulate.cluster import ClusterPlan
from drakit.simulate.loops import SteppedLoop
from drakit.testing import local_cluster
from drakit.testing.cluster import running
from tests.testing.gpuprocess import COMMAND


def open_files() -> set[str]:
    """Each as number and what it leads to; the folder that is being read is not one of them."""
    gc.collect()
    links = {each.name: str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}
    return {f"{name} {target}" for name, target in links.items() if not target.endswith("/fd")}


def directories() -> set[str]:
    return {each.name for each in Path(tempfile.gettempdir()).glob("drakit-*")}


def use_one_cluster() -> None:
    with local_cluster(nodes=2) as cluster, urllib.request.urlopen(f"{cluster.serve()}/version") as answer:
        assert answer.status == 200


def test_no_thread_and_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    use_one_cluster()  # what is made once per process
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(3):
        use_one_cluster()
    # Others in this process may end theirs meanwhile: what counts is what came.
    assert set(threading.enumerate()) - threads == set()
    assert open_files() - files == set()
    assert directories() == set()


def test_no_task_is_left() -> None:
    async def use() -> set[str]:
        before = asyncio.all_tasks()
        async with running(ClusterPlan(nodes=2)) as cluster:
            await cluster.serve()
            await cluster.advance(60)
            assert len(asyncio.all_tasks()) > 10
        return {each.get_name() for each in asyncio.all_tasks() - before}

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        assert runner.run(use()) == set()


def test_a_test_that_fails_at_the_start_of_a_cluster_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError), local_cluster() as cluster:
        cluster.advance(1 / 0)
    assert set(threading.enumerate()) - before == set()
    assert directories() == set()


def test_a_driver_that_still_runs_is_ended() -> None:
    before = children()
    with local_cluster(nodes=0) as cluster:
        cluster.add_node("bench", devices={})
        cluster.start_driver("bench", *COMMAND)
        [process] = children() - before
    assert process not in children()


def children() -> set[int]:
    """Processes that this one has started, for other tests too, and not ended yet."""
    path = Path(f"/proc/{os.getpid()}/task")
    return {int(each) for task in path.iterdir() for each in (task / "children").read_text().split()}
