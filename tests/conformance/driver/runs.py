"""What tests say about a run of the suite: what can be done to the plain driver, and time enough for a busy machine."""

from __future__ import annotations

from drakit.conformance import DriverHints, Timeouts
from tests.conformance.driver.launcher import REMOVE
from tests.conformance.driver.plaindriver import NAME, SICK

CONTROL = f"{{plugin_dir}}/{NAME}/{SICK}"
HINTS = DriverHints(
    removal_arguments=(REMOVE,), break_command=("touch", CONTROL), heal_command=("rm", "--force", CONTROL)
)
PATIENT = Timeouts(start=30.0, call=30.0, publish=30.0, repair=30.0, stop=30.0, slow=0.05, settle=0.05, health=30.0)
