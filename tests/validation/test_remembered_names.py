"""What is remembered of names is bounded: clients choose them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from drakit.api.objects.meta import ManagedFieldsEntry, ObjectMeta
from drakit.base.fields import FieldError, Path
from drakit.validation.fields.metadata import check_metadata
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


@pytest.mark.parametrize("field", ["operation", "fields_type", "manager", "subresource"])
def test_a_long_text_in_managed_fields_is_refused_and_not_kept(field: str) -> None:
    text = "a" * 100_000
    entry = replace(ManagedFieldsEntry(operation="Update", fields_type="FieldsV1"), **{field: text})
    meta = ObjectMeta(name="claim", namespace="default", managed_fields=(entry,))
    held = sys.getrefcount(text)
    assert list(check_metadata(meta, namespaced=True))
    assert sys.getrefcount(text) == held
