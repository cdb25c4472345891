"""Finished jobs go after a while, if they say so (`ttlSecondsAfterFinished`).

In:  jobs.
Out: deletions, of the pods too.
"""

from __future__ import annotations

from datetime import timedelta

from drakit.client import JOBS, Key
from drakit.controllers.context import ControllerContext
from drakit.controllers.jobs.ends import ended_since
from drakit.informers import Result

COMPONENT = "ttl-after-finished-controller"


class FinishedJobs:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._jobs = context.informers.of(JOBS)
        self.loop = context.loop("ttl-after-finished", self.reconcile)
        self.loops = (self.loop,)
        self._jobs.enqueue(self.loop.queue.add)

    async def reconcile(self, key: Key) -> Result:
        job = self._jobs.cache.get(key)
        if job is None or job.view.metadata.deletion_timestamp is not None:
            return Result.done()
        seconds, since = job.view.spec.ttl_seconds_after_finished, ended_since(job.view)
        if seconds is None or since is None:
            return Result.done()
        left = (since + timedelta(seconds=seconds) - self._clock.now()).total_seconds()
        if left > 0:
            return Result.after(left)
        # The cache may be behind: somebody may just have given the job more time.
        now = await self._client.find(JOBS, key.name, namespace=key.namespace)
        if now is not None and now.view.spec.ttl_seconds_after_finished == seconds:
            await self._client.delete_object(now, propagation="Foreground")
        return Result.done()
