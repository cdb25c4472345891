"""The layout of what drakit keeps in etcd, and its version.

In:  a prefix, of which somebody may have made use before.
Out: how revisions of the store and of etcd belong together, or the reason why this drakit must not touch it.
"""

from __future__ import annotations

import msgspec
from grpc import aio

from drakit.store.contract import EMPTY_REVISION
from drakit.store.errors import Corrupt, SchemaTooNew, StoreUnavailable
from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.etcd.connection import READ_SECONDS, Connection
from drakit.store.etcd.requests import Keys, write

LAYOUT = 1


class LayoutVersion(msgspec.Struct, frozen=True):
    """Written once. `revision` is the store's revision at that write, whichever one etcd gave it."""

    layout: int
    revision: int = EMPTY_REVISION


async def read_layout(connection: Connection, keys: Keys, *, begin_at: int = EMPTY_REVISION) -> None:
    """Record the version where nobody has been yet, and set the shift of revisions.

    Raises SchemaTooNew, Corrupt, StoreUnavailable.
    """
    first = write(keys.version, msgspec.json.encode(LayoutVersion(LAYOUT, begin_at)), 0)
    try:
        # Replicas that start together write the same, and one of them is first.
        await connection.read(lambda each: each.kv.Txn(first, timeout=READ_SECONDS))
        found = await connection.read(
            lambda each: each.kv.Range(pb.RangeRequest(key=keys.version), timeout=READ_SECONDS)
        )
    except aio.AioRpcError as error:
        raise StoreUnavailable(f"etcd refuses: {error.details()}") from None
    place = f"etcd below {keys.version.decode()}"
    try:
        version = msgspec.json.decode(found.kvs[0].value, type=LayoutVersion)
    except (msgspec.DecodeError, IndexError):
        raise Corrupt(f"{place} has no version that drakit can read") from None
    if version.layout > LAYOUT:
        raise SchemaTooNew(place, version.layout, LAYOUT)
    # The revision at which the version was written is known in both sequences, so their distance is.
    keys.shift = version.revision - found.kvs[0].create_revision
