"""Which plugin a name in a configuration stands for.

A maker gets the handle and the plugin's args as the configuration gives them (None: the plugin's defaults).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drakit.scheduler.framework import Handle, Plugin

Maker = Callable[[Handle, Any], Plugin]

MAKERS: dict[str, Maker] = {}
