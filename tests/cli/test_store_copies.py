"""`drakit store copy|backup|restore|compact`: the same objects elsewhere, by file and by etcd."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drakit.base.errors import DrakitError, UsageError
from drakit.cli.commands.store import store as commands
from drakit.store import RecordPage, SQLiteStore, Store
from drakit.store.etcd import EtcdAccess, EtcdStore
from drakit.store.transfer import check_equal, differences
from tests.builders.etcd import etcd_cluster
from tests.store.engines import fill


async def _made(path: Path) -> RecordPage:
    """Objects with gaps in their revisions: some were changed, some deleted."""
    async with await SQLiteStore.open(path) as made:
        await fill(made, "/registry/core/pods/", 300)
        for name in ("003", "007"):
            current = await made.get(f"/registry/core/pods/{name}")
            await made.update(current.key, b"changed", expected=current.revision)
        gone = await made.get("/registry/core/pods/009")
        await made.delete(gone.key, expected=gone.revision)
        return await made.list("/")


async def _read(opened: Store) -> RecordPage:
    async with opened as store:
        return await store.list("/")


def _of_file(path: Path) -> RecordPage:
    async def read() -> RecordPage:
        return await _read(await SQLiteStore.open(path))

    return asyncio.run(read())


def run(*arguments: object) -> str:
    done = CliRunner().invoke(commands, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_backup_that_is_restored_has_the_same_objects_at_the_same_revisions(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    page = asyncio.run(_made(tmp_path / "data" / "drakit.db"))
    assert "299 objects saved" in run("backup", "--data-dir", tmp_path / "data", tmp_path / "copy.db")
    assert "299 objects restored" in run("restore", "--data-dir", tmp_path / "again", tmp_path / "copy.db")
    found = _of_file(tmp_path / "again" / "drakit.db")
    assert (list(found.records), found.revision) == (list(page.records), page.revision)
    with pytest.raises(DrakitError, match="already exists"):
        run("restore", "--data-dir", tmp_path / "again", tmp_path / "copy.db")
    with pytest.raises(UsageError, match="it is not there"):
        run("backup", "--data-dir", tmp_path / "nowhere", tmp_path / "other.db")


def test_compacting_gives_space_back_and_keeps_the_objects(tmp_path: Path) -> None:
    page = asyncio.run(_made(tmp_path / "drakit.db"))
    assert "bytes before" in run("compact", "--data-dir", tmp_path)
    assert list(_of_file(tmp_path / "drakit.db").records) == list(page.records)


def test_a_cluster_moves_to_etcd_and_back_and_no_revision_goes_back(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "etcd").mkdir()
    page = asyncio.run(_made(tmp_path / "data" / "drakit.db"))
    with etcd_cluster(tmp_path / "etcd") as (member,):
        assert "299 objects copied" in run("copy", tmp_path / "data", member.client)

        async def read() -> RecordPage:
            return await _read(await EtcdStore.open(EtcdAccess(endpoints=(member.client,))))

        moved = asyncio.run(read())
        assert differences(page, moved) == []
        assert moved.revision == page.revision
        order = sorted(page.records, key=lambda each: each.revision)
        assert [each.key for each in sorted(moved.records, key=lambda each: each.revision)] == [e.key for e in order]
        with pytest.raises(UsageError, match="there are objects below /drakit already"):
            run("copy", tmp_path / "data", member.client)
        run("copy", member.client, tmp_path / "back")
    back = _of_file(tmp_path / "back" / "drakit.db")
    assert (list(back.records), back.revision) == (list(moved.records), moved.revision)


def test_a_copy_that_differs_is_told_with_the_first_key() -> None:
    from drakit.store import Record

    one = RecordPage([Record("/a", b"1", 2, 2), Record("/b", b"1", 3, 3)], 3, 0)
    other = RecordPage([Record("/a", b"1", 2, 2), Record("/b", b"2", 3, 3)], 3, 0)
    with pytest.raises(DrakitError, match="differs in 1 keys, the first of them /b"):
        check_equal(one, other)
