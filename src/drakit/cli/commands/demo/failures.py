"""Why a scene of the demo did not go as it should."""

from __future__ import annotations


class SceneFailed(Exception):
    """The text says what was waited for, and how things stood."""
