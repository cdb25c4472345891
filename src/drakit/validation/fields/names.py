"""Names by what they name: drivers, pools, devices, classes, requests, attributes, shares.

In:  a name and its path.
Out: an error per broken rule, in the words that Kubernetes has for that kind of name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, required, too_long
from drakit.base.memo import remember_short

DRIVER_LENGTH = 63
POOL_LENGTH = 253
IDENTIFIER_LENGTH = 32
QUALIFIED_LENGTH = DRIVER_LENGTH + 1 + IDENTIFIER_LENGTH


def _all(messages: Iterable[str], name: str, path: Path) -> Iterator[FieldError]:
    return (invalid(path, name, message) for message in messages)


def is_label(name: str) -> bool:
    """Whether a name breaks no rule of `check_label`. Who asks first builds paths only for errors."""
    return len(name) <= names.LABEL_LENGTH and not _label_messages(name)


def is_subdomain(name: str) -> bool:
    """Whether a name breaks no rule of `check_subdomain`. It is then no longer than a pool's name may be."""
    return len(name) <= names.SUBDOMAIN_LENGTH and not _subdomain_messages(name)


def is_driver(name: str) -> bool:
    """Whether a name in lower case breaks no rule of `check_driver`."""
    return len(name) <= DRIVER_LENGTH and not _subdomain_messages(name)


def check_label(name: str, path: Path) -> Iterator[FieldError]:
    """Devices, requests, counters: a DNS label."""
    return _all(_label_messages(name), name, path)


def check_subdomain(name: str, path: Path) -> Iterator[FieldError]:
    """Classes, claims, nodes: a DNS subdomain."""
    return _all(_subdomain_messages(name), name, path)


def check_label_key(key: str, path: Path) -> Iterator[FieldError]:
    return _all(names.check_label_key(key), key, path)


def check_label_value(value: str, path: Path) -> Iterator[FieldError]:
    return _all(names.check_label_value(value), value, path)


def check_driver(name: str, path: Path) -> Iterator[FieldError]:
    """A DNS subdomain in any case, at most 63 bytes."""
    if not name:
        yield required(path)
        return
    if names.size(name) > DRIVER_LENGTH:
        yield too_long(path, DRIVER_LENGTH)
    yield from _all(_subdomain_messages(name.lower()), name, path)


def check_pool(name: str, path: Path) -> Iterator[FieldError]:
    """DNS subdomains with slashes between them."""
    if not name:
        yield required(path)
        return
    if names.size(name) > POOL_LENGTH:
        yield too_long(path, POOL_LENGTH)
    for part in name.split("/"):
        yield from check_subdomain(part, path)


def check_class(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    else:
        yield from check_subdomain(name, path)


def check_identifier(name: str, path: Path) -> Iterator[FieldError]:
    if names.size(name) > IDENTIFIER_LENGTH:
        yield too_long(path, IDENTIFIER_LENGTH)
    yield from _all(names.check_c_identifier(name), name, path)


@remember_short(16384)
def is_qualified(name: str) -> bool:
    """Whether an attribute or capacity has a good name. Slices repeat theirs from device to device."""
    return not any(True for _ in check_qualified(name, Path()))


def check_qualified(name: str, path: Path) -> Iterator[FieldError]:
    """`identifier` or `domain/identifier`. A name with more slashes passes, as it does in v1.36."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from check_identifier(name, path)
    elif len(parts) == 2:
        domain, identifier = parts
        yield from check_driver(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
        yield from (
            check_identifier(identifier, path) if identifier else [invalid(path, "", "the name must not be empty")]
        )


def check_fully_qualified(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_qualified(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def check_share(uid: str, path: Path) -> Iterator[FieldError]:
    """The id of a share."""
    return _all(names.check_uid(uid), uid, path)


@remember_short(16384)
def _label_messages(name: str) -> tuple[str, ...]:
    return tuple(names.check_dns_label(name))


@remember_short(16384)
def _subdomain_messages(name: str) -> tuple[str, ...]:
    return tuple(names.check_dns_subdomain(name))
