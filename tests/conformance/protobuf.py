"""Compare the protobuf form with the recorded one, both ways: `python -m tests.conformance.protobuf FILE…`."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.api.codec.protobuf import decode_frames, decode_protobuf, encode_frame, encode_protobuf
from drakit.base.errors import DecodeError, Unsupported
from tests.conformance.vectors import read_vectors, report

DATA = Path(__file__).parent / "data" / "protobuf.jsonl.gz"


def decoded(case: Mapping[str, Any]) -> Any:
    """What drakit makes of the bytes: an object, or the events of a watch."""
    data = base64.b64decode(case["protobuf"])
    if case["do"] != "watch":
        return decode_protobuf(data)
    return [{"type": type_, "object": each} for type_, each in decode_frames(data)]


def encoded(case: Mapping[str, Any]) -> bytes:
    """What drakit makes of the JSON."""
    if case["do"] != "watch":
        return encode_protobuf(case["json"])
    return b"".join(encode_frame(event["type"], encode_protobuf(event["object"])) for event in events(case["json"]))


def events(recorded: Any) -> list[dict[str, Any]]:
    """The events of a watch: as a list, as lines of text, or a single one."""
    if isinstance(recorded, str):
        return [json.loads(line) for line in recorded.splitlines() if line.strip()]
    return list(recorded) if isinstance(recorded, list) else [recorded]


def agrees(case: Mapping[str, Any]) -> bool:
    expected = events(case["json"]) if case["do"] == "watch" else case["json"]
    try:
        return bool(decoded(case) == expected and encoded(case) == base64.b64decode(case["protobuf"]))
    except (DecodeError, Unsupported):
        return False


def main(files: list[str]) -> int:
    return report(read_vectors(files or [str(DATA)]), agrees)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
