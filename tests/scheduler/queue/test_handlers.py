"""What the informers' handlers tell the queue of a pod that is being bound."""

from __future__ import annotations

import msgspec

from drakit.api.objects.pods import Pod
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.eventhandlers import EventHandlers
from tests.scheduler.queue.pods import CLAIMS, popped, queue, queued_pod, where

AFTER = queued_pod("a", resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "a-gpu"}])


def on_node(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="node"))


def test_an_update_during_a_binding_that_fails_is_not_lost() -> None:
    made, cache = queue(), SchedulerCache()
    handlers = EventHandlers(cache, made, ["default-scheduler"])
    handlers.pod(None, queued_pod("a"))
    queued = popped(made)
    cache.assume(on_node(queued.pod.view))
    handlers.pod(queued_pod("a"), AFTER)
    cache.forget(queued.uid)
    made.put_back(queued, unschedulable=[CLAIMS])
    assert where(made, "a") == "backoff"
    assert queued.pod is AFTER


def test_an_update_between_the_binding_and_its_notice_does_not_queue_the_pod_again() -> None:
    made, cache = queue(), SchedulerCache()
    handlers = EventHandlers(cache, made, ["default-scheduler"])
    handlers.pod(None, queued_pod("a"))
    queued = popped(made)
    cache.assume(on_node(queued.pod.view))
    made.done(queued.uid)
    handlers.pod(queued_pod("a"), AFTER)
    assert where(made, "a") == "nowhere"
