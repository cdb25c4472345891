"""Checks of single values in documents, for kinds that have no struct."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required

NOT_NEGATIVE = "must be greater than or equal to 0"
NO_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_PORT = "must be between 1 and 65535, inclusive"
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_PROTOCOLS = ("SCTP", "TCP", "UDP")

NameCheck = Callable[[str], Iterable[str]]


def check_words(value: Any, words: Sequence[str], path: Path) -> Iterator[FieldError]:
    if value not in words:
        yield not_supported(path, value if value is not None else "", words)


def check_name(value: Any, check: NameCheck, path: Path) -> Iterator[FieldError]:
    text = value or ""
    yield from (invalid(path, text, message) for message in check(text))


def check_not_negative(holder: Mapping[str, Any], path: Path, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        value = holder.get(field)
        if isinstance(value, int) and value < 0:
            yield invalid(path / field, value, NOT_NEGATIVE)


def check_label_values(labels: Mapping[str, str] | None, path: Path) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        yield from check_name(key, names.check_label_key, path)
        yield from check_name(value, names.check_label_value, path)


def check_selector_labels(selector: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    yield from check_label_values((selector or {}).get("matchLabels"), path / "matchLabels")
    for index, expression in enumerate((selector or {}).get("matchExpressions") or ()):
        yield from _check_requirement(expression, (path / "matchExpressions")[index])


def _check_requirement(expression: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(path / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(path / "operator", operator, "not a valid selector operator")
    yield from check_name(expression.get("key"), names.check_label_key, path / "key")
    for index, value in enumerate(values):
        yield from check_name(value, names.check_label_value, (path / "values")[index])


def check_address(value: Any, path: Path) -> Iterator[FieldError]:
    try:
        ipaddress.ip_address(value or "")
    except ValueError:
        yield invalid(path, value or "", _NO_ADDRESS)


def parse_range(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def check_port(value: Any, path: Path) -> Iterator[FieldError]:
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield invalid(path, value or 0, _NO_PORT)


def check_port_or_name(value: int | str, path: Path) -> Iterator[FieldError]:
    if isinstance(value, int):
        yield from check_port(value, path)
    else:
        yield from check_name(value, port_name_problems, path)


def port_name_problems(name: str) -> Iterator[str]:
    """What is wrong with the name of a port, by which others refer to it."""
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def check_protocol(value: Any, path: Path) -> Iterator[FieldError]:
    yield from check_words(value, _PROTOCOLS, path)


def check_once(values: Iterable[tuple[Path, Any]]) -> Iterator[FieldError]:
    """Of several equal values all but the first are errors."""
    seen: list[Any] = []
    for path, value in values:
        if value in seen:
            yield duplicate(path, value)
        seen.append(value)


def check_present(value: Any, path: Path) -> Iterator[FieldError]:
    if not value:
        yield required(path)
