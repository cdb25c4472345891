"""What is remembered of names is bounded: clients choose them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from drakit.base.fields import FieldError, Path
from drakit.validation.fields.names import check_label, check_subdomain, is_qualified


@pytest.mark.parametrize("check", [check_label, check_subdomain])
def test_a_long_name_is_refused_and_not_kept(check: Callable[[str, Path], Iterator[FieldError]]) -> None:
    name = "a" * 100_000
    held = sys.getrefcount(name)
    assert list(check(name, Path("name")))
    assert sys.getrefcount(name) == held


def test_a_long_attribute_name_is_not_kept() -> None:
    name = "a" * 100_000
    held = sys.getrefcount(name)
    assert not is_qualified(name)
    assert sys.getrefcount(name) == held
