"""The gate before the queue: what the plugins of a pod's profile say in PreEnqueue.

In:  the plugins by scheduler name.
Out: whether a pod may enter active or backoff; else the plugin that keeps it out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from drakit.api.objects.pods import Pod
from drakit.client import V
from drakit.scheduler.framework import SUCCESS, PluginStatus, PreEnqueue

log = logging.getLogger("drakit.scheduler")


class PreEnqueueGate:
    """A pod of a scheduler that is not known passes: its profile is missing, which its attempt finds out."""

    def __init__(self, plugins: Mapping[str, Sequence[PreEnqueue]]) -> None:
        self._plugins = plugins

    def check(self, pod: Pod) -> PluginStatus:
        """The first refusal counts. A plugin that fails keeps the pod out as well."""
        for plugin in self._plugins.get(pod.spec.scheduler_name, ()):
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as error:
                log.exception("PreEnqueue plugin %s failed for pod %s", plugin.name, _name(pod))
                return PluginStatus.failed(error)
            if not status.ok:
                if log.isEnabledFor(V[4]):
                    log.log(V[4], "pod %s may not enter the queue: %s: %s", _name(pod), plugin.name, status.message)
                return status.by(plugin.name)
        return SUCCESS


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
