"""Random expressions in which little is known before they run: dynamic values, optionals, null, every library.

Generated code trusts static types, the counted steps look at every value; here they must tell the same story.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.base.errors import SelectorInvalid
from drakit.cel import Results, as_eval_error
from drakit.selectors import BoundDevice, Selector, bind

_MANY = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_A, _C = 'device.attributes["gpu.example.com"]', 'device.capacity["gpu.example.com"]'
_EQUALITY, _ORDER = ("==", "!="), ("<", "<=", ">", ">=")
_NUMBERS = ("int", "uint", "dbl", "dyn")

DEVICES = (
    bind("gpu.example.com", {}),
    bind(
        "gpu.example.com",
        {
            "attributes": {
                "model": {"string": "a100"},
                "numa": {"int": 1},
                "ecc": {"bool": True},
                "version": {"version": "1.2.4"},
            },
            "capacity": {"memory": {"value": "40Gi"}},
            "allowMultipleAllocations": True,
        },
    ),
    bind("gpu.example.com", {"attributes": {"model": {"int": 0}, "numa": {"string": "é"}, "version": {"bool": False}}}),
    bind(
        "gpu.example.com",
        {
            "attributes": {
                "model": {"strings": ["a", "b"]},
                "numa": {"ints": [1, 2, 3]},
                "ecc": {"bools": [True]},
                "version": {"versions": ["1.2.4"]},
            },
        },
    ),
)

# What each type can be made of: `<int>` stands for any expression of that type. The first line of each is its leaves.
GRAMMAR: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "int": (
        ("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", f"{_A}.numa", "x"),
        (
            *(f"(<int> {op} <int>)" for op in "+-*/%"),
            *("<str>.size()", "size(<list>)", "size(<map>)", "size(<dyn>)", "-(<int>)", "<dyn>", "dyn(<dyn>)"),
            *("(<bool> ? <int> : <int>)", "cel.bind(x, <int>, <int>)", f"{_A}.?numa.orValue(<int>)"),
            *("<list>[<int>]", "<map>[<str>]", "<map>.a", "<map>.?a.orValue(<int>)", "<opt>.orValue(<int>)"),
            *("<opt>.value()", "<list>.sum()", "<list>.min()", "<list>.max()", "<list>.indexOf(<int>)"),
            *("<list>.lastIndexOf(<dyn>)", "<str>.indexOf(<str>)", "<str>.lastIndexOf(<str>, <int>)"),
            *("int(<str>)", "int(<dbl>)", "int(<uint>)", "int(<dur>)", "<dur>.getSeconds()", "<ts>.getFullYear()"),
            *("<qty>.compareTo(<qty>)", "<qty>.asInteger()", "sign(<qty>)", "<ver>.major()", "<ver>.compareTo(<ver>)"),
        ),
    ),
    "uint": (
        ("0u", "1u", "18446744073709551615u"),
        (*(f"(<uint> {op} <uint>)" for op in "+-*/%"), "uint(<int>)"),
    ),
    "dbl": (
        ("0.0", "-0.0", "1.5", "1e300", "double('NaN')", "double('inf')"),
        (*(f"(<dbl> {op} <dbl>)" for op in "+-*/"), "double(<int>)", "-(<dbl>)", "<qty>.asApproximateFloat()"),
    ),
    "dur": (
        ("duration('1h')", "duration('-1.5s')", "duration('9223372036s')"),
        ("(<dur> + <dur>)", "(<ts> - <ts>)", "(<dur> - <dur>)", "duration(<str>)", "(<bool> ? null : <dur>)"),
    ),
    "ts": (
        ("timestamp('2024-02-29T13:14:15.016Z')", "timestamp('9999-12-31T23:59:59Z')", "timestamp(0)"),
        ("(<ts> + <dur>)", "(<ts> - <dur>)", "timestamp(<int>)", "(<bool> ? <ts> : null)"),
    ),
    "qty": (
        ("quantity('1Gi')", "quantity('500m')", f"{_C}.memory"),
        ("<qty>.add(<qty>)", "<qty>.sub(<int>)", "quantity(<str>)", "(<bool> ? <qty> : null)", "<dyn>.value()"),
    ),
    "ver": (
        ("semver('1.2.3')", f"{_A}.version", "semver('2.0.0-rc.1')"),
        ("semver(<str>)", "(<bool> ? <ver> : <ver>)", f"{_A}.?version.orValue(null)"),
    ),
    "str": (
        ('""', '"a"', '"a100"', "'é'", "device.driver", f"{_A}.model", "'1'", "k"),
        (
            *("(<str> + <str>)", "<str>.upperAscii()", "<str>.replace('a', <str>)", "<str>.substring(<int>)"),
            *("<str>.substring(<int>, <int>)", "<str>.charAt(<int>)", "<str>.trim()", "strings.quote(<str>)"),
            *("string(<int>)", "string(<dbl>)", "string(<dur>)", "string(<ts>)", "string(<uint>)", "string(<dyn>)"),
            *(f"{_A}.?model.orValue(<str>)", "(<bool> ? <str> : <str>)", "<strs>.join(<str>)", "<strs>[<int>]"),
            *("'%s %s'.format([<dyn>, <str>])", "'%d'.format([<dyn>])", "<str>.find('a+')", "<dyn>.value()"),
        ),
    ),
    "strs": (
        ('["a", "b"]', "[]"),
        (
            *("<str>.split(<str>)", "<str>.split('a', <int>)", "<str>.findAll('[a-z]')", "[<str>, <str>]"),
            *("<map>.map(k, k)", "<strs>.filter(k, <bool>)", "<strs>.sort()", "<strs>.sortBy(k, <int>)"),
            *("<strs>.distinct()", "(<dyn> + <strs>)", "<dyn>.reverse()"),
        ),
    ),
    "list": (
        ("[1, 2]", "[0]", "lists.range(3)", "[]"),
        (
            *(
                "[<int>, <int>]",
                "[?<opt>, <int>]",
                "[<list>, <list>].flatten()",
                "(<list> + <list>)",
                "(<dyn> + <list>)",
            ),
            *("<list>.map(x, <int>)", "<list>.map(x, <bool>, <int>)", "<list>.filter(x, <bool>)"),
            *("<list>.transformList(i, x, <int>)", "<map>.transformList(k, x, <bool>, <int>)"),
            *("<list>.sort()", "<list>.sortBy(x, <int>)", "<list>.reverse()", "<list>.distinct()"),
            *("<list>.slice(<int>, <int>)", "cel.bind(y, <list>, y + y)", "(<bool> ? <list> : <list>)"),
            *(f"{_A}.numa", f"{_A}.?numa.orValue(<list>)", "optional.unwrap([<opt>, <opt>])", "<dyn>.unwrapOpt()"),
        ),
    ),
    "map": (
        ('{"a": 1}', '{"a": 1, "b": 2}', "{}"),
        (
            *("{<str>: <int>}", '{"a": <int>, <str>: <int>}', "{?<str>: <opt>}", "(<bool> ? <map> : <map>)"),
            *("<map>.transformMap(k, x, <int>)", "<map>.transformMap(k, x, <bool>, <int>)"),
            *("<map>.transformMapEntry(k, x, {<str>: <int>})", "<strs>.transformMapEntry(i, k, {k: <int>})"),
            *("<map>.transformMapEntry(k, x, <dyn>)", "{<dyn>: <int>}"),
        ),
    ),
    "opt": (
        ("optional.of(1)", "optional.none()", f"{_A}.?numa"),
        (
            *("optional.of(<int>)", "optional.ofNonZeroValue(<int>)", "<opt>.or(<opt>)", "<dyn>.or(<opt>)"),
            *("<opt>.optMap(x, <int>)", "<opt>.optFlatMap(x, <opt>)", "(<bool> ? <opt> : <opt>)"),
            *("<list>[?<int>]", "<map>[?<str>]", "<map>.?a", "<list>.first()", "<list>.last()", "<dyn>.last()"),
        ),
    ),
    "dyn": (
        (
            *(f"{_A}.model", f"{_A}.numa", f"{_A}.ecc", f"{_A}.version", "dyn(1)", "dyn('a')", "dyn(1.0)", "dyn(1u)"),
            *("dyn(null)", "dyn([1])", "dyn({'a': 1})", "dyn(true)", "dyn(optional.none())"),
        ),
        (
            *(f"dyn(<{kind}>)" for kind in ("int", "uint", "dbl", "str", "list", "map", "opt", "qty", "dur", "bool")),
            *(f"(<dyn> {op} <dyn>)" for op in "+-*/%"),
            *("-<dyn>", "(<bool> ? <dyn> : <dyn>)", "cel.bind(y, <dyn>, y)", "<dyn>.orValue(<dyn>)", "<dyn>.value()"),
            *("<dyn>.a", "<dyn>[0]", "<dyn>['a']", "<dyn>[<dyn>]", "<dyn>.?a", "<dyn>[?0]", "<dyn>[?<dyn>]"),
            *("<dyn>.map(x, <dyn>)", "<dyn>.filter(x, <bool>)", "<dyn>.transformMap(k, x, <dyn>)", "<dyn>.first()"),
            *("<dyn>.max()", "<dyn>.sum()", "<dyn>.sort()", "<dyn>.distinct()", "<dyn>.add(<dyn>)"),
        ),
    ),
    "bool": (
        ("true", "false", f"{_A}.ecc", f"has({_A}.model)", "device.allowMultipleAllocations"),
        (
            *(f"(<{kind}> {op} <{kind}>)" for op in _EQUALITY + _ORDER for kind in ("int", "str", "dyn", "dbl", "dur")),
            *(f"(<{left}> {op} <{right}>)" for op in _ORDER for left in _NUMBERS for right in _NUMBERS),
            *(f"(<{kind}> {op} <{kind}>)" for op in _EQUALITY for kind in ("list", "map", "opt", "qty", "ver", "bool")),
            *(f"(<dyn> {op} {value})" for op in _EQUALITY for value in ("null", "'a'", "1", "0", "true", "1.0")),
            *(f"({value} {op} <dyn>)" for op in (*_EQUALITY, "<", ">=") for value in ("'a'", "1", "x", "k")),
            *(f"(<dyn> {op} {value})" for op in _ORDER for value in ("1", "'b'")),
            *("(<bool> && <bool>)", "(<bool> || <bool>)", "(<bool> && <bool> && <bool>)", "!<bool>"),
            *("(<int> in <list>)", "(<str> in <map>)", "(<dyn> in <dyn>)", "(<dyn> in <list>)", "(<str> in <strs>)"),
            *(f"(<dyn> in {values})" for values in ("[1, 2]", "['a', 'b']", "[true]", "[1.0, 2.5]", "[b'a']")),
            *("<list>.all(x, <bool>)", "<list>.exists(x, <bool>)", "<list>.exists(x, x == <int>)"),
            *("['a', 'a100'].exists(k, k == <dyn>)", "[1, 2].exists(k, k == <dyn>)", "<list>.exists_one(x, <bool>)"),
            *("<map>.all(k, x, <bool>)", "<dyn>.exists(x, <bool>)", "<dyn>.all(i, x, <bool>)", "<dyn>"),
            *("(<bool> ? <bool> : <bool>)", "cel.bind(x, <int>, <bool>)", "cel.bind(y, <dyn>, y == y)"),
            *("<str>.startsWith(<str>)", "<str>.contains(<str>)", "<str>.endsWith(<dyn>)", "<dyn>.matches(<str>)"),
            *(f"{_A}.?ecc.optMap(x, <bool>).orValue(<bool>)", "<opt>.hasValue()", "has(<map>.a)", "has(<dyn>.a)"),
            *("<qty>.isLessThan(<qty>)", "(<qty>.compareTo(<qty>) >= 0)", "<list>.isSorted()", "isQuantity(<str>)"),
            *("sets.contains(<list>, <list>)", "sets.equivalent(<list>, <list>)", "(type(<dyn>) == type(<dyn>))"),
        ),
    ),
}
_HOLE = re.compile(r"<(int|uint|dbl|dur|ts|qty|ver|strs|str|list|map|opt|dyn|bool)>")


def expression(seed: int, depth: int) -> str:
    """A random expression that may be a bool."""
    chance = random.Random(seed)

    def grown(kind: str, left: int) -> str:
        leaves, branches = GRAMMAR[kind]
        template = chance.choice(branches if left > 0 else leaves)
        return _HOLE.sub(lambda hole: grown(hole[1], left - chance.randint(1, 2)), template)

    return f'cel.bind(x, 2, cel.bind(k, "a", {grown("bool", depth)}))'


def _told(error: Exception, _: Any) -> str:
    known = as_eval_error(error)
    assert known is not None, repr(error)
    return known.message


def check(text: str, *, list_attributes: bool) -> bool:
    """Compare both ways of evaluation on every device; whether there was anything to compare."""
    try:
        selector = Selector(text, list_attributes=list_attributes)
    except SelectorInvalid:
        return False
    attribute = "device" if list_attributes else "scalar_device"
    results = Results("true", "false", lambda _: "other", _told)
    fast = selector.program.function({"device": attribute}, results)
    for bound in DEVICES:
        _compare(selector, bound, fast(bound) if fast is not None else None)
    return fast is not None


def _compare(selector: Selector, bound: BoundDevice, fast: object) -> None:
    counted = selector.metered(bound)
    if counted.error.startswith("operation cancelled"):
        return  # what is not counted does not stop either; such an expression is only ever run counted
    assert (selector.evaluate(bound).matches, selector.evaluate(bound).error) == (counted.matches, counted.error)
    selector.trace(bound)
    if fast is None:
        return
    if counted.error.startswith("CEL result of type"):
        assert fast == "other", selector.text
    elif counted.error:
        assert counted.error.startswith(str(fast)), (selector.text, fast, counted.error)
    else:
        assert fast == str(counted.matches).lower(), (selector.text, fast, counted)


@_MANY
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_generated_code_and_counted_steps_agree_whatever_the_values_turn_out_to_be(
    seed: int, depth: int, list_attributes: bool
) -> None:
    check(expression(seed, depth), list_attributes=list_attributes)
