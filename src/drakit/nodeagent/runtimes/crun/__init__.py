"""Real containers with crun, from images that are directories of the node."""

from drakit.nodeagent.runtimes.crun.images import ImageStore
from drakit.nodeagent.runtimes.crun.runtime import CrunRuntime

__all__ = ["CrunRuntime", "ImageStore"]
