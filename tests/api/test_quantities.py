"""Quantities go back to the client as Kubernetes would send them back."""

from __future__ import annotations

import pickle

import pytest

from drakit.api import DeviceCapacity, from_plain, to_plain
from drakit.api.text.quantities import read_quantity
from drakit.base.quantity import Quantity, QuantityError


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("1024Mi", "1Gi"), ("1000m", "1"), ("1.5Gi", "1536Mi"), ("0.1", "100m"), ("1e3", "1e3"), ("100k", "100k"),
        ("1000000", "1M"), ("1.0", "1"), ("5e-1", "500e-3"), ("0", "0"), ("+0", "0"), ("2048", "2048"), ("8Ki", "8Ki"),
        ("1E3", "1E3"), ("+1", "+1"), ("-3E6", "-3E6"), ("007", "007"), ("1.500", "1.500"), (" 5 ", "5"),
        ("+7Ki", "+7Ki"), ("+8Ki", "8Ki"), ("+1000", "1k"), ("1.25", "1250m"), ("12E4", "120e3"),
        ("+33Ti", "+33Ti"), ("+333Ti", "333Ti"), ("+1Pi", "1Pi"), ("+12345678901Ki", "+12345678901Ki"),
        ("+123456789013Ki", "123456789013Ki"), ("+1e-9", "+1e-9"), ("+123456789012345678", "+123456789012345678"),
        ("+1234567890123456789", "1234567890123456789"),
    ],
)  # fmt: skip
def test_a_text_that_looks_canonical_is_left_alone(sent: str, written: str) -> None:
    quantity = read_quantity(sent)
    assert str(quantity) == written
    assert quantity == Quantity.parse(sent.strip())
    assert read_quantity(written) == quantity


def test_amounts_count_not_texts() -> None:
    sent, plain = read_quantity("1E3"), Quantity.parse("1k")
    assert sent == plain
    assert hash(sent) == hash(plain)
    assert sent + plain == Quantity.parse("2k")
    again = pickle.loads(pickle.dumps(sent))
    assert (again, str(again)) == (sent, "1E3")


def test_structs_keep_the_text() -> None:
    assert to_plain(from_plain(DeviceCapacity, {"value": "+1"})) == {"value": "+1"}
    assert to_plain(from_plain(DeviceCapacity, {"value": 5})) == {"value": "5"}
    assert to_plain(DeviceCapacity()) == {"value": "0"}


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(QuantityError, match="quantities must match"):
        read_quantity("1 Gi")
