"""Trees as text again, and evaluations as text."""

from __future__ import annotations

import pytest

from drakit.cel import CompileError, compile_program, kubernetes, trace, unparse
from drakit.cel.syntax.parser import parse
from drakit.cel.syntax.source import Source
from tests.cel.evaluation import shown


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("(1+2)*3", "(1 + 2) * 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("(1-2)-3", "1 - 2 - 3"),
        ("a&&b&&c||d", "a && b && c || d"),
        ("(a&&b)&&c", "(a && b) && c"),
        ("a&&(b||c)", "a && (b || c)"),
        ("(a?b:c)?d:e?f:g", "(a ? b : c) ? d : e ? f : g"),
        ("a ? (b ? c : d) : e", "a ? (b ? c : d) : e"),
        ("!(a&&b)", "!(a && b)"),
        ("!(!a)", "!(!a)"),
        ("!!a", "a"),
        ("-(1)", "-(1)"),
        ("-(-a)", "-(-a)"),
        ("(-1).a", "-1.a"),
        ("-(a.b)", "-a.b"),
        ("a.b['c'][?d].?e", 'a.b["c"][?d].?e'),
        ("has(a.b) && a.b.all(x, x in [1,?2])", "has(a.b) && a.b.all(x, x in [1, ?2])"),
        ("{?'a':1}", '{?"a": 1}'),
        ("cel.bind(x,1,x)", "cel.bind(x, 1, x)"),
        ("a.optMap(x, x).map(y, y > 1, y)", "a.optMap(x, x).map(y, y > 1, y)"),
        ("a.sortBy(x, -x)", "a.sortBy(x, -x)"),
        (".a.b(1u, 2.0, 'x\\n', b'\\xff', null, true)", r'.a.b(1u, 2.0, "x\n", b"\xff", null, true)'),
        ("a.B{c: 1}", "a.B{c: 1}"),
        ("a < b == c", "a < b == c"),
        ("a == (b < c)", "a == (b < c)"),
    ],
)
def test_unparse_writes_what_reads_back_the_same(text: str, again: str) -> None:
    macros = kubernetes().macros
    assert unparse(parse(Source(text), macros)) == again
    assert unparse(parse(Source(again), macros)) == again


def test_a_trace_shows_each_part_with_its_place_and_value() -> None:
    program = compile_program("[1, 2].exists(x, x > 1) && (false || 1 / 0 == 1)", kubernetes())
    assert [str(line) for line in trace(program, {})] == [
        "1:25   [1, 2].exists(x, x > 1) && (false || 1 / 0 == 1) = error: division by zero",
        "1:14     [1, 2].exists(x, x > 1) = true",
        "1:1        [1, 2] = [1, 2]",
        "1:20       x > 1 = true  (last of 2)",
        "1:18         x = 2  (last of 2)",
        "1:35     false || 1 / 0 == 1 = error: division by zero",
        "1:44       1 / 0 == 1 = error: division by zero",
        "1:40         1 / 0 = error: division by zero",
    ]


def test_a_trace_says_what_was_not_evaluated() -> None:
    program = compile_program("false && [1].all(x, x > 0)", kubernetes())
    assert [line.value for line in trace(program, {})] == ["false", "not evaluated", "not evaluated", "not evaluated"]


def test_a_trace_stops_at_the_budget() -> None:
    program = compile_program("lists.range(100).all(x, x >= 0)", kubernetes())
    first = trace(program, {}, limit=50)[0]
    assert first.value == "error: operation cancelled: actual cost limit exceeded"


def test_issues_count_lines_and_columns_from_one() -> None:
    with pytest.raises(CompileError) as caught:
        compile_program("1 +\n\n  nope", kubernetes())
    (issue,) = caught.value.issues
    assert (issue.line, issue.column) == (3, 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quantity('1Gi')", 'quantity("1Gi")'),
        ("semver('1.2.3')", 'semver("1.2.3")'),
        ("ip('::1')", 'ip("::1")'),
        ("cidr('10.0.0.0/8')", 'cidr("10.0.0.0/8")'),
        ("url('HTTP://u@a.b:80/c d?e#f')", 'url("http://u@a.b:80/c%20d?e#f")'),
        ("url('/a')", 'url("/a")'),
        ("format.uuid()", "format.uuid"),
        ("lists.range(6000)", "a large list"),
    ],
)
def test_a_value_is_shown_as_the_call_that_makes_it(text: str, value: str) -> None:
    assert shown(text) == value


def test_a_long_text_is_shown_up_to_where_it_fills_a_page() -> None:
    assert shown("x", x="a" * 9000) == "'" + "a" * 5000 + "'…"
