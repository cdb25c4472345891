"""Whether the server can be reached: one line when it goes away, one when it comes back, however many follow it.

In:  successes and failures of all that follow a server by one client.
Out: log lines.
"""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary

from drakit.client import Client

log = logging.getLogger("drakit.informers")


class Reachability:
    def __init__(self) -> None:
        self._away = False

    def failed(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            log.warning("the API server cannot be reached, and is asked again and again: %s", error)

    def succeeded(self) -> None:
        if self._away:
            self._away = False
            log.warning("the API server is reached again")


_KNOWN: WeakKeyDictionary[Client, Reachability] = WeakKeyDictionary()


def reachability_of(client: Client) -> Reachability:
    """One for all that use the client."""
    found = _KNOWN.get(client)
    if found is None:
        found = _KNOWN[client] = Reachability()
    return found
