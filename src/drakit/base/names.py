"""What a name may look like, and how a new one is made.

Each `check_…` returns the messages of all broken rules, none when the name is good, in Kubernetes' words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from re import Pattern

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
ATTRIBUTE_DOMAIN_LENGTH = 63
ATTRIBUTE_NAME_LENGTH = 32

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + "(\\." + _LABEL + ")*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_CONFIG_KEY_RULE = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"

_compiled: dict[str, Pattern[str]] = {}


def fits(pattern: str, text: str) -> bool:
    """Whether all of `text` has the form of `pattern`."""
    compiled = _compiled.get(pattern)
    if compiled is None:
        compiled = _compiled[pattern] = re.compile(pattern, re.ASCII)
    return compiled.fullmatch(text) is not None


def form_message(rule: str, pattern: str, examples: Sequence[str] = ()) -> str:
    """`RULE (e.g. 'a',  or 'b', regex used for validation is 'PATTERN')`, with the commas that clients have seen."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{pattern}')"


def _length_message(limit: int, unit: str) -> str:
    return f"must be no more than {limit} {unit}"


def size(text: str) -> int:
    """Length on the wire, in bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def check_dns_label(name: str, *, unit: str = "characters") -> list[str]:
    # A good name is ASCII: it has as many bytes as characters.
    if len(name) <= LABEL_LENGTH and fits(_LABEL, name):
        return []
    messages = [_length_message(LABEL_LENGTH, unit)] if size(name) > LABEL_LENGTH else []
    if not fits(_LABEL, name):
        dotted = fits(_SUBDOMAIN, name)
        messages.append(
            "must not contain dots" if dotted else form_message(_LABEL_RULE, _LABEL, ("my-name", "123-abc"))
        )
    return messages


def check_dns_subdomain(name: str, *, unit: str = "characters") -> list[str]:
    if len(name) <= SUBDOMAIN_LENGTH and fits(_SUBDOMAIN, name):
        return []
    messages = [_length_message(SUBDOMAIN_LENGTH, unit)] if size(name) > SUBDOMAIN_LENGTH else []
    if not fits(_SUBDOMAIN, name):
        messages.append(form_message(_SUBDOMAIN_RULE, _SUBDOMAIN, ("example.com",)))
    return messages


def check_dns1035_label(name: str) -> list[str]:
    messages = [_length_message(LABEL_LENGTH, "characters")] if size(name) > LABEL_LENGTH else []
    if not fits(_DNS1035, name):
        messages.append(form_message(_DNS1035_RULE, _DNS1035, ("my-name", "abc-123")))
    return messages


def check_c_identifier(name: str) -> list[str]:
    if fits(_IDENTIFIER, name):
        return []
    return [form_message(_IDENTIFIER_RULE, _IDENTIFIER, ("my_name", "MY_NAME", "MyName"))]


def check_label_key(key: str) -> list[str]:
    """`name` or `prefix/name`; also the form of annotation keys, taint keys and resource names."""
    parts = key.split("/")
    if len(parts) > 2:
        form = form_message(_KEY_RULE, _KEY, ("MyName", "my.name", "123-abc"))
        return [f"a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    messages = []
    if len(parts) == 2:
        prefix = check_dns_subdomain(parts[0], unit="bytes") if parts[0] else ["must be non-empty"]
        messages += [f"prefix part {message}" for message in prefix]
    name = parts[-1]
    if not name:
        messages.append("name part must be non-empty")
    elif size(name) > LABEL_LENGTH:
        messages.append(f"name part {_length_message(LABEL_LENGTH, 'bytes')}")
    if not fits(_KEY, name):
        form = form_message(_KEY_RULE, _KEY, ("MyName", "my.name", "123-abc"))
        messages.append(f"name part {form}")
    return messages


check_qualified_name: Callable[[str], list[str]] = check_label_key


def check_label_value(value: str) -> list[str]:
    messages = [_length_message(LABEL_LENGTH, "bytes")] if size(value) > LABEL_LENGTH else []
    if not fits(_VALUE, value):
        messages.append(form_message(_VALUE_RULE, _VALUE, ("MyValue", "my_value", "12345")))
    return messages


def check_config_key(key: str) -> list[str]:
    """A key of a ConfigMap or Secret: also a file name, so it must not climb."""
    messages = [_length_message(SUBDOMAIN_LENGTH, "characters")] if size(key) > SUBDOMAIN_LENGTH else []
    if not fits(_CONFIG_KEY, key):
        messages.append(form_message(_CONFIG_KEY_RULE, _CONFIG_KEY, ("key.name", "KEY_NAME", "key-name")))
    return messages + check_file_name(key)


def check_file_name(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"must not be '{name}'"]
    return ["must not start with '..'"] if name.startswith("..") else []


def check_path_segment(name: str) -> list[str]:
    """What may stand between two slashes of a request path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


_UUID_RULE = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
    "with lowercase hexadecimal characters"
)
_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_BARE_UUID = "[0-9a-fA-F]{32}"


def check_uid(uid: str) -> list[str]:
    """A uuid in its lower-case, dashed form. Other spellings of a uuid are told apart from what is none."""
    if problem := _uuid_problem(uid):
        return [f"error validating uid: {problem}"]
    return [] if len(uid) == 36 and uid == uid.lower() else [_UUID_RULE]


def _uuid_problem(uid: str) -> str:
    length = size(uid)
    if length == 45 and uid[:9].lower() != "urn:uuid:":
        return f'invalid urn prefix: "{uid[:9]}"'
    if length == 38 and (uid[0], uid[-1]) != ("{", "}"):
        return "invalid bracketed UUID format"
    if length not in (32, 36, 38, 45):
        return f"invalid UUID length: {length}"
    core = {38: uid[1:-1], 45: uid[9:]}.get(length, uid)
    return "" if fits(_BARE_UUID if length == 32 else _UUID, core) else "invalid UUID format"


SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that no suffix spells a word."""
SUFFIX_LENGTH = 5
GENERATED_LENGTH = 63


def random_suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    return "".join(random.choices(SUFFIX_ALPHABET, k=length))


def generate_name(base: str, random: Random) -> str:
    """`base` plus five random characters, the base cut so that all fits a label."""
    return base[: GENERATED_LENGTH - SUFFIX_LENGTH] + random_suffix(random)
