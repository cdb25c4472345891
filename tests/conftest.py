"""What holds for all tests: nothing that hypothesis draws is judged by the time that it takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no bug, and a failure that depends on it says nothing.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
