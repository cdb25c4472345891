"""What to say about an attribute that a device does not have: which ones it has, and which one was probably meant."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache

from drakit.cel import EvalError
from drakit.selectors.devices import BoundDevice

_NO_KEY = "no such key: "
_HINT = re.compile(r'(, did you mean "[^"]*"\?)? \(the device has attributes .* \| capacity .*\)$', re.DOTALL)


def explained(message: str, bound: BoundDevice) -> str:
    """The message of a failed evaluation, with a hint when a name was not found."""
    if not message.startswith(_NO_KEY):
        return message
    return message + _hint(message.removeprefix(_NO_KEY), bound)


def without_hint(message: str) -> str:
    """The message as it was before it was explained: the words of Kubernetes."""
    return _HINT.sub("", message) if _NO_KEY in message else message


@lru_cache(maxsize=1024)
def _hint(name: str, bound: BoundDevice) -> str:
    try:
        device = bound.device
    except EvalError:
        return ""
    parts: list[str] = []
    known: set[str] = set()
    for kind in ("attributes", "capacity"):
        domains = device[kind]
        known.update(key for held in domains.values() for key in held)
        listed = "; ".join(f"{domain}: {', '.join(sorted(held))}" for domain, held in sorted(domains.items()))
        parts.append(f"{kind} {listed or 'none'}")
    nearest = get_close_matches(name, sorted(known), n=1)
    meant = f', did you mean "{nearest[0]}"?' if nearest and nearest[0] != name else ""
    return f"{meant} (the device has {' | '.join(parts)})"
