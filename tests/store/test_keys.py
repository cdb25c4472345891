"""The ordered index of keys, against plain sorted lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.store import keys as module
from drakit.store.keys import KeyIndex, end_of

TEXT = st.text(alphabet="ab/\U0010ffff", max_size=4)


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", 2)
        yield


@given(added=st.lists(TEXT, unique=True), data=st.data(), start=TEXT, end=st.none() | TEXT, limit=st.integers(0, 6))
def test_ranges_and_counts_agree_with_a_sorted_list(
    added: list[str], data: st.DataObject, start: str, end: str | None, limit: int
) -> None:
    index = KeyIndex()
    for key in added:
        index.add(key)
    removed = data.draw(st.lists(st.sampled_from(added), unique=True)) if added else []
    for key in removed:
        index.remove(key)
    expected = sorted(key for key in set(added) - set(removed) if start <= key and (end is None or key < end))
    assert index.between(start, end) == expected
    assert index.between(start, end, limit) == (expected[:limit] if limit else expected)
    assert index.count(start, end) == len(expected)
    assert len(index) == len(added) - len(removed)


@given(prefix=TEXT, text=TEXT)
def test_the_end_of_a_prefix_parts_what_has_it_from_what_is_greater(prefix: str, text: str) -> None:
    end = end_of(prefix)
    within = prefix <= text and (end is None or text < end)
    assert within == text.startswith(prefix)
