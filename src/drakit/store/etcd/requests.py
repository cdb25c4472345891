"""Messages to etcd, and records from its answers. Pure.

A key of the store stands in etcd below the prefix, unchanged; its value is the store's, unchanged. So any replica, and
anybody with etcdctl, reads the same.
"""

from __future__ import annotations

from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.records import Record, WriteTerms


class Keys:
    """Keys and revisions of the store as those of etcd, and back.

    A store that was copied from another engine goes on with that one's revisions, and a new one begins with the first:
    `shift` is what its revisions are ahead of etcd's. It is the same for all replicas.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.rstrip("/").encode()
        self.shift = 0
        self.objects = self._prefix + b"/objects"
        self.version = self._prefix + b"/version"
        self._guards = self._prefix + b"/guards/"
        """Beside what is watched: a guarded write is one event, as every other."""
        self.marker = self.objects + b"\x00marker"
        """Below what is watched, but no key of the store: those do not begin with a zero byte."""

    def of(self, key: str) -> bytes:
        return self.objects + key.encode()

    def guards(self, terms: WriteTerms) -> tuple[bytes, ...]:
        return tuple(self._guards + name.encode() for name in terms.guard.names) if terms.guard is not None else ()

    def name(self, key: bytes) -> str:
        return key[len(self.objects) :].decode()

    def range(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """The first key with that prefix (greater than `after`, if that is given), and the first one behind all."""
        start = self.of(prefix)
        return (max(start, self.of(after) + b"\x00") if after else start), end_of_range(start)

    def revision(self, of_etcd: int) -> int:
        return of_etcd + self.shift

    def of_etcd(self, revision: int) -> int:
        return revision - self.shift

    def is_object(self, key: bytes) -> bool:
        return key != self.marker

    def record(self, found: pb.KeyValue) -> Record:
        created, revision = self.revision(found.create_revision), self.revision(found.mod_revision)
        return Record(self.name(found.key), found.value, created, revision)


def end_of_range(prefix: bytes) -> bytes:
    """The least key greater than every key with this prefix; a single zero byte means that there is no end."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\x00"


def write(
    key: bytes, value: bytes | None, expected: int, *, lease: int = 0, guards: tuple[bytes, ...] = (), seen: int = 0
) -> pb.TxnRequest:
    """Put a value (none: delete the key) if the key's latest write had the revision `expected`.

    0 is the revision of a key that is not there. The guards are written with it, if none of them was after `seen`. If
    the write fails, the answer has the guards as they are.
    """
    change = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key))
    if value is not None:
        change = pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))
    unchanged = pb.Compare(result=pb.Compare.EQUAL, target=pb.Compare.MOD, key=key, mod_revision=expected)
    return pb.TxnRequest(
        compare=[unchanged, *(_not_after(each, seen) for each in guards)],
        success=[change, *(pb.RequestOp(request_put=pb.PutRequest(key=each)) for each in guards)],
        failure=[pb.RequestOp(request_range=pb.RangeRequest(key=each)) for each in guards],
    )


def _not_after(key: bytes, revision: int) -> pb.Compare:
    return pb.Compare(result=pb.Compare.LESS, target=pb.Compare.MOD, key=key, mod_revision=revision + 1)


def latest_guard(answer: pb.TxnResponse) -> int:
    """The revision of the latest write of any guard, from the answer to a write that failed."""
    found = [each.mod_revision for part in answer.responses for each in part.response_range.kvs]
    return max(found, default=0)


def follow(start: bytes, end: bytes, revision: int) -> pb.WatchRequest:
    """Events of a range from a revision on; large answers come in fragments."""
    made = pb.WatchCreateRequest(key=start, range_end=end, start_revision=revision, fragment=True)
    return pb.WatchRequest(create_request=made)
