"""Scenes and objects for the tests of profiles, here and elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

NOW = datetime(2026, 1, 1, tzinfo=UTC)
