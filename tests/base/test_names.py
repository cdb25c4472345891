"""What names may look like, and how new ones are made."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base import names


@pytest.mark.parametrize("name", ["a", "gpu-0", "0", "a" * 63])
def test_good_dns_labels(name: str) -> None:
    assert names.check_dns_label(name) == []


def test_a_dns_label_says_every_rule_that_it_breaks() -> None:
    assert names.check_dns_label("a.b") == ["must not contain dots"]
    length, form = names.check_dns_label("A" * 64)
    assert length == "must be no more than 63 characters"
    assert form == (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.", ".a", "a..b", "ä", "a\n"])
def test_bad_subdomains(name: str) -> None:
    assert names.check_dns_subdomain(name)


def test_subdomain_length_is_counted_in_bytes() -> None:
    assert names.check_dns_subdomain("a" * 253) == []
    assert names.check_dns_subdomain("a" * 254) == ["must be no more than 253 characters"]


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("/a", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("A/a", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a valid label key must consist of"),
        ("x" * 64, "name part must be no more than 63 bytes"),
        ("-x", "name part must consist of"),
    ],
)
def test_bad_label_keys_name_the_part(key: str, part: str) -> None:
    assert any(message.startswith(part) for message in names.check_label_key(key))


def test_label_values_may_be_empty_but_not_end_in_a_dash() -> None:
    assert names.check_label_value("") == []
    assert names.check_label_value("v1.2_x") == []
    assert names.check_label_value("x-")
    assert names.check_label_value("a" * 64) == ["must be no more than 63 bytes"]


def test_uids_are_dashed_lower_case_uuids() -> None:
    assert names.check_uid("11111111-2222-3333-4444-abcdefabcdef") == []
    assert names.check_uid("") == ["error validating uid: invalid UUID length: 0"]
    assert names.check_uid("x" * 36) == ["error validating uid: invalid UUID format"]
    assert names.check_uid("11111111-2222-3333-4444-ABCDEFABCDEF")[0].startswith("uid must be in RFC 4122")
    assert names.check_uid("11111111222233334444abcdefabcdef")[0].startswith("uid must be in RFC 4122")
    assert names.check_uid("{11111111-2222-3333-4444-abcdefabcdef}")[0].startswith("uid must be in RFC 4122")
    assert names.check_uid("x" * 38) == ["error validating uid: invalid bracketed UUID format"]
    assert names.check_uid("x" * 45) == ['error validating uid: invalid urn prefix: "xxxxxxxxx"']


def test_config_keys_and_path_segments_do_not_climb() -> None:
    assert names.check_config_key("key.name") == []
    assert names.check_config_key("..data") == ["must not start with '..'"]
    assert names.check_config_key("..") == ["must not be '..'"]
    assert names.check_path_segment("a/b%") == ["may not contain '/'", "may not contain '%'"]
    assert names.check_path_segment("..") == ["may not be '..'"]
    assert names.check_path_segment("a..b") == []
    assert names.check_dns1035_label("a-1") == []
    assert names.check_dns1035_label("1a")


@given(st.text("abc-.", max_size=80), st.randoms(use_true_random=False))
def test_a_generated_name_keeps_its_base_and_fits_a_label(base: str, random: Random) -> None:
    name = names.generate_name(base, random)
    assert len(name) == min(len(base), 58) + 5
    assert name.startswith(base[:58])
    assert set(name[-5:]) <= set(names.SUFFIX_ALPHABET)
