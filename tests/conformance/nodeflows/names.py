"""Uids: recordings have placeholders such as `<uid:claim/claim>`, servers give their own."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

_PLACEHOLDER = re.compile(r"<uid:[^>]*>")


class Uids:
    """Invariant: a placeholder and a real uid belong to each other for the whole flow."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._placeholder: dict[str, str] = {}
        self._made: dict[str, int] = {}

    def learn(self, kind: str, name: str, uid: str) -> None:
        """An object was made; the second of a name is `#2`."""
        base = f"{kind}/{name}"
        count = self._made[base] = self._made.get(base, 0) + 1
        self._pair(f"<uid:{base}>" if count == 1 else f"<uid:{base}#{count}>", uid)

    def _pair(self, placeholder: str, uid: str) -> None:
        self._real[placeholder] = uid
        self._placeholder[uid] = placeholder

    def real(self, value: Any) -> Any:
        """With real uids in place of placeholders."""
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda found: self._real_of(found[0]), value)
        return _walk(value, self.real)

    def recorded(self, value: Any) -> Any:
        """With placeholders in place of real uids."""
        if isinstance(value, str):
            for uid, placeholder in self._placeholder.items():
                value = value.replace(uid, placeholder)
            return value
        return _walk(value, self.recorded)

    def _real_of(self, placeholder: str) -> str:
        if placeholder not in self._real:
            self._pair(placeholder, str(uuid4()))
        return self._real[placeholder]


def _walk(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key): change(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [change(each) for each in value]
    return value
