"""Which events are worth writing: similar ones become one, and a component that will not stop is slowed down.

In:  events as components tell them.
Out: the event to write, which may stand for many; or none.

As client-go's correlator has it: more than ten different messages of one reason about one object within ten minutes
become one event; of one object a component tells 25 at once and then one every five minutes, repeats included.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from drakit.base.clock import Clock

SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
MOST_REMEMBERED = 4096
COMBINED = "(combined from similar events): "

Key = tuple[str, ...]


class _Messages:
    """The different messages of one reason about one object, since `began`."""

    __slots__ = ("began", "texts")

    def __init__(self, began: float) -> None:
        self.began = began
        self.texts: set[str] = set()


class _Tokens:
    """How many events may still be told, as of `at`."""

    __slots__ = ("at", "left")

    def __init__(self, at: float) -> None:
        self.at = at
        self.left = float(BURST)

    def take(self, now: float) -> bool:
        self.left = min(BURST, self.left + (now - self.at) / REFILL_SECONDS)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class EventCorrelator:
    """Of one component. It remembers the objects that it told of last; the oldest leaves first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._similar: OrderedDict[Key, _Messages] = OrderedDict()
        self._tokens: OrderedDict[Key, _Tokens] = OrderedDict()

    def message(self, involved: Mapping[str, Any], type_: str, reason: str, message: str) -> str | None:
        """The message to write; None when too much was told of the object."""
        now = self._clock.monotonic()
        subject = (involved.get("uid", ""), involved.get("name", ""), involved.get("fieldPath", ""))
        if not self._tokens_of(subject, now).take(now):
            return None
        known = self._messages_of((*subject, type_, reason), now)
        known.texts.add(message)
        return f"{COMBINED}{message}" if len(known.texts) > SIMILAR else message

    def _tokens_of(self, subject: Key, now: float) -> _Tokens:
        found = self._tokens.get(subject)
        if found is None:
            found = self._tokens[subject] = _Tokens(now)
            _bound(self._tokens)
        else:
            self._tokens.move_to_end(subject)
        return found

    def _messages_of(self, key: Key, now: float) -> _Messages:
        found = self._similar.get(key)
        if found is None or now - found.began > SIMILAR_SECONDS:
            found = self._similar[key] = _Messages(now)
            _bound(self._similar)
        self._similar.move_to_end(key)
        return found


def _bound(remembered: OrderedDict[Key, Any]) -> None:
    if len(remembered) > MOST_REMEMBERED:
        remembered.popitem(last=False)
