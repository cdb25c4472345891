"""The text of an expression. Turns an offset into a line and a column, and draws the caret of an error."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from drakit.cel.errors import Issue


class Source:
    """Offsets count code points from 0; lines and columns count from 1, as people do."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def issue(self, offset: int, message: str) -> Issue:
        """An error at an offset, with its line and a caret. The mark under a non-ASCII character is full-width."""
        if not self.text:
            return Issue(message, 1, 0, "")
        offset = max(0, min(offset, len(self.text)))
        line, column = self.position(offset)
        start = self._starts[line - 1]
        text = self.text[start:].split("\n", 1)[0].replace("\t", " ")
        marks = "".join("." if char.isascii() else "．" for char in text[: column - 1])
        caret = "^" if text[column - 1 : column].isascii() else "＾"
        return Issue(message, line, column, f"\n | {text}\n | {marks}{caret}")

    def unplaced(self, message: str) -> Issue:
        """An error of the text as a whole."""
        return Issue(message, -1, 0, "")
