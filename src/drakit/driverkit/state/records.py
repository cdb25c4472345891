"""What is remembered of each claim: one file per claim, with a version and a checksum.

In:  how far the preparation of a claim has come, and what it gave.
Out: the same after a restart. A damaged file is set aside, with a message; of its claim the uid is still known, since
     it is the file's name.

States of a record, and what is done with a claim that is found in it:

    (no record)   nothing is prepared
    Preparing     prepare was begun: unprepare first
    Prepared      answer from the record; after a reboot, prepare anew
    Unpreparing   unprepare was begun: unprepare again
    Damaged       nobody knows: unprepare first
"""

from __future__ import annotations

import logging
import zlib
from enum import Enum
from pathlib import Path

import msgspec

from drakit.api import from_json, to_json
from drakit.base.errors import DecodeError
from drakit.base.structs import Model
from drakit.driverkit.claims import ClaimRef, PreparedDevice
from drakit.driverkit.state.files import FileSystem

log = logging.getLogger("drakit.driverkit")

VERSION = 1
SUFFIX = ".json"
DAMAGED = ".damaged"


class RecordState(Enum):
    BOUND = "Bound"
    """`bind` was called, and prepare not yet: what it took has to be given back when prepare never comes."""
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    UNPREPARING = "Unpreparing"
    DAMAGED = "Damaged"


class Preparation(Model):
    """Invariant: a record that says Prepared was written after the claim's CDI file."""

    ref: ClaimRef
    state: RecordState
    boot_id: str = ""
    devices: tuple[PreparedDevice, ...] = ()
    pod_claim_name: str = ""
    """How the pod calls a claim that was made from a template; part of the path of metadata files."""
    generation: int = 1
    """Of the metadata files; it grows with every change."""


class _Sealed(msgspec.Struct):
    """The file: `data` is covered by the checksum byte by byte."""

    version: int
    checksum: int
    data: msgspec.Raw


class Records:
    """Nothing is kept in memory: with two instances during a rolling update, the file is what both agree on."""

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.directory = directory
        self._files = files

    async def get(self, uid: str) -> Preparation | None:
        """What is remembered. A damaged file gives a record in state Damaged, and is set aside once."""
        content = await self._files.read(self._path(uid))
        if content is None:
            # Set aside earlier, and the claim not yet cleaned up.
            aside = await self._files.read(self._aside(uid))
            return None if aside is None else _damaged(uid)
        try:
            return unseal(content)
        except DecodeError as error:
            await self._set_aside(uid, error)
            return _damaged(uid)

    async def put(self, record: Preparation, *, flush: bool) -> None:
        await self._files.write(self._path(record.ref.uid), seal(record), flush=flush)

    async def remove(self, uid: str) -> None:
        await self._files.remove(self._path(uid))
        await self._files.remove(self._aside(uid))

    async def uids(self) -> list[str]:
        """Claims of which something is remembered."""
        names = await self._files.names(self.directory)
        found = (name.removesuffix(DAMAGED) for name in names if not name.startswith("."))
        return sorted({name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)})

    def _path(self, uid: str) -> Path:
        return self.directory / f"{uid}{SUFFIX}"

    def _aside(self, uid: str) -> Path:
        return self.directory / f"{uid}{SUFFIX}{DAMAGED}"

    async def _set_aside(self, uid: str, error: DecodeError) -> None:
        path, aside = self._path(uid), self._aside(uid)
        log.error("the record of claim %s is damaged (%s): %s is set aside as %s", uid, error, path, aside.name)
        # Kept for a person to look at; `remove` takes it away with the claim.
        await self._files.rename(path, aside)


def seal(record: Preparation) -> bytes:
    data = to_json(record)
    return msgspec.json.encode(_Sealed(VERSION, zlib.crc32(data), msgspec.Raw(data)))


def unseal(content: bytes) -> Preparation:
    """Raise DecodeError for bytes that are no record, or not the one that was written."""
    try:
        sealed = msgspec.json.decode(content, type=_Sealed)
    except msgspec.DecodeError as error:
        raise DecodeError(f"not a record: {error}") from None
    # Before the checksum: a newer program may have sealed the data in another way.
    if sealed.version != VERSION:
        raise DecodeError(f"version {sealed.version}, and this program knows version {VERSION}")
    data = bytes(sealed.data)
    if zlib.crc32(data) != sealed.checksum:
        raise DecodeError("the checksum is wrong")
    return from_json(Preparation, data)


def _damaged(uid: str) -> Preparation:
    return Preparation(ref=ClaimRef(namespace="", name="", uid=uid), state=RecordState.DAMAGED)
