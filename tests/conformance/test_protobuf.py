"""The recorded protobuf forms of a real cluster, all of them, both ways."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from drakit.api.codec.protobuf import encode_frame, encode_protobuf
from tests.conformance import protobuf
from tests.conformance.vectors import read_vectors


def test_all_recorded_pairs_agree_both_ways() -> None:
    cases = list(read_vectors([protobuf.DATA]))
    assert len(cases) == 288
    assert [case["id"] for case in cases if not protobuf.agrees(case)] == []


def test_a_watch_is_compared_event_by_event() -> None:
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}, "status": {}}
    events = [{"type": kind, "object": namespace} for kind in ("ADDED", "DELETED")]
    frames = b"".join(encode_frame(each["type"], encode_protobuf(namespace)) for each in events)  # type: ignore[arg-type]
    lines = "\n".join(map(json.dumps, events))
    for recorded in (events, lines):
        case = {"id": "w", "do": "watch", "json": recorded, "protobuf": base64.b64encode(frames).decode()}
        assert protobuf.agrees(case)
    assert not protobuf.agrees({**case, "json": events[:1]})


def test_the_command_names_what_differs_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = next(read_vectors([protobuf.DATA]))
    wrong = {**first, "id": "wrong", "json": {**first["json"], "kind": "Secret"}}
    cut = {**first, "id": "cut", "protobuf": first["protobuf"][:40]}
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, (first, wrong, cut))).encode()))
    assert protobuf.main([str(file)]) == 1
    assert capsys.readouterr().out.split("\n") == ["agree 1 of 3", "wrong", "cut", ""]
