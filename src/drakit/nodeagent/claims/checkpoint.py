"""What is prepared on this node, on disk: the kubelet's own file, name and format.

In:  claims with their pods, drivers and devices.
Out: `dra_manager_state`, whole at all times, mode 0600, with the CRC-32 of its content.

CheckpointDamaged       (Terminal) the file is there and cannot be read: set it aside
CheckpointNotWritten    (Retryable) a full disk, say: what the file had before is still in it
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from drakit.base.errors import Retryable, Terminal
from drakit.nodeagent.claims.records import ClaimRecord
from drakit.nodeagent.files import write_atomically
from drakit.nodeagent.plugins.contract import DeviceAnswer

FILE = "dra_manager_state"
_KIND = "DRACheckpoint"
_VERSION = "checkpoint.dra.kubelet.k8s.io/v1"


class CheckpointDamaged(Terminal):
    """The file holds something else than a checkpoint of ours."""


class CheckpointNotWritten(Retryable):
    """The file could not be replaced."""


class Checkpoint:
    def __init__(self, directory: Path, *, flush: Callable[[int], None] = os.fsync) -> None:
        self.path = directory / FILE
        self._flush = flush

    def load(self) -> list[ClaimRecord] | None:
        """None when there is no file. Raise CheckpointDamaged."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return decode(data)

    def save(self, records: Iterable[ClaimRecord] | None) -> None:
        """Write the file. None means that no claim was ever prepared. Raise CheckpointNotWritten."""
        try:
            write_atomically(self.path, encode(records), flush=self._flush)
        except OSError as error:
            raise CheckpointNotWritten(f"could not write checkpoint {FILE}: {error}") from error

    def set_aside(self, stamp: str) -> Path:
        """Rename a damaged file, so that somebody can look at it."""
        aside = self.path.with_name(f"{FILE}.damaged-{stamp}")
        self.path.rename(aside)
        return aside


def encode(records: Iterable[ClaimRecord] | None) -> bytes:
    entries = None if records is None else [_entry(each) for each in records]
    data = _go_json({"kind": _KIND, "apiVersion": _VERSION, "ClaimInfoStateList": entries})
    return _go_json({"Data": data, "Checksum": zlib.crc32(data.encode())}).encode()


def decode(data: bytes) -> list[ClaimRecord]:
    try:
        outer = json.loads(data)
        text, checksum = outer["Data"], outer["Checksum"]
        content = text.encode() if isinstance(text, str) else b""
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointDamaged(f"{FILE} is no checkpoint: {error}") from None
    if not content or zlib.crc32(content) != checksum:
        raise CheckpointDamaged(f"{FILE}: checkpoint is corrupted: the checksum does not fit the content")
    try:
        state = json.loads(content)
        if (state["kind"], state["apiVersion"]) != (_KIND, _VERSION):
            raise CheckpointDamaged(f"{FILE}: a {state['kind']} of {state['apiVersion']} is not understood")
        return [_record(each) for each in state["ClaimInfoStateList"] or ()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointDamaged(f"{FILE}: its content is no checkpoint: {error}") from None


def _go_json(value: Any) -> str:
    """As Go's encoder writes it: compact, and with what could end a script tag escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _entry(record: ClaimRecord) -> dict[str, Any]:
    return {
        "ClaimUID": record.uid,
        "ClaimName": record.name,
        "Namespace": record.namespace,
        "PodUIDs": {uid: {} for uid in sorted(record.pods)},
        "DriverState": {
            driver: {"Devices": None if devices is None else [_device(each) for each in devices]}
            for driver, devices in sorted(record.drivers.items())
        },
    }


def _device(device: DeviceAnswer) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share_id,
        "RequestNames": list(device.requests) or None,
        "CDIDeviceIDs": list(device.cdi_ids) or None,
    }


def _record(entry: Mapping[str, Any]) -> ClaimRecord:
    drivers = {
        driver: None if state["Devices"] is None else [_prepared(each) for each in state["Devices"]]
        for driver, state in entry["DriverState"].items()
    }
    pods = dict.fromkeys(entry["PodUIDs"] or ())
    return ClaimRecord(entry["ClaimUID"], entry["ClaimName"], entry["Namespace"], pods=pods, drivers=drivers)


def _prepared(device: Mapping[str, Any]) -> DeviceAnswer:
    return DeviceAnswer(
        pool=device["PoolName"],
        device=device["DeviceName"],
        requests=tuple(device["RequestNames"] or ()),
        cdi_ids=tuple(device["CDIDeviceIDs"] or ()),
        share_id=device["ShareID"],
    )
