"""Anything at all as an expression: an answer or an error of the engine, in bounded time and memory."""

from __future__ import annotations

import random
import resource
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.base.errors import SelectorInvalid
from drakit.selectors import Selector, bind
from tests.conformance.cel import DATA
from tests.conformance.vectors import read_vectors

_MANY = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_SECONDS = 5.0  # of CPU for one expression; most take milliseconds
_MEGABYTES = 300

DEVICE = bind(
    "gpu.example.com",
    {"attributes": {"model": {"string": "a100"}, "numa": {"int": 1}}, "capacity": {"memory": {"value": "40Gi"}}},
)
RECORDED = sorted({case["expression"] for case in read_vectors([DATA])})
PIECES = [
    *"()[]{}.,?:!-+*/%<@#`\\é\x00\ud800\n",
    *(
        "&&",
        "||",
        "==",
        "!=",
        "<=",
        " in ",
        "true",
        "false",
        "null",
        "1",
        "0x",
        "1u",
        "1.5",
        "1e9",
        "'a'",
        '"""',
        "r'",
        'b"',
    ),
    *("// ", "has(", ".map(", ".all(x, x", ".exists(y, y", "cel.bind(z, z, ", ".optMap(w, w)", ".?a", "[?0]", "{1: []"),
    *(
        "device",
        ".attributes",
        "optional.of(",
        "lists.range(",
        ".replace('', ",
        ".format([",
        ".matches('",
        ".sortBy(q, q)",
    ),
]


def survive(text: str) -> None:
    """Compile and evaluate; only the engine's own refusal may come out, and soon."""
    started = time.process_time()
    try:
        selector = Selector(text)
        fast, counted = selector.evaluate(DEVICE), selector.metered(DEVICE)
        assert (fast.matches, fast.error) == (counted.matches, counted.error), text
        selector.trace(DEVICE)
    except SelectorInvalid:
        pass
    assert time.process_time() - started < _SECONDS, text


@_MANY
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_answered(data: bytes) -> None:
    survive(data.decode("latin-1"))


@_MANY
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_random_tokens_are_refused_or_answered(pieces: list[str]) -> None:
    survive("".join(pieces))
    survive(" ".join(pieces))


@_MANY
@given(st.sampled_from(RECORDED), st.integers(0, 2**32))
def test_mutated_expressions_are_refused_or_answered(text: str, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 5)):
        at = chance.randint(0, len(text))
        cut = chance.randint(0, 6)
        other = chance.choice(RECORDED)
        start = chance.randint(0, len(other))
        insert = chance.choice([chance.choice(PIECES), other[start : start + chance.randint(0, 20)], ""])
        text = text[:at] + insert + text[at + cut :]
    survive(text)


def _shared(body: str, leaf: str = "[1]", levels: int = 8, width: int = 40) -> str:
    """Lists of lists of one list: short to write, with more parts than there is time to look at. TOP is the last."""
    lists = "".join(f"cel.bind(a{i}, [{', '.join([f'a{i - 1}'] * width)}], " for i in range(1, levels + 1))
    return f"cel.bind(a0, {leaf}, {lists}{body.replace('TOP', f'a{levels}')}" + ")" * (levels + 1)


def _amplified() -> tuple[str, ...]:
    """Calls that cost little and give much, or that are paid for when they are done."""
    names = [", ".join([f"a{i}"] * 60) for i in range(8)]
    printed = "".join(f"cel.bind(a{i + 1}, '{'%s' * 60}'.format([{names[i]}]), " for i in range(8))
    joined = "".join(f"cel.bind(a{i + 1}, [{names[i]}].join(), " for i in range(8))
    return (
        f"cel.bind(a0, '{'x' * 100}', {printed}a8 == ''" + ")" * 9,
        f"cel.bind(a0, '{'x' * 100}', {joined}a8 == ''" + ")" * 9,
        f"lists.range(10000).map(i, 'a').join('{'x' * 5000}') == ''",
        f"cel.bind(l, lists.range(100000), [{','.join(['l'] * 2000)}].flatten().size() > 0)",
        _shared("TOP.flatten(100).size() > 0"),
        _shared("TOP == TOP"),
        _shared("optional.of(TOP) == optional.of(TOP)"),
        _shared("TOP.indexOf([]) == -1", "['a']"),
        _shared("'%s'.format([TOP]) == ''"),
        _shared("dyn([TOP]).join() == ''"),
        "lists.range(100000).distinct().size() > 0",
        "lists.range(4000).map(i, [i]).distinct().size() > 0",
        "sets.contains(lists.range(100000), lists.range(100000))",
        "sets.equivalent(lists.range(100000), lists.range(100000))",
    )


def test_hostile_expressions_stay_within_time_and_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for text in (
        "(" * 10_000,
        "[" * 5_000 + "]" * 5_000,
        "a" + ".a" * 5_000,
        "!" * 10_000 + "true",
        "-" * 10_000,
        "'" * 10_001,
        '"""' + '"' * 9_000,
        "1" * 10_000,
        "0." + "1" * 10_000,
        "true" + " || true" * 1_200,
        "1" + " + 1" * 2_400,
        "device.driver.matches('" + "(a*)*" * 1_500 + "')",
        "device.driver.matches('(x+x+)+y')",
        "device.driver.matches('a{1000}{1000}')",
        "lists.range(1000000).all(a, lists.range(1000000).exists(b, a == b))",
        "cel.bind(a, 'x' + 'x', " * 200 + "a == ''" + ")" * 200,
        "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(100)).replace("a0", "'xx'")
        + "a100 == ''"
        + ")" * 100,
        "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(100)).replace("a0", "[1]")
        + "a100 == []"
        + ")" * 100,
        "'a'" + ".replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" * 100 + " == ''",
        "optional.of(1)" + ".optMap(x, x)" * 700 + ".hasValue()",
        "[1, 2, 3]" + ".map(x, [1, 2, 3].map(y, x))" * 100 + " == []",
        "'%.1000f'.format([1.0]) == ''",
        "[[1]]" + " + [[1]]" * 200 + ".flatten().size() > 0",
        *_amplified(),
    ):
        survive(text[:10_240])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < _MEGABYTES
