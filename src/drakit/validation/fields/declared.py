"""Rules of the newer kinds, whose limits Kubernetes declares beside the fields. They read a little differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, too_long
from drakit.base.structs import Model
from drakit.validation.fields.names import POOL_LENGTH

_CASELESS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LOWERCASE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)


def check_short_name(name: str, path: Path) -> Iterator[FieldError]:
    for message in names.check_dns_label(name, unit="bytes"):
        yield invalid(path, name, message)


def check_long_name(name: str, path: Path) -> Iterator[FieldError]:
    for message in names.check_dns_subdomain(name, unit="bytes"):
        yield invalid(path, name, message)


def check_caseless_name(name: str, path: Path) -> Iterator[FieldError]:
    for message in names.check_dns_subdomain(name.lower(), unit="bytes"):
        shown = message.replace(_LOWERCASE, _CASELESS).replace("'example.com'", "'Example.com'")
        yield invalid(path, name, shown)


def check_pool_name(name: str, path: Path) -> Iterator[FieldError]:
    """Errors name the part between slashes that is wrong."""
    if names.size(name) > POOL_LENGTH:
        yield too_long(path, POOL_LENGTH)
    for index, part in enumerate(name.split("/")):
        messages = names.check_dns_subdomain(part, unit="bytes") if part else ["must not be empty"]
        for message in messages:
            yield invalid(path, name, f"segment {index}: {message}")


def check_path_segment(name: str, path: Path) -> Iterator[FieldError]:
    for message in names.check_path_segment(name):
        yield invalid(path, name, message)


def check_range(
    value: int | None, path: Path, *, least: int | None = None, most: int | None = None
) -> Iterator[FieldError]:
    if value is None:
        return
    if least is not None and value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}")
    if most is not None and value > most:
        yield invalid(path, value, f"must be less than or equal to {most}")


def check_choice(members: Mapping[str, str | Model | None], path: Path) -> Iterator[FieldError]:
    """Exactly one of several fields is set."""
    known = ", ".join(f"`{name}`" for name in members)
    given = [name for name, value in members.items() if value is not None]
    if not given:
        yield invalid(path, "", f"must specify one of: {known}")
    elif len(given) > 1:
        yield invalid(path, "{" + ", ".join(given) + "}", f"must specify exactly one of: {known}")
