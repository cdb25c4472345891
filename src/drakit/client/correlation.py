"""Which events are worth writing: similar ones become one, and a component that will not stop is slowed down.

In:  events as components tell them.
Out: the event to write, which may stand for many; or none.

As client-go's correlator has it: more than ten different messages of one reason about one object within ten minutes
become one event; of one object a component tells 25 of a type at once, then one every five minutes, repeats included.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeVar

from drakit.base.clock import Clock

SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
MOST_REMEMBERED = 4096
COMBINED = "(combined from similar events): "

Key = tuple[str, ...]
R = TypeVar("R", "_Messages", "_Tokens")


class _Messages:
    """The different messages of one reason about one object, since `began`."""

    __slots__ = ("began", "texts")

    def __init__(self, began: float) -> None:
        self.began = began
        self.texts: set[str] = set()

    def is_over(self, now: float) -> bool:
        return now - self.began > SIMILAR_SECONDS


class _Tokens:
    """How many events may still be told, as of `at`."""

    __slots__ = ("at", "left")

    def __init__(self, at: float) -> None:
        self.at = at
        self.left = float(BURST)

    def is_over(self, now: float) -> bool:
        """Whether an object of which nothing was told yet has no more of them."""
        return self._now_left(now) >= BURST

    def _now_left(self, now: float) -> float:
        return min(BURST, self.left + (now - self.at) / REFILL_SECONDS)

    def take(self, now: float) -> bool:
        self.left = self._now_left(now)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class EventCorrelator:
    """Of one component. It remembers objects until it would treat them as new; of too many the oldest go."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._similar: OrderedDict[Key, _Messages] = OrderedDict()
        self._tokens: OrderedDict[Key, _Tokens] = OrderedDict()

    def message(self, involved: Mapping[str, Any], type_: str, reason: str, message: str) -> str | None:
        """The message to write; None when too much was told of the object."""
        now = self._clock.monotonic()
        # By type: an object of which too many warnings were told can still be said to be well again.
        subject = (involved.get("uid", ""), involved.get("name", ""), type_)
        if not self._tokens_of(subject, now).take(now):
            return None
        known = self._messages_of((*subject, reason), now)
        known.texts.add(message)
        return f"{COMBINED}{message}" if len(known.texts) > SIMILAR else message

    def _tokens_of(self, subject: Key, now: float) -> _Tokens:
        found = self._tokens.get(subject)
        if found is None:
            _look_back(self._tokens, now)
            found = self._tokens[subject] = _Tokens(now)
        else:
            self._tokens.move_to_end(subject)
        return found

    def _messages_of(self, key: Key, now: float) -> _Messages:
        found = self._similar.get(key)
        if found is None or found.is_over(now):
            _look_back(self._similar, now)
            found = self._similar[key] = _Messages(now)
        self._similar.move_to_end(key)
        return found


def _look_back(remembered: OrderedDict[Key, R], now: float) -> None:
    """Look at two old entries for each that is new: those that say nothing any more go, others get another turn."""
    for key in list(islice(remembered, 2)):
        if remembered[key].is_over(now) or len(remembered) >= MOST_REMEMBERED:
            del remembered[key]
        else:
            remembered.move_to_end(key)
