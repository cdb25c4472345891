"""A prompt: lines that somebody types, with history and completion where there is a terminal.

In:  words that may be meant.
Out: lines, until the end of input. Where input comes from a pipe, its lines, without a prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

_BREAKS = " \t\n()&|!=<>,"
"""Where a word ends: dots, brackets and quotes belong to the path of an attribute."""


def prompted(prompt: str, words: Sequence[str]) -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin)
        return
    _complete_with(words)
    while True:
        try:
            yield input(prompt).strip()
        except EOFError:
            sys.stdout.write("\n")
            return


def _complete_with(words: Sequence[str]) -> None:
    try:
        import readline
    except ImportError:  # a Python without it has a prompt all the same
        return
    # The defaults would end a word at the dots of `device.attributes`.
    readline.set_completer_delims(_BREAKS)
    readline.set_completer(lambda text, state: completion(words, text, state))
    readline.parse_and_bind("tab: complete")


def completion(words: Sequence[str], text: str, state: int) -> str | None:
    """The words that begin with the text, one per state; None after the last."""
    found = sorted(each for each in words if each.startswith(text))
    return found[state] if state < len(found) else None
