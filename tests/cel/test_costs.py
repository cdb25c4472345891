"""What expressions cost, at worst and in fact, beyond what the recordings hold."""

from __future__ import annotations

import pytest

from drakit.cel import BudgetExceeded, EvalError, compile_program, kubernetes
from drakit.cel.cost.sizes import UNBOUNDED, Size, plus, scaled, times
from tests.cel.evaluation import shown


@pytest.mark.parametrize(
    ("text", "worst", "actual"),
    [
        ("1 == 1", 1, 1),
        ("[1, 2, 3].map(x, x * 2)", 63, 43),
        ("[1, 2].all(x, x > 0)", 21, 11),
        ("[[1], [2]].flatten()", 43, 13),
        ("'a' + 'b' == 'ab'", 2, 2),
        ("true ? 'a' : 'b'", 0, 0),
        ("{'a': 1}.a", 31, 2),
        ("cel.bind(x, 1, x + x)", 13, 3),
        ("[1, 2, 3].sortBy(x, -x)", 104, 74),
    ],
)
def test_costs_are_counted_as_upstream_counts_them(text: str, worst: int, actual: int) -> None:
    program = compile_program(text, kubernetes())
    assert (program.max_cost, program.metered({}).cost) == (worst, actual)


def test_evaluation_stops_at_its_budget() -> None:
    program = compile_program("lists.range(1000).map(x, x * 2).size()", kubernetes())
    assert program.metered({}, limit=100_000).value == 1000
    with pytest.raises(BudgetExceeded):
        program.metered({}, limit=1000)


def test_a_budget_is_not_absorbed_by_or() -> None:
    program = compile_program("lists.range(1000).all(x, x >= 0) || true", kubernetes())
    with pytest.raises(BudgetExceeded):
        program.metered({}, limit=100)


def test_estimates_saturate_instead_of_overflowing() -> None:
    assert plus(UNBOUNDED, 5) == UNBOUNDED
    assert times(UNBOUNDED, 2) == UNBOUNDED
    assert scaled(UNBOUNDED, 0.1) == 1844674407370955264
    assert Size(1, 2).multiplied(Size(3, UNBOUNDED)) == Size(3, UNBOUNDED)


def test_sizes_are_followed_through_optionals_only_to_decide_whether_to_count() -> None:
    environment = kubernetes()
    program = compile_program("{'a': 'b'}.?a.orValue('c').contains('d')", environment)
    assert program.max_cost > 10**18
    assert not program.within(10)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("cel.bind(a, 'xxxxxxxxxx', " * 12 + "a" + ".replace('', a)" * 12 + ")" * 12, "string is longer than"),
        ("cel.bind(a, lists.range(1000), " + "cel.bind(a, a + a, " * 20 + "a.size()" + ")" * 21, "list is longer than"),
        ("lists.range(9223372036854775807)", "lists.range(9223372036854775807) is longer than"),
    ],
)
def test_values_cannot_grow_without_bound_where_growing_is_cheap(text: str, error: str) -> None:
    value = compile_program(text, kubernetes()).metered({}).value
    assert isinstance(value, EvalError)
    assert error in value.message


def test_long_folds_take_time_in_proportion_to_their_length() -> None:
    assert shown("lists.range(20000).map(x, x).size()") == "20000"
    assert shown("lists.range(20000).transformMap(i, x, x).size()") == "20000"
    assert shown("lists.range(5000).filter(x, 'a'.matches('b') || x % 2 == 0).size()") == "2500"
