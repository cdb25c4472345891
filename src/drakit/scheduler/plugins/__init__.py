"""The plugins that every pod meets, and how the plugins of a profile come together.

One small module per plugin. `make_profile(config, handle)` makes those of a profile; `registry.MAKERS` knows them by
name.
"""

from drakit.scheduler.plugins.profiles import Profiles, make_profile
from drakit.scheduler.plugins.registry import MAKERS, Maker

__all__ = ["MAKERS", "Maker", "Profiles", "make_profile"]
