"""The plugins that every pod meets, and how the plugins of a profile come together.

One small module per plugin. `make_lineup(profile, handle)` makes those of a profile; `registry.MAKERS` knows them by
name.
"""

from drakit.scheduler.plugins.lineup import Lineup, make_lineup
from drakit.scheduler.plugins.registry import MAKERS, Maker

__all__ = ["MAKERS", "Lineup", "Maker", "make_lineup"]
