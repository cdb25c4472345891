"""The suite that judges a DRA driver, in whatever language it is written, over its real sockets.

In:  a command that starts the driver.
Out: for every rule whether the driver keeps it, and if not, what was seen.

`open_testbed` makes a place with an API server and a kubelet's directories; `judge` runs `RULES` in it; `reports` shows
the results. A rule is a small function in `checks`.
"""

from drakit.conformance.checks import RULES
from drakit.conformance.cluster import ClusterWishes
from drakit.conformance.launch import CommandLauncher, DriverPlaces, Launcher, RunningDriver
from drakit.conformance.rules import ConformanceRule, select
from drakit.conformance.settings import DriverHints, Timeouts
from drakit.conformance.suite import judge, open_testbed
from drakit.conformance.testbed import Testbed
from drakit.conformance.verdicts import Broken, NotApplicable, RuleResult, RuleVerdict

__all__ = [
    "RULES",
    "Broken",
    "ClusterWishes",
    "CommandLauncher",
    "ConformanceRule",
    "DriverHints",
    "DriverPlaces",
    "Launcher",
    "NotApplicable",
    "RuleResult",
    "RuleVerdict",
    "RunningDriver",
    "Testbed",
    "Timeouts",
    "judge",
    "open_testbed",
    "select",
]
