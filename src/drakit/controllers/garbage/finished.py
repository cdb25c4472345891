"""Delete pods that have ended, the oldest first, when there are more of them than somebody may want to look at.

In:  all pods, every so often.
Out: no more than `threshold` of those that have ended.
"""

from __future__ import annotations

import logging

from drakit.api import Pod
from drakit.api.objects.partial import Partial
from drakit.client import PODS, Key, V
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, Result

log = logging.getLogger("drakit.controllers")

NAME = "pod_garbage_collector"
ACCOUNT = "pod-garbage-collector"
THRESHOLD = 12_500
PERIOD = 20.0
_SWEEP = Key("", "sweep")


class FinishedPods:
    def __init__(self, context: ControllerContext, *, threshold: int = THRESHOLD) -> None:
        """A threshold of zero or less keeps them all."""
        self._client = context.client_of(ACCOUNT)
        self._threshold = threshold
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,) if threshold > 0 else ()
        self.loop.queue.add(_SWEEP)

    async def reconcile(self, key: Key) -> Result:
        del key
        ended = [pod for pod in self._pods.cache if pod.view.is_terminal and not pod.view.metadata.deletion_timestamp]
        ended.sort(key=_age)
        for pod in ended[: max(len(ended) - self._threshold, 0)]:
            log.log(
                V[2], "pod %s/%s has ended long ago: deleting it", pod.view.metadata.namespace, pod.view.metadata.name
            )
            await self._client.delete_object(pod, grace=0)
        return Result.after(PERIOD)


def _age(pod: Partial[Pod]) -> tuple[str, str, str]:
    metadata = pod.view.metadata
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name
