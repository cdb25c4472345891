"""Semantic versions: grammar, order, the tolerant form."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base.semver import SemverError, Version

ASCENDING = [
    "0.9.0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.10",
    "1.10.0",
    "2.0.0",
]


def test_the_specification_s_order_holds_between_every_pair() -> None:
    for low, high in itertools.combinations(map(Version.parse, ASCENDING), 2):
        assert low < high
        assert high > low
        assert low != high


def test_build_metadata_is_kept_for_printing_and_ignored_otherwise() -> None:
    first, second = Version.parse("1.2.3+a"), Version.parse("1.2.3+b.7")
    assert first == second
    assert hash(first) == hash(second)
    assert str(second) == "1.2.3+b.7"


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", " 1.2.3", "1.2.3\n",
             "1.2.18446744073709551616", "1.2." + "9" * 5000, "1.2.3-" + "9" * 5000]
)  # fmt: skip
def test_the_strict_form_refuses(text: str) -> None:
    with pytest.raises(SemverError):
        Version.parse(text)


versions = st.builds(
    Version,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.lists(st.one_of(st.integers(0, 3), st.sampled_from(["a", "b", "a1"])), max_size=2).map(tuple),
)


@given(versions, versions)
def test_printing_and_reading_keep_order_and_identity(left: Version, right: Version) -> None:
    assert Version.parse(str(left)) == left
    assert (left < right) + (left == right) + (left > right) == 1
