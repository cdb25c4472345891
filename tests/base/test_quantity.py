"""Quantities: exact amounts, canonical text, arithmetic."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base.quantity import ZERO, Format, Quantity, QuantityError

q = Quantity.parse
SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E-3", "e0"]
SCALE = {
    **{s: Fraction(10) ** e for s, e in {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}.items()},
    **{s: Fraction(2) ** e for s, e in {"Ki": 10, "Mi": 20, "Gi": 30}.items()},
    "e3": Fraction(1000),
    "E-3": Fraction(1, 1000),
    "e0": Fraction(1),
}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("1024Ki", "1Mi"),
        ("1023", "1023"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1000k", "1M"),
        ("12e6", "12e6"),
        ("1e100", "10e99"),
        ("1e-20", "1e-9"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("16Ei", "9223372036854775807"),
        ("999E", "999E"),
        ("1000000000000000000000", "1"),
        ("Ki", "0"),
        ("+", "0"),
    ],
)
def test_text_becomes_canonical_text(text: str, canonical: str) -> None:
    assert str(q(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "1 Gi", "1gi", "0x10", "1e", "e-20", "1e1001", "1e99999999999999999999", "9" * 5000, "1\n", "１"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        q(text)


@pytest.mark.parametrize("text", ["Pi", "Ei", ".Pi", "-Ei", "+.Ei", "e-10"])
def test_a_large_suffix_without_digits_is_no_number(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        q(text)


@pytest.mark.parametrize("text", ["Ki", "Mi", "Gi", "Ti", ".Ti", "n", "E", "e5", "-", "0Ei", ".0Pi"])
def test_other_forms_without_digits_are_zero(text: str) -> None:
    assert q(text) == ZERO


def test_equality_and_hash_go_by_amount_whatever_the_notation() -> None:
    assert q("1Ki") == q("1024") == q("1.024k")
    assert len({q("1Ki"), q("1024"), q("1024e0")}) == 1
    assert q("1") != 1


def test_order_compares_amounts() -> None:
    assert q("1Gi") > q("1G") >= q("1000M")
    assert not q("1k") > q("1000")
    assert not q("1k") < q("1000")
    assert q("-1m") < ZERO <= q("0")
    assert sorted([q("2"), q("1500m"), q("1Ki")]) == [q("1500m"), q("2"), q("1Ki")]


def test_a_sum_keeps_the_family_of_its_first_term_unless_that_is_zero() -> None:
    assert str(q("1Gi") + q("1Gi")) == "2Gi"
    assert str(q("1Gi") + q("24")) == "1073741848"
    assert str(ZERO + q("1Gi")) == "1Gi"
    assert str(ZERO - q("1Gi")) == "-1Gi"
    assert (q("1") - q("1Ki")).format is Format.DECIMAL_SI


def test_whole_and_milli_values_round_away_from_zero() -> None:
    assert (q("2500m").value, q("-2500m").value) == (3, -3)
    assert (q("1n").value, q("1n").milli_value) == (1, 1)
    assert (q("3").value, q("3").milli_value, q("-3").value) == (3, 3000, -3)


def test_a_quantity_cannot_be_changed_and_survives_copies() -> None:
    amount = q("40Gi")
    with pytest.raises(AttributeError):
        amount.nanos = 1
    with pytest.raises(AttributeError):
        del amount.nanos
    for twin in (copy.copy(amount), copy.deepcopy(amount), pickle.loads(pickle.dumps(amount))):
        assert (twin, str(twin)) == (amount, "40Gi")


def test_multiplication_and_negation_are_exact() -> None:
    assert q("333m") * 3 == q("999m")
    assert 2 * q("8Gi") == q("16Gi")
    assert -q("5") == q("-5")
    assert (q("5").sign, ZERO.sign, q("-5").sign) == (1, 0, -1)
    assert not ZERO
    assert q("5").is_whole
    assert not q("5m").is_whole


@given(st.integers(0, 10**14), st.integers(0, 10**6), st.sampled_from(SUFFIXES), st.sampled_from(["", "-"]))
def test_parsing_agrees_with_exact_fractions_rounded_up_to_nano(whole: int, part: int, suffix: str, sign: str) -> None:
    text = f"{whole}.{part:07d}"
    exact = Fraction(text) * SCALE[suffix] * 10**9
    expected = min(-(-exact.numerator // exact.denominator), (2**63 - 1) * 10**9 if suffix.endswith("i") else 10**99)
    assert q(sign + text + suffix).nanos == (-expected if sign else expected)


@given(st.integers(-(10**28), 10**28), st.sampled_from(list(Format)))
def test_canonical_text_reads_back_as_the_same_amount(nanos: int, form: Format) -> None:
    amount = Quantity(nanos, form)
    if form is not Format.BINARY_SI or abs(nanos) < 2**63 * 10**9:
        assert q(str(amount)) == amount
    if form is not Format.BINARY_SI:  # a binary amount without a suffix reads back as a decimal one
        assert str(q(str(amount))) == str(amount)
