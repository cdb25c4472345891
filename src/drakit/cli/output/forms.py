"""`-o`: the forms that an answer has beside the table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any

import msgspec

from drakit.api.text.yamldump import dump_yaml


class OutputForm(StrEnum):
    YAML = "yaml"
    JSON = "json"
    WIDE = "wide"


def write_document(value: dict[str, Any], form: OutputForm | None) -> None:
    """As JSON where that is asked for, else as YAML."""
    if form is OutputForm.JSON:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
    else:
        sys.stdout.write(dump_yaml(value))
