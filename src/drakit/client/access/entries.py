"""Values of a kubeconfig, each with the place where it stands.

In:  plain data of one cluster, user or context.
Out: texts, flags, lists, file contents of the expected sort. What is wrong raises UsageError and names file and field.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings


class KubeconfigEntry(NamedTuple):
    """A named cluster, user or context, and where it stands."""

    file: Path
    field: str
    values: Mapping[str, Any]

    def wrong(self, name: str, why: str) -> UsageError:
        return UsageError(f"{self.file}: {self.field}.{name}: {why}")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, f"expected a string, found {describe(value)}")
        return value

    def header(self, name: str) -> str:
        """A text that goes into the head of a request as it is."""
        value = self.text(name)
        if not (value.isascii() and value.isprintable()):
            raise self.wrong(name, "it has characters that no header can have")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, f"expected true or false, found {describe(value)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(name, f"expected a list of strings, found {describe(value)}")
        return tuple(value)

    def path(self, name: str) -> Path | None:
        """A file's name, which is relative to the kubeconfig."""
        value = self.text(name)
        return self.file.parent / value if value else None

    def data(self, name: str) -> bytes:
        """`<name>-data` in base64, which may have line breaks, else the content of the file `<name>`."""
        inline = self.text(f"{name}-data")
        if inline:
            try:
                return base64.b64decode("".join(inline.split()), validate=True)
            except ValueError as error:  # binascii.Error is one; so is text that is not ASCII
                raise self.wrong(f"{name}-data", f"no base64: {error}") from None
        path = self.path(name)
        if path is None:
            return b""
        try:
            return read_settings(path)
        except OSError as error:
            raise self.wrong(name, f"{path}: {error.strerror or error}") from None


def describe(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    return repr(value) if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"
