"""Scenes and objects for the tests of flows, here and elsewhere."""

from __future__ import annotations

WITHOUT_SCHEDULER = ("flow-29", "flow-35", "flow-36", "flow-51", "flow-61")
