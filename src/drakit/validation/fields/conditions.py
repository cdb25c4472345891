"""Conditions, as every kind with a status has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.api import Condition
from drakit.api.text.times import ZERO_TIME
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, invalid, not_supported, required, too_long
from drakit.validation.fields.names import check_label_key

STATUSES = ("False", "True", "Unknown")
REASON_LENGTH = 1024
MESSAGE_LENGTH = 32 * 1024

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASON_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


def check_conditions(conditions: Sequence[Condition], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if condition.type in seen:
            yield duplicate(path[index] / "type", condition.type)
        seen.add(condition.type)
        yield from check_condition(condition, path[index])


def check_condition(condition: Condition, path: Path) -> Iterator[FieldError]:
    yield from check_label_key(condition.type, path / "type")
    if condition.status not in STATUSES:
        yield not_supported(path / "status", condition.status, STATUSES)
    if condition.observed_generation < 0:
        yield invalid(
            path / "observedGeneration", condition.observed_generation, "must be greater than or equal to zero"
        )
    if condition.last_transition_time in (None, "", ZERO_TIME):
        yield required(path / "lastTransitionTime")
    yield from _check_reason(condition.reason, path / "reason")
    if names.size(condition.message) > MESSAGE_LENGTH:
        yield too_long(path / "message", MESSAGE_LENGTH)


def _check_reason(reason: str, path: Path) -> Iterator[FieldError]:
    if not reason:
        yield required(path)
        return
    if not names.fits(_REASON, reason):
        yield invalid(path, reason, names.form_message(_REASON_RULE, _REASON, _REASON_EXAMPLES))
    if names.size(reason) > REASON_LENGTH:
        yield too_long(path, REASON_LENGTH)
