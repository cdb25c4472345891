"""What expressions mean: literals, operators, errors, macros."""

from __future__ import annotations

import re

import pytest

from drakit.cel import (
    DYN,
    INT,
    STRING,
    CompileError,
    Duration,
    EvalError,
    Results,
    Uint,
    compile_program,
    kubernetes,
    map_of,
    struct,
)
from tests.cel.evaluation import Variables, shown, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-9223372036854775808", -(2**63)),
        ("0x1F", 31),
        ("0xffu", Uint(255)),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("1e2", 100.0),
        ("null", None),
        (r'"a\n\t\"\x41\u00e9\U0001F600\101"', 'a\n\t"Aé😀A'),
        (r"r'\d'", r"\d"),
        (r'R"""a"b"""', 'a"b'),
        ("'''it's\n\"x\"'''", 'it\'s\n"x"'),
        (r'b"\xff\101é"', b"\xffA\xc3\xa9"),
        ("br'\\x'", b"\\x"),
        ("[1, 2,]", (1, 2)),
        ("[,]", ()),
        ('{"a": 1, "b": 2,}', {"a": 1, "b": 2}),
        ("[?optional.of(1), ?optional.none(), 3]", (1, 3)),
        ('{?"a": optional.of(1), ?"b": optional.none()}', {"a": 1}),
        ("1 // comment", 1),
        ("1 // comment\n + 1", 2),
    ],
)
def test_literals_have_their_values(text: str, value: object) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / -2", "-3"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("10 - 2 - 3", "5"),
        ("1.0 / 0.0 > 1e300", "true"),
        ("-0.0 == 0.0", "true"),
        ("2u * 3u", "6u"),
        ('"a" + "b"', '"ab"'),
        ('b"a" + b"b"', 'b"ab"'),
        ("[1] + [2]", "[1, 2]"),
        ("!true || true", "true"),
        ("!!true", "true"),
        ("- -1", "1"),
        ("-(1)", "-1"),
        ("true ? 1 : false ? 2 : 3", "1"),
        ("1 < 2 == true", "true"),
        ("1 < 1.5 && 1u < 2 && 1.0 <= 1u && -1 < 1u", "true"),
        ('"a" < "b" && b"a" < b"b" && false < true', "true"),
        ("1 in [1, 2] && !(3 in [1, 2])", "true"),
        ('"a" in {"a": 1}', "true"),
        ("[1, 2][1]", "2"),
        ('{"a": 1}.a + {"a": 1}["a"]', "2"),
        ("{1: 2}[dyn(1u)]", "2"),
        ("{true: 1}[true]", "1"),
        ("{1: 2}.map(k, k)", "[1]"),
        ("{true: 1}.map(k, k)", "[true]"),
        ("dyn(1) == 1.0 && dyn(1u) == 1", "true"),
        ("dyn(true) == 1", "false"),
        ('dyn("1") == 1', "false"),
        ("[1, 2] == [1, 2] && [1] != [2]", "true"),
        ('{"a": [1]} == {"a": [1]}', "true"),
        ("optional.of(1) == optional.of(1) && optional.none() != optional.of(1)", "true"),
        ("type(1) == int && type(null) == null_type && type([]) == list", "true"),
    ],
)
def test_operators_follow_the_language(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("1u - 2u", "unsigned integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("1u / 0u", "division by zero"),
        ("[1][1]", "index out of bounds: 1"),
        ("[1][-1]", "index out of bounds: -1"),
        ('{"a": 1}.b', "no such key: b"),
        ('{"a": 1}["b"]', "no such key: b"),
        ("{1: 2}[3]", "no such key: 3"),
        ("optional.none().value()", "optional.none() dereference"),
        ('dyn("a") + 1', "no such overload"),
        ("dyn(true) + 1", "no such overload"),
        ('dyn("a") * 2', "no such overload"),
        ("!dyn(1)", "no such overload"),
        ("-dyn(true)", "no such overload"),
        ('dyn("a") < 1', "no such overload"),
        ("dyn(true) < 1", "no such overload"),
        ("dyn(1) ? 1 : 2", "no such overload"),
        ("1 in dyn(1)", "no such overload"),
        ("dyn(1).all(x, true)", "got 'int', expected iterable type"),
        ("double('NaN') < 1.0", "NaN values cannot be ordered"),
    ],
)
def test_what_has_no_value_is_an_error(text: str, error: str) -> None:
    assert shown(text) == f"error: {error}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 / 0 == 1 || true", "true"),
        ("true || 1 / 0 == 1", "true"),
        ("1 / 0 == 1 && false", "false"),
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 || false", "error: division by zero"),
        ("1 / 0 == 1 && true", "error: division by zero"),
        ("1 / 0 == 1 || 1 % 0 == 1", "error: division by zero"),
        ("1 / 0 == 1 && 1 % 0 == 1", "error: division by zero"),
        ("1 / 0 == 1 || 1 % 0 == 1 || true", "true"),
        ("dyn(1) && false", "false"),
        ("dyn(1) && true", "error: no such overload"),
        ("(1 / 0 == 1 || false) && false", "false"),
        ("[0, 1].exists(x, 1 / x == 1)", "true"),
        ("[0, 1].all(x, 1 / x == 2)", "false"),
        ("[0, 1].all(x, 1 / x == 1)", "error: division by zero"),
        ("[0, 2].exists(x, 1 / x == 1)", "error: division by zero"),
        ("[0, 1].exists_one(x, 1 / x == 1)", "error: division by zero"),
        ("[0, 1].map(x, 1 / x)", "error: division by zero"),
        ("cel.bind(x, 1 / 0, true || x == 1)", "true"),
        ("cel.bind(x, 1 / 0, x == 1 || true)", "true"),
        ("cel.bind(x, 1 / 0, false)", "false"),
        ("cel.bind(x, 1 / 0, x)", "error: division by zero"),
        ("optional.of(1).orValue(1 / 0)", "1"),
        ("true ? 1 : 1 / 0", "1"),
        ("(false ? 1 : 1 / 0) == 1", "error: division by zero"),
    ],
)
def test_errors_are_values_until_they_surface(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 3].all(x, x > 0)", "true"),
        ("[].all(x, false)", "true"),
        ("[].exists(x, true)", "false"),
        ("[1, 2].exists(x, x == 2)", "true"),
        ("[1, 2].exists_one(x, x == 2) && [1, 2].existsOne(x, x > 0) == false", "true"),
        ("[1, 2, 3].filter(x, x > 1)", "[2, 3]"),
        ("[1, 2, 3].map(x, x * 2)", "[2, 4, 6]"),
        ("[1, 2, 3].map(x, x > 1, x * 2)", "[4, 6]"),
        ('{"a": 1}.exists(k, k == "a")', "true"),
        ("[1, 2].all(i, v, i + 1 == v)", "true"),
        ("[1, 2].exists(i, v, i == 1 && v == 2)", "true"),
        ("[1, 2].existsOne(i, v, v == 2)", "true"),
        ("[5, 6].transformList(i, v, i + v)", "[5, 7]"),
        ("[5, 6].transformList(i, v, i > 0, i + v)", "[7]"),
        ('{"a": 1}.transformMap(k, v, v + 1)', '{"a": 2}'),
        ('{"a": 1, "b": 2}.transformMap(k, v, v > 1, v + 1)', '{"b": 3}'),
        ('{"a": "x"}.transformMapEntry(k, v, {v: k})', '{"x": "a"}'),
        ('["x", "x"].transformMapEntry(i, v, {v: i})', "error: insert failed: key x already exists"),
        ("cel.bind(x, 2, cel.bind(y, x + 1, x * y))", "6"),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x))", "2"),
        ("[[1, 2], [3]].map(l, l.map(x, x + 1))", "[[2, 3], [4]]"),
        ("[1, 2].map(x, [1, 2].exists(y, y > x))", "[true, false]"),
        ("optional.of(1).optMap(x, x + 1)", "optional.of(2)"),
        ("optional.none().optMap(x, x + 1)", "optional.none()"),
        ("optional.of(1).optFlatMap(x, optional.of(x + 1))", "optional.of(2)"),
        ('{"a": {"b": 1}}.?a.?b', "optional.of(1)"),
        ('{"a": {"b": 1}}.?a.b', "optional.of(1)"),
        ('{"a": {"b": 1}}.?x.b', "optional.none()"),
        ('has({"a": {"b": 1}}.a.b) && !has({"a": 1}.b)', "true"),
        ('has({"a": {"b": 1}}.?a.b)', "true"),
        ("[1][?0].orValue(5) + [1][?7].orValue(5)", "6"),
        ("optional.none().or(optional.of(1))", "optional.of(1)"),
        ('"x".bind(1, 2, 3)', None),
    ],
)
def test_macros_unfold_to_what_they_promise(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(Exception, match="undeclared reference to 'bind'"):
            value_of(text)
    else:
        assert shown(text) == value


def test_dynamic_variables_are_looked_at_when_they_are_there() -> None:
    assert value_of("x + 1", x=1) == 2
    assert shown("x + 1", x="a") == "error: no such overload"
    assert value_of("x.a.b == 'c'", x={"a": {"b": "c"}}) is True
    assert value_of("x == true", x=True) is True
    assert value_of("x == 1", x=True) is False
    assert value_of("x in [1, 2]", x=True) is False
    assert value_of("x in [1, 2]", x=2.0) is True
    assert value_of("x in [1, 2]", x={}) is False
    assert value_of("x != 'a'", x=1) is True
    assert value_of("1 < x", x=2.5) is True
    assert value_of("duration('1s') < x", x=Duration(2 * 10**9)) is True
    assert value_of("x[0] == 1", x=(1,)) is True
    assert shown("x.y", x=5) == "error: no such key: y"
    assert shown("x['y']", x=(1,)) == "error: unsupported index type 'string' in list"


def test_equality_with_extension_types_depends_on_the_side() -> None:
    assert shown('semver("1.0.0") == x', x="1.0.0") == "error: no such overload"
    assert value_of('x == semver("1.0.0")', x="1.0.0") is False
    assert value_of('semver("1.0.0") != x', x="1.0.0") is True
    assert value_of('quantity("1").add(1) == quantity("2")') is True
    assert isinstance(value_of('quantity("2") == quantity("1").add(1)'), EvalError)


def test_what_only_looks_like_an_optional_keeps_its_value() -> None:
    program = compile_program("x.orValue(3) < 5", kubernetes().extended(variables={"x": DYN}))
    assert (
        program.function({"x": "x"}, Results(True, False, repr, lambda error, _: error)) is None
    )  # its static type would mislead
    assert program.metered({"x": 1}).value is True
    assert isinstance(program.metered({"x": "a"}).value, EvalError)


def test_lookups_are_shared_only_while_their_variable_is_the_same() -> None:
    environment = kubernetes().extended(
        variables={"a": struct("T"), "b": struct("T")},
        structs={"T": {"m": map_of(STRING, map_of(STRING, INT))}},
        total=frozenset({("T", "m")}),
    )
    results = Results(True, False, lambda value: value, lambda error, _: error)
    for text in (
        "a.m['x'].n == 1 && a.m['x'].n == 1 && b.m['x'].n == 2",
        "a.m['x'].n == 1 && cel.bind(a, b, a.m['x'].n == 2 && a.m['x'].n == 2)",
    ):
        function = compile_program(text, environment).function({"a": "a", "b": "b"}, results)
        assert function is not None
        assert function(Variables(a={"m": {"x": {"n": 1}}}, b={"m": {"x": {"n": 2}}})) is True


_POINT = {"x": INT, "name": STRING, "any": DYN}
_WITH_MESSAGES = kubernetes().extended(messages=lambda name: _POINT if name in ("Point", "a.Point") else None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Point{x: 1, name: 'n'} == Point{name: 'n', x: 2 - 1}", True),
        ("dyn(Point{x: 1}) == a.Point{x: 1}", False),
        ("Point{x: 1} == Point{x: 1, any: 1}", False),
        ("Point{any: [1]}.any == [1.0]", True),
        ("has(Point{x: 1}.name)", False),
        ("Point{x: 1}.x + 1", 2),
        ("Point{?x: optional.none()} == Point{}", True),
        ("Point{?x: optional.of(3)}.x", 3),
        ("optional.ofNonZeroValue(Point{}).hasValue()", False),
        ("[1, 2].map(i, Point{x: i})[1].x", 2),
        ("string(type(Point{x: 1}) == type(Point{}))", "true"),
    ],
)
def test_messages_are_constructed_where_the_environment_has_them(text: str, value: object) -> None:
    assert compile_program(text, _WITH_MESSAGES).metered({}).value == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Other{}", "undeclared reference to 'Other' (in container '')"),
        ("Point{y: 1}", "undefined field 'y'"),
        ("Point{x: 'a'}", "expected type of field 'x' is 'int' but provided type is 'string'"),
        ("Point{?x: 1}", "expected type 'optional_type(int)' but found 'int'"),
    ],
)
def test_messages_have_the_fields_of_their_type(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        compile_program(text, _WITH_MESSAGES)


def test_a_message_costs_forty_and_its_fields() -> None:
    program = compile_program("Point{x: 1, any: [1]}", _WITH_MESSAGES)
    assert program.metered({}).cost == 40
    assert program.max_cost == 50
