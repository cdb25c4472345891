"""`drakit store`: look after the database of a server that is not running.

In:  the data directory of the server.
Out: what is wrong with its database, and a way to take a bad value out. Exit code 1 when something is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from drakit.apiserver.storage.encryption import Encryption, is_sealed
from drakit.base.errors import NotFound, UsageError
from drakit.cli.commands.storecopy import backup, compact, copy, restore
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.processes.host import encryption_of
from drakit.store import SQLiteStore
from drakit.store.journal import CheckedRow, Journal, is_sound

store = typer.Typer(no_args_is_help=True, help="Look after the database of a server that is not running.")

for _command in (copy, backup, restore, compact):
    store.command()(_command)

DataDir = Annotated[Path, typer.Option(help="The data directory of the server.")]


class BadValue(msgspec.Struct, frozen=True, rename="camel"):
    """A damaged row of the database."""

    key: str
    revision: int
    problem: str


@store.command()
def verify(
    data_dir: DataDir,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="yaml or json.")] = None,
) -> None:
    """Check every value against its checksum. The server must not be running."""
    with closing(_open(data_dir)) as journal:
        faults = list(journal.faults())
        rows = list(journal.checked_rows())
    bad = [found for row in rows if (found := _problem(row)) is not None]
    if output in (OutputForm.YAML, OutputForm.JSON):
        write_document({"values": len(rows), "faults": faults, "bad": msgspec.to_builtins(bad)}, output)
    else:
        for line in _told(len(rows), faults, bad):
            typer.echo(line)
    if faults or bad:
        raise typer.Exit(1)


@store.command()
def rewrite(
    data_dir: DataDir,
    encryption_provider_config: Annotated[Path, typer.Option(help="The keys: the first one of a resource encrypts.")],
) -> None:
    """Encrypt every value with the first key of a configuration.

    To replace a key: put the new one first, rewrite, and take the old one out. The server must not be running.
    """
    encryption = encryption_of(encryption_provider_config)
    typer.echo(f"{asyncio.run(_rewrite(_database(data_dir), encryption))} values rewritten")


async def _rewrite(path: Path, encryption: Encryption) -> int:
    async with await SQLiteStore.open(path) as opened:
        page = await opened.list("/registry/")
        for record in page.records:
            group, resource = record.key.split("/")[2:4]
            name = resource if group == "core" else f"{resource}.{group}"
            value = encryption.seal(name, record.key, encryption.open(record.key, record.value))
            # A write under the usual rules: revisions go on, and a restarted server sees nothing unusual.
            await opened.update(record.key, value, expected=record.revision)
        # What the old key had sealed is in the history too.
        await opened.compact(await opened.revision())
    return len(page.records)


@store.command()
def remove(data_dir: DataDir, key: Annotated[str, typer.Argument(help="As `verify` names it: /registry/…")]) -> None:
    """Take a value out, with its history. The server must not be running; watches of clients begin anew."""
    with closing(_open(data_dir)) as journal:
        if not journal.remove(key):
            raise NotFound(f"{data_dir}: there is no value of {key}")
    typer.echo(f"removed {key}")


def _database(directory: Path) -> Path:
    path = directory / "drakit.db"
    if not path.is_file():
        raise UsageError(f"--data-dir: {path} is not there")
    return path


def _open(directory: Path) -> Journal:
    return Journal.open(_database(directory))


def _problem(row: CheckedRow) -> BadValue | None:
    revision, key, value, _, _ = row
    if not is_sound(row):
        return BadValue(str(key), revision, "its checksum does not match")
    if value is None or is_sealed(value):
        return None
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadValue(key, revision, f"it is no object: {error}")
    return None


def _told(count: int, faults: list[str], bad: list[BadValue]) -> Iterator[str]:
    yield from (f"the file: {each}" for each in faults)
    yield from (f"{each.key} (revision {each.revision}): {each.problem}" for each in bad)
    if faults or bad:
        yield f"{len(faults) + len(bad)} faults in {count} values"
    else:
        yield f"{count} values, all as they were written"
