"""The options of logs, commands and ports, as they stand in a query."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from drakit.api.podstreams import (
    PodLogOptions,
    PodStreamOptions,
    log_option_problems,
    parse_log_options,
    parse_node_stream_options,
    parse_ports,
    parse_stream_options,
)
from drakit.base.errors import DecodeError


def test_what_a_server_asks_a_node_is_what_it_was_asked() -> None:
    options = PodLogOptions(
        follow=True,
        previous=True,
        timestamps=True,
        since_time=datetime(2026, 1, 1, 12, tzinfo=UTC),
        tail_lines=0,
        limit_bytes=7,
    )
    assert parse_log_options(options.query()) == options
    assert parse_log_options(PodLogOptions(since_seconds=5).query()) == PodLogOptions(since_seconds=5)


def test_streams_have_other_names_on_the_way_to_a_node() -> None:
    asked = parse_stream_options((("stdin", "true"), ("tty", "1"), ("command", "a b"), ("command", "c")))
    assert asked == PodStreamOptions(stdin=True, tty=True, command=("a b", "c"))
    assert asked.query() == [("input", "1"), ("tty", "1"), ("command", "a b"), ("command", "c")]
    assert parse_node_stream_options(asked.query()) == asked


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("", True), ("1", True), ("0", False), ("False", False)])
def test_only_what_is_plainly_false_is_false(value: str, meant: bool) -> None:
    assert parse_log_options((("follow", value),)).follow is meant


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tailLines", "ten"),
        ("tailLines", ""),
        ("limitBytes", "9223372036854775808"),
        ("sinceSeconds", "1.5"),
        ("sinceSeconds", "١"),
        ("sinceTime", "yesterday"),
        ("sinceTime", "2026-01-01T00:00:00"),
    ],
)
def test_a_value_of_another_type_is_named(name: str, value: str) -> None:
    with pytest.raises(DecodeError, match=name):
        parse_log_options(((name, value),))


def test_a_time_may_be_in_any_zone() -> None:
    options = parse_log_options((("sinceTime", "2026-01-01T02:00:00+02:00"),))
    assert options.query() == [("sinceTime", "2026-01-01T00:00:00Z")]


def test_every_problem_is_told() -> None:
    options = PodLogOptions(
        tail_lines=-1, limit_bytes=0, since_seconds=1, since_time=datetime(2026, 1, 1, tzinfo=UTC), stream="Stdout"
    )
    assert [str(problem) for problem in log_option_problems(options)] == [
        "tailLines: Invalid value: -1: must be greater than or equal to 0",
        "limitBytes: Invalid value: 0: must be greater than 0",
        "<nil>: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        "stream: Forbidden: may not be specified",
    ]


def test_ports_come_one_by_one_or_together() -> None:
    assert parse_ports((("ports", "80"), ("ports", "81,82")), "ports") == (80, 81, 82)


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "http", "80,"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        parse_ports((("ports", text),), "ports")
