"""Any CRI runtime over its socket."""

from drakit.nodeagent.runtimes.cri.runtime import CriRuntime

__all__ = ["CriRuntime"]
