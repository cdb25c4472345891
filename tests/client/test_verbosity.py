"""`-v` 0 to 7 on the levels of the standard library."""

from __future__ import annotations

import logging

import pytest

from drakit.api import Device, from_plain
from drakit.api.exchange import Raw, Request, Response
from drakit.base.errors import UsageError
from drakit.client import V, set_verbosity
from drakit.client.transport.sender import _tell


def test_each_step_lets_one_more_level_through() -> None:
    logger = logging.getLogger("drakit.test-verbosity")
    for verbosity in range(8):
        set_verbosity(verbosity, logger)
        assert [logger.isEnabledFor(level) for level in V] == [step <= verbosity for step in range(8)]
        assert logger.isEnabledFor(logging.WARNING)
        assert not logger.isEnabledFor(logging.DEBUG)


def test_levels_have_names() -> None:
    assert [logging.getLevelName(level) for level in V] == ["INFO", "V1", "V2", "V3", "V4", "V5", "V6", "V7"]


@pytest.mark.parametrize("wrong", [-1, 8])
def test_other_numbers_make_no_sense(wrong: int) -> None:
    with pytest.raises(UsageError, match="-v"):
        set_verbosity(wrong, logging.getLogger("drakit.test-verbosity"))


def test_a_body_with_a_quantity_can_be_shown(caplog: pytest.LogCaptureFixture) -> None:
    """In process, bodies are objects."""
    device = from_plain(Device, {"name": "d", "capacity": {"memory": {"value": "4Gi"}}})
    request = Request(method="POST", path="/apis/resource.k8s.io/v1/resourceslices", document=device)
    with caplog.at_level(V[7], logger="drakit.client"):
        _tell(request, Response(code=201, content=Raw(b"")))
    assert "4Gi" in caplog.text
