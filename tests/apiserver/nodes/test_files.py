"""The files by which nodes are reached, when they are of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.nodes import NodeClient, NodeFiles
from drakit.base.errors import UsageError


def test_files_that_are_no_certificates_are_named_at_once(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.crt"
    wrong.write_text("nothing")
    with pytest.raises(UsageError, match=r"wrong\.crt"):
        NodeClient(NodeFiles(wrong))
    with pytest.raises(UsageError, match=r"none\.key"):
        NodeClient(NodeFiles(None, Pair(tmp_path / "none.crt", tmp_path / "none.key")))


def test_without_files_the_machine_says_whom_to_trust() -> None:
    NodeClient(NodeFiles())
