from __future__ import annotations

import pytest

from drakit.scheduler.config.durations import seconds


@pytest.mark.parametrize(
    ("text", "length"),
    [("10s", 10.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("250ms", 0.25), ("0", 0.0), ("-3s", -3.0), (".5s", 0.5)],
)
def test_lengths_of_time_are_read_as_go_writes_them(text: str, length: float) -> None:
    assert seconds(text) == pytest.approx(length)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "1d", "1s2", "--1s", "1e3s", "9999999999h", "9" * 200 + "s"])
def test_other_text_is_no_length_of_time(text: str) -> None:
    assert seconds(text) is None
