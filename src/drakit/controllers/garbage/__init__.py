"""What goes when something else has gone: dependents, the content of namespaces, pods that ended long ago."""

from drakit.controllers.garbage.collector import GarbageCollector
from drakit.controllers.garbage.finished import FinishedPods
from drakit.controllers.garbage.namespaces import NamespaceController

__all__ = ["FinishedPods", "GarbageCollector", "NamespaceController"]
