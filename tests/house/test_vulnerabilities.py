"""The check of pinned versions against records of vulnerabilities."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit.py"


def record(name: str, **affected: Any) -> dict[str, Any]:
    package = {"name": name, "ecosystem": "PyPI"}
    return {"id": "X-1", "summary": "it breaks", "affected": [{"package": package, **affected}]}


def ranges(*events: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"type": "ECOSYSTEM", "events": [{what: at} for what, at in events]}]


@pytest.mark.parametrize(
    ("affected", "code"),
    [
        ({"versions": ["1.4"]}, 1),
        ({"versions": ["1.3"]}, 0),
        ({"ranges": ranges(("introduced", "0"), ("fixed", "1.5"))}, 1),
        ({"ranges": ranges(("introduced", "0"), ("fixed", "1.4"))}, 0),
        ({"ranges": ranges(("introduced", "0"), ("fixed", "1.2"), ("introduced", "1.4"))}, 1),
        ({"ranges": ranges(("introduced", "1.0"), ("last_affected", "1.4"))}, 1),
    ],
)
def test_a_pinned_version_that_is_affected_is_told(tmp_path: Path, affected: dict[str, Any], code: int) -> None:
    (tmp_path / "constraints.txt").write_text("# pins\nSome_Package==1.4\nother==2\n")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("X-1.json", json.dumps(record("some-package", **affected)))
    line = [sys.executable, str(SCRIPT), "--constraints", str(tmp_path / "constraints.txt")]
    line += ["--data", str(tmp_path / "all.zip")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (
        code,
        "some-package 1.4: X-1 it breaks\n" if code else "no known vulnerability in the pinned versions\n",
    )


def test_records_may_be_yaml_and_those_that_were_withdrawn_do_not_count(tmp_path: Path) -> None:
    text = "id: X-1\n{}affected:\n- package: {{name: some-package, ecosystem: PyPI}}\n  versions: ['1.4']\n"
    (tmp_path / "X-1.yaml").write_text(text.format(""))
    (tmp_path / "X-2.yaml").write_text(text.format("withdrawn: '2023-11-08T00:54:24Z'\n").replace("X-1", "X-2"))
    (tmp_path / "README.md").write_text("no record")
    known = runpy.run_path(str(SCRIPT))
    assert list(known["vulnerable"]({"some-package": "1.4"}, known["records"](tmp_path))) == ["some-package 1.4: X-1"]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([], 3),
        ([{"name": "a", "version": "1", "vulns": []}], 0),
        ([{"name": "a", "version": "1", "vulns": [{"id": "X-1"}]}], 1),
        ([{"name": "a", "skip_reason": "nobody knows it"}], 3),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "nobody knows it"}], 3),
    ],
)
def test_what_was_not_checked_is_not_called_fine(found: list[dict[str, Any]], code: int) -> None:
    assert runpy.run_path(str(SCRIPT))["tell"](found) == code
