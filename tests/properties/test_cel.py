"""Random expressions: text, tree and text again; fast and counted; nothing but the engine's own errors."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.base.errors import SelectorInvalid
from drakit.cel import CompileError, kubernetes, unparse
from drakit.cel.syntax.ast import CallExpr, Expr, children
from drakit.cel.syntax.parser import parse
from drakit.cel.syntax.source import Source
from drakit.selectors import BoundDevice, Selector, bind

_FEW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])

DEVICES = (
    bind("gpu.example.com", {}),
    bind(
        "gpu.example.com",
        {
            "attributes": {
                "model": {"string": "a100"},
                "numa": {"int": 1},
                "ecc": {"bool": True},
                "version": {"version": "1.2.3"},
            },
            "capacity": {"memory": {"value": "40Gi"}},
            "allowMultipleAllocations": True,
        },
    ),
    bind("nic.example.com", {"attributes": {"model": {"int": 0}, "gpu.example.com/ecc": {"string": ""}}}),
)
_ATTRIBUTES = 'device.attributes["gpu.example.com"]'


# What each type can be made of: `{bool}` stands for any expression of that type. The first line of each is its leaves.
GRAMMAR: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "int": (
        ("0", "1", "-1", "7", "9223372036854775807", f"{_ATTRIBUTES}.numa", "x"),
        (
            *(f"({{int}} {op} {{int}})" for op in "+-*/%"),
            "{str}.size()",
            "size({list})",
            "({bool} ? {int} : {int})",
            f"{_ATTRIBUTES}.?numa.orValue({{int}})",
            "cel.bind(x, {int}, {int})",
            "{list}[{int}]",
            "-({int})",
            "{str}.indexOf({str})",
        ),
    ),
    "str": (
        ('""', '"a"', '"a100"', "'é'", "device.driver", f"{_ATTRIBUTES}.model"),
        (
            "({str} + {str})",
            "{str}.upperAscii()",
            '{str}.replace("a", {str})',
            "{str}.substring({int})",
            "string({int})",
            f"{_ATTRIBUTES}.?model.orValue({{str}})",
            "({bool} ? {str} : {str})",
        ),
    ),
    "bool": (
        (
            "true",
            "false",
            f"{_ATTRIBUTES}.ecc",
            f"has({_ATTRIBUTES}.model)",
            "device.allowMultipleAllocations",
            'device.capacity["gpu.example.com"].memory.isInteger()',
            f'{_ATTRIBUTES}.version.isLessThan(semver("2.0.0"))',
        ),
        (
            *(f"({{{kind}}} {op} {{{kind}}})" for op in ("==", "!=", "<", "<=", ">", ">=") for kind in ("int", "str")),
            "({bool} && {bool})",
            "({bool} || {bool})",
            "({bool} && {bool} && {bool})",
            "!{bool}",
            "({int} in {list})",
            "{list}.all(x, {bool})",
            "{list}.exists(x, {bool})",
            "{list}.exists(x, x == {int})",
            "{list}.exists_one(x, {bool})",
            "({bool} ? {bool} : {bool})",
            "cel.bind(x, {int}, {bool})",
            "{str}.startsWith({str})",
            "({list} == {list})",
            f"{_ATTRIBUTES}.?ecc.optMap(x, {{bool}}).orValue({{bool}})",
        ),
    ),
    "list": (
        ("[1, 2]", "[0]", "lists.range(3)"),
        (
            "[{int}, {int}]",
            "{list}.map(x, {int})",
            "{list}.filter(x, {bool})",
            "{list}.map(x, {bool}, {int})",
            "({list} + {list})",
            "{list}.transformList(i, x, {int})",
        ),
    ),
}
_HOLE = re.compile(r"\{(int|str|bool|list)\}")


def expression(seed: int, depth: int) -> str:
    """A random expression of type bool, typed as far as attributes allow."""
    chance = random.Random(seed)

    def grown(kind: str, left: int) -> str:
        leaves, branches = GRAMMAR[kind]
        template = chance.choice(branches if left > 0 else leaves)
        return _HOLE.sub(lambda hole: grown(hole[1], left - chance.randint(1, 2)), template)

    return f"cel.bind(x, 2, {grown('bool', depth)})"


expressions = st.builds(expression, st.integers(0, 2**32), st.integers(0, 5))
SYNTAX = ("a.b[?c].?d", "[?a, {?b: 1}]", "-(-1)", "!(!a)", "a ? b : c ? d : e", "(a && b) && c", ".a.b(1u, -2.5, b'x')")
sources = st.one_of(expressions, st.sampled_from(SYNTAX))


def shape(expr: Expr) -> Any:
    """A tree without ids and places."""
    own = [getattr(expr, name) for name in ("name", "value", "optional", "macro", "test_only") if hasattr(expr, name)]
    function = expr.function if isinstance(expr, CallExpr) else None
    return type(expr).__name__, function, repr(own), [shape(child) for child in children(expr)]


def summary(selector: Selector, bound: BoundDevice) -> tuple[bool, bool]:
    fast, counted = selector.evaluate(bound), selector.metered(bound)
    assert (fast.matches, fast.error) == (counted.matches, counted.error), selector.text
    return fast.matches, bool(fast.error)


@_FEW
@given(sources)
def test_text_of_a_tree_parses_to_the_same_tree(text: str) -> None:
    macros = kubernetes().macros
    try:
        tree = parse(Source(text), macros)
    except CompileError:
        return
    again = unparse(tree)
    assert shape(parse(Source(again), macros).root) == shape(tree.root)
    assert unparse(parse(Source(again), macros)) == again


@_FEW
@given(expressions)
def test_fast_and_counted_evaluation_agree_on_well_typed_expressions(text: str) -> None:
    try:
        selector = Selector(text)
    except SelectorInvalid:
        return  # a list of an attribute and a number is no list of one type
    for bound in DEVICES:
        summary(selector, bound)


@_FEW
@given(expressions)
def test_an_evaluation_is_the_same_each_time_and_its_trace_ends_in_it(text: str) -> None:
    try:
        selector = Selector(text)
    except SelectorInvalid:
        return
    for bound in DEVICES:
        counted = selector.metered(bound)
        assert counted == selector.metered(bound)
        first = selector.trace(bound)[0]
        if counted.error.startswith("CEL result of type"):
            continue
        if counted.error:
            assert first.value.startswith("error: ")
        else:
            assert first.value == str(counted.matches).lower()
