"""`drakit store copy|backup|restore|compact`: move a database, keep a copy of it, make it small.

In:  places: a data directory, a file, or addresses of etcd.
Out: the same objects there, checked after they were written. The servers of both places must not be running.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from drakit.base.errors import UsageError
from drakit.cli.flags.groups import EtcdFlags, with_groups
from drakit.cli.output.progress import tracked
from drakit.cli.processes.storage import open_etcd
from drakit.store import RecordPage, SQLiteStore, Store
from drakit.store.transfer import check_equal, write_file, write_store

DATABASE = "drakit.db"


@with_groups
def copy(
    source: Annotated[str, typer.Argument(help="A data directory, or comma-separated addresses of etcd.")],
    target: Annotated[str, typer.Argument(help="Where to: the same, and nothing is there yet.")],
    etcd: EtcdFlags,
) -> None:
    """Copy all objects to another place, of any engine, and compare them."""
    count = asyncio.run(_copy(source, target, etcd))
    typer.echo(f"{count} objects copied to {target} and compared")


def backup(
    data_dir: Annotated[Path, typer.Option(help="The data directory of the server.")],
    file: Annotated[Path, typer.Argument(help="The copy; it must not be there yet.")],
) -> None:
    """Write all objects to a file of their own. Certificates and keys beside the database are not in it."""
    count = asyncio.run(_to_file(data_dir / DATABASE, file))
    typer.echo(f"{count} objects saved to {file}")


def restore(
    data_dir: Annotated[Path, typer.Option(help="The data directory of the server; it has no database yet.")],
    file: Annotated[Path, typer.Argument(help="What `drakit store backup` wrote.")],
) -> None:
    """Make the database of a data directory from a backup."""
    count = asyncio.run(_to_file(file, _in_directory(data_dir)))
    typer.echo(f"{count} objects restored to {data_dir}")


def compact(data_dir: Annotated[Path, typer.Option(help="The data directory of the server.")]) -> None:
    """Forget all history, and give the space of it back."""
    path = _existing(data_dir / DATABASE)
    before = path.stat().st_size
    asyncio.run(_compact(path))
    typer.echo(f"{path}: {before:,} bytes before, {path.stat().st_size:,} now")


async def _copy(source: str, target: str, etcd: EtcdFlags) -> int:
    async with await _open(source, etcd) as opened:
        page = await opened.list("/")
    if not _is_etcd(target):
        return await _written(page, _in_directory(Path(target)))
    flags = msgspec.structs.replace(etcd, etcd_servers=target)
    # The last one of the copies has the revision of the source.
    begin_at = max(page.revision - len(page.records), 1)
    async with await open_etcd(flags, begin_at=begin_at) as made:
        # Checked before anything is written: a copy never mixes with what is there.
        if await made.count("/"):
            raise UsageError(f"{target}: there are objects below {etcd.etcd_prefix} already")
        await write_store(made, page, lambda records: tracked(list(records), "objects"))
        check_equal(page, await made.list("/"))
    return len(page.records)


async def _to_file(source: Path, target: Path) -> int:
    async with await SQLiteStore.open(_existing(source)) as opened:
        page = await opened.list("/")
    return await _written(page, target)


async def _written(page: RecordPage, path: Path) -> int:
    write_file(path, page, lambda records: tracked(list(records), "objects"))
    async with await SQLiteStore.open(path) as made:
        check_equal(page, await made.list("/"))
    return len(page.records)


async def _compact(path: Path) -> None:
    async with await SQLiteStore.open(path) as opened:
        await opened.compact(await opened.revision())


async def _open(place: str, etcd: EtcdFlags) -> Store:
    if _is_etcd(place):
        return await open_etcd(msgspec.structs.replace(etcd, etcd_servers=place))
    return await SQLiteStore.open(_existing(Path(place) / DATABASE))


def _in_directory(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory / DATABASE


def _is_etcd(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"{path}: it is not there")
    return path
