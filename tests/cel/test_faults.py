"""What does not compile, and what is said about it."""

from __future__ import annotations

import pytest

from drakit.cel import DYN, CompileError, compile_program, kubernetes, show, trace
from tests.cel.evaluation import faults

OPERAND = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", f"1:0 Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"),
        ("1 +", f"1:4 Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"),
        ("1 + * 2", f"1:5 Syntax error: extraneous input '*' expecting {{{OPERAND}}}"),
        ("(1", "1:3 Syntax error: missing ')' at '<EOF>'"),
        ("[1", "1:3 Syntax error: mismatched input '<EOF>' expecting {']', ','}"),
        ("[1 2]", "1:4 Syntax error: extraneous input '2' expecting {']', ','}"),
        ("{1: 2", "1:6 Syntax error: mismatched input '<EOF>' expecting {'}', ','}"),
        ("x[1", "1:4 Syntax error: missing ']' at '<EOF>'"),
        ("x.f(1 2)", "1:7 Syntax error: extraneous input '2' expecting ')'"),
        ("true ? 1", "1:9 Syntax error: mismatched input '<EOF>' expecting ':'"),
        ("true ? 1 2", "1:10 Syntax error: missing ':' at '2'"),
        ("x{.", "1:3 Syntax error: mismatched input '.' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"),
        ("x.?", "1:4 Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}"),
        ("1 2", "1:3 Syntax error: extraneous input '2' expecting <EOF>"),
        ("1 2 3", "1:3 Syntax error: mismatched input '2' expecting <EOF>"),
        ("a.", "1:3 Syntax error: no viable alternative at input '.'"),
        ("a.in", "1:3 Syntax error: no viable alternative at input '.in'"),
        ("a.true", "1:3 Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("f(1,)", f"1:5 Syntax error: mismatched input ')' expecting {{{OPERAND}}}"),
        ("!-x", "1:3 Syntax error: no viable alternative at input '-x'"),
        ("'a", "1:1 Syntax error: token recognition error at: ''a'"),
        ("1 = 2", "1:3 Syntax error: token recognition error at: '= '"),
        ("true & false", "1:6 Syntax error: token recognition error at: '& '"),
        (r'"\q"', r"""1:1 Syntax error: token recognition error at: '"\q'"""),
        (r"'\x4z'", r"""1:1 Syntax error: token recognition error at: ''\x4z'"""),
        ("'a\n'", r"""1:1 Syntax error: token recognition error at: ''a\n'"""),
        (r'"\ud800"', "1:1 invalid unicode code point"),
        (r"b'\u0041'", "1:1 unable to unescape string"),
        ("9223372036854775808", "1:1 invalid int literal"),
        ("18446744073709551616u", "1:1 invalid uint literal"),
        ("1e999", "1:1 invalid double literal"),
        ("for", "1:1 reserved identifier: for"),
        ("x.`a`", "1:3 unsupported syntax: '`'"),
        ("has(1)", "1:5 invalid argument to has() macro"),
        ("[1].all(1, true)", "1:9 argument must be a simple name"),
        ("[1].map(x.y, 1)", "1:10 argument is not an identifier"),
        ("[1].all(i, i, true)", "1:12 duplicate variable name: i"),
        ("[1].map(__result__, 1)", "1:9 iteration variable overwrites accumulator variable"),
        ("1 == 1.0", "1:3 found no matching overload for '_==_' applied to '(int, double)'"),
        ('"a".size(1)', "1:9 found no matching overload for 'size' applied to 'string.(int)'"),
        ("nope", "1:1 undeclared reference to 'nope' (in container '')"),
        ("nope()", "1:5 undeclared reference to 'nope' (in container '')"),
        ("Message{a: 1}", "1:8 undeclared reference to 'Message' (in container '')"),
        (
            "1.all(x, true)",
            "1:1 expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("'a'.b", "1:4 type 'string' does not support field selection"),
        ("1 && true", "1:1 expected type 'bool' but found 'int'"),
        ('[1, "a"]', "1:5 expected type 'int' but found 'string'"),
        ('{"a": 1, "b": "c"}', "1:15 expected type 'int' but found 'string'"),
        ('{"a": 1, 2: 1}', "1:10 expected type 'string' but found 'int'"),
        ("[?1]", "1:3 expected type 'optional_type(int)' but found 'int'"),
        ('duration("x")', "1:10 invalid duration argument"),
        ('timestamp("x")', "1:11 invalid timestamp argument"),
        ('"a".matches("(")', "1:13 invalid matches argument"),
        ('"a".find("(")', "1:9 program instantiation failed: error parsing regexp: missing ): ("),
        ('int("x")', "1:4 program instantiation failed: type conversion error from 'string' to 'int'"),
        (
            '"%d".format(["a"])',
            "1:14 error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ('"%d".format([1, 2])', "1:12 too many arguments supplied to string.format (expected 1, got 2)"),
        ('"%d".format([])', "1:12 index 0 out of range"),
        ('"%y".format([1])', '1:12 could not parse formatting clause: unrecognized formatting clause "y"'),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str) -> None:
    assert faults(text, x=None)[0] == fault


def test_the_checker_reports_all_faults_in_the_order_of_the_text() -> None:
    assert faults('nope == 1 && 1 + "a" == 2 && "a".foo()') == [
        "1:1 undeclared reference to 'nope' (in container '')",
        "1:16 found no matching overload for '_+_' applied to '(int, string)'",
        "1:37 undeclared reference to 'foo' (in container '')",
    ]


def test_an_issue_shows_the_line_with_a_caret() -> None:
    with pytest.raises(CompileError) as caught:
        compile_program("true &&\n  true && nope", kubernetes())
    assert str(caught.value) == (
        "ERROR: <input>:2:11: undeclared reference to 'nope' (in container '')\n |   true && nope\n | ..........^"
    )


def test_mixed_lists_are_fine_as_arguments_of_format_only() -> None:
    assert faults('"%s-%d".format(["a", 1])') == []
    assert faults('["a", 1].size()') != []


@pytest.mark.parametrize(
    "text",
    [
        "(" * 251 + "1" + ")" * 251,
        "[" * 300 + "]" * 300,
        "1" + " + 1" * 260,
        "x" + ".y" * 260,
        "-" * 5000 + "x" + " &&" * 2000,
        "true ? " * 300 + "1",
        "{" * 5000,
        "[1].map(x, " * 260 + "x" + ")" * 260,
        "optional.of(1)" + ".optMap(x, x)" * 200,
    ],
)
def test_what_is_nested_too_deeply_is_a_fault_and_never_a_crash(text: str) -> None:
    assert faults(text, x=None)


def test_long_chains_are_not_deep() -> None:
    assert faults(" && ".join(["true"] * 2000)) == []
    assert faults("!" * 4000 + "true") == []


NESTED = (
    ("(", "dyn(1)", ")", 248),
    ("[", "", "]", 250),
    ("{1: ", "1", "}", 249),
    ("dyn(", "1", ")", 249),
    ("[1].map(y, ", "y", ")", 249),
    ("[1].exists(y, ", "true", ")", 249),
    ("cel.bind(y, 1, ", "y", ")", 249),
    ("true ? (", "1", ") : 1", 249),
    ("", "1", " + 1", 250),
    ("", "x", ".y", 250),
    ("", "[1]", ".map(y, y)", 250),
)


@pytest.mark.parametrize(("before", "inside", "behind", "deepest"), NESTED)
def test_depth_ends_where_upstream_ends_it_however_deep_the_caller_stands(
    before: str, inside: str, behind: str, deepest: int
) -> None:
    def text(depth: int) -> str:
        return before * depth + inside + behind * depth

    def from_below(frames: int, wanted: str) -> list[str]:
        return from_below(frames - 1, wanted) if frames else faults(wanted, x=None)

    for frames in (0, 600):
        assert from_below(frames, text(deepest)) == []
        assert from_below(frames, text(deepest + 1))[0].startswith("-1:0 ")


@pytest.mark.parametrize(("before", "inside", "behind", "deepest"), NESTED)
def test_what_compiles_is_also_evaluated_and_traced(before: str, inside: str, behind: str, deepest: int) -> None:
    def from_below(frames: int) -> list[str]:
        if frames:
            return from_below(frames - 1)
        shown = show(program.metered({"x": None}).value)
        return [shown, trace(program, {"x": None})[0].value]

    text = before * deepest + inside + behind * deepest
    program = compile_program(text, kubernetes().extended(variables={"x": DYN}))
    answers = {answer for frames in (0, 600) for answer in from_below(frames)}
    assert len(answers) == 1
    assert "nested" not in answers.pop()


def test_text_that_is_too_long_is_a_fault() -> None:
    with pytest.raises(CompileError, match="expression code point size exceeds limit: size: 11, limit 10"):
        compile_program("1 +       1", kubernetes(), max_length=10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + +", [f"1:5 Syntax error: mismatched input '+' expecting {{{OPERAND}}}", "1:6 Syntax"]),
        ("a | b", ["1:3 Syntax error: token recognition error at: '| '", "1:5 Syntax error: extraneous input 'b'"]),
        ("f(1 2) + [3 4] + (5", ["1:5 Syntax", "1:13 Syntax", "1:20 Syntax error: missing ')' at '<EOF>'"]),
        ("{:1} + for", ["1:2 Syntax", "1:4 Syntax error: mismatched input '}' expecting ':'", "1:8 reserved"]),
        ("x{{y}}", ["1:3 Syntax error: extraneous input '{'", "1:5 Syntax error: mismatched", "1:6 Syntax"]),
        ("(1 2 3) + *", ["1:4 Syntax error: mismatched input '2' expecting ')'", "1:11 Syntax", "1:12 Syntax"]),
        ("x.`a`()", ["1:3 unsupported syntax: '`'", "1:6 Syntax error: mismatched input '(' expecting <EOF>"]),
    ],
)
def test_the_parser_goes_on_behind_a_fault(text: str, expected: list[str]) -> None:
    found = faults(text)
    assert len(found) == len(expected), found
    assert all(fault.startswith(start) for fault, start in zip(found, expected, strict=True)), found


def test_the_parser_gives_up_on_a_text_that_is_nothing_but_faults() -> None:
    found = faults("1 2 + " * 100)
    assert len(found) == 1
    found = faults("[1 2, " * 100)
    assert found[-1].endswith("Syntax error: error recovery attempt limit exceeded: 30")
    assert len(found) == 32


def test_carets_are_wide_under_wide_characters() -> None:
    with pytest.raises(CompileError) as caught:
        compile_program("'é' == 1 && é", kubernetes())
    assert str(caught.value) == (
        "ERROR: <input>:1:13: Syntax error: token recognition error at: 'é'\n | 'é' == 1 && é\n | .．..........＾\n"
        f"ERROR: <input>:1:14: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}\n"
        " | 'é' == 1 && é\n | .．..........．^"
    )


def test_a_limit_has_no_place() -> None:
    with pytest.raises(CompileError) as caught:
        compile_program("(" * 251, kubernetes())
    assert str(caught.value) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
