"""Named formats: `format.dns1123Label().validate(text)` lists what is wrong with a text, or is `optional.none()`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import STRING, list_of, optional_of, struct
from drakit.cel.library.urls import is_request_uri
from drakit.cel.values import NONE, Opaque, Optional

FORMAT = struct("kubernetes.NamedFormat")

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
# Spelled as upstream spells them, because their length counts in the cost. Anchors are cut off before use.
_UUID = r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_DATETIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"

_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"

Check = Callable[[str], Iterator[str]]


class FormatValue(Opaque):
    """A named format. `regex_size` is the size of its pattern in upstream: `validate` costs accordingly."""

    __slots__ = ("check", "name", "regex_size")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, check: Check, regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size

    def same(self, other: Any) -> bool:
        return bool(self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"format.{self.name}"


def _name(pattern: str, limit: int, message: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> Iterator[str]:
        if len(text) > limit:
            yield f"must be no more than {limit} bytes"
        if not compiled.fullmatch(text):
            yield message

    return check


def _prefix(check: Check) -> Check:
    """The check for the beginning of a name (generateName). It may end with a dash, because more characters follow."""
    # As upstream, two characters become one `a`: the character before the dash is not checked.
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    f" '{_LABEL}')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    f" and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    f" regex used for validation is '{_LABEL_1035}')"
)
_WORD_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_WORD}')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '({_WORD})?')"
)
_label = _name(_LABEL, 63, _LABEL_WORDS)
_subdomain = _name(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS)
_label_1035 = _name(_LABEL_1035, 63, _LABEL_1035_WORDS)
_name_part = _name(_WORD, 63, _WORD_WORDS)


def _qualified_name(text: str) -> Iterator[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a qualified name {_WORD_WORDS} {example}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {message}" for message in _subdomain(prefix))
    if not name:
        yield "name part must be non-empty"
    else:
        yield from (f"name part {message}" for message in _name_part(name))


def _uri(text: str) -> Iterator[str]:
    if not is_request_uri(text):
        yield f'parse "{text}": invalid URI for request'


def _uuid(text: str) -> Iterator[str]:
    if not re.fullmatch(_UUID[5:-1], text, re.ASCII | re.IGNORECASE):
        yield "does not match the UUID format"


def _byte(text: str) -> Iterator[str]:
    if not re.fullmatch(_BASE64, text, re.ASCII):
        yield "invalid base64"


def _is_date(text: str) -> bool:
    found = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text, re.ASCII)
    try:
        # Python has no year 0. The year 400 has the same calendar.
        return found is not None and bool(date(int(found[1]) or 400, int(found[2]), int(found[3])))
    except ValueError:
        return False


def _date(text: str) -> Iterator[str]:
    if not _is_date(text):
        yield "invalid date"


def _datetime(text: str) -> Iterator[str]:
    """A date, a `t` and a time of day.

    As upstream, the zone may be out of range, and everything after a second `t` is ignored.
    """
    day, *rest = text.lower().split("t")
    found = re.fullmatch(_DATETIME[1:-1], rest[0], re.ASCII) if rest and _is_date(day) else None
    if found is None or found[1] > "23" or found[2] > "59" or found[3] > "59":
        yield "invalid datetime"


FORMATS: dict[str, FormatValue] = {
    "dns1123Label": FormatValue("DNS1123Label", _label, 30),
    "dns1123Subdomain": FormatValue("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": FormatValue("DNS1035Label", _label_1035, 30),
    "qualifiedName": FormatValue("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": FormatValue("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": FormatValue("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": FormatValue("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": FormatValue("LabelValue", _name(f"({_WORD})?", 63, _VALUE_WORDS), 40),
    "uri": FormatValue("URI", _uri, 1103),
    "uuid": FormatValue("uuid", _uuid, len(_UUID)),
    "byte": FormatValue("byte", _byte, 84),
    "date": FormatValue("date", _date, len(_DATETIME)),
    "datetime": FormatValue("datetime", _datetime, len(_DATETIME)),
}


def _validate(wanted: FormatValue, text: str) -> Optional:
    faults = tuple(wanted.check(text))
    return Optional(faults) if faults else NONE


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return Optional(found) if found is not None else NONE


def _constant(name: str) -> Function:
    found = FORMATS[name]
    return Function(
        f"format.{name}", (Overload(f"format.{name}", (), FORMAT, lambda: found, variadic=True, raises=False),)
    )


FUNCTIONS = (
    *map(_constant, FORMATS),
    Function("format.named", (Overload("format-named", (STRING,), optional_of(FORMAT), _named, raises=False),)),
    Function(
        "validate",
        (
            Overload(
                "format-validate",
                (FORMAT, STRING),
                optional_of(list_of(STRING)),
                _validate,
                member=True,
                raises=False,
            ),
        ),
    ),
)
