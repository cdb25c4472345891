"""`drakit allocate` ends in time, whatever its files ask for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.builders.commandline import drakit
from tests.builders.documents import CLASS, claim_document, class_document, slice_document


def test_the_time_limit_covers_selectors_of_every_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    listed = "[" + ",".join(map(str, range(40))) + "]"
    expensive = f"{listed}.all(a, {listed}.all(b, {listed}.all(c, a + b + c + size(device.driver) > 0)))"
    claim = claim_document("slow")
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expensive}}]
    slices = [
        slice_document(
            f"s{number}",
            *({"name": f"d{each}", "attributes": {"id": {"int": 100 * number + each}}} for each in range(100)),
            node=f"n{number}",
            pool=f"n{number}",
        )
        for number in range(20)
    ]
    file = tmp_path / "hostile.yaml"
    file.write_bytes(b"\n---\n".join(map(msgspec.json.encode, [class_document(CLASS, "true"), claim, *slices])))
    # Without a limit it takes minutes: 2,000 devices that all differ, 64,000 steps for each.
    for more in ((), ("--explain",)):
        done = drakit(monkeypatch, capfd, "allocate", "--timeout", "0.01", "-f", str(file), *more)
        assert done.code == 1
        assert (done.out + done.err).count("the time given (--timeout) was too short") == 20
