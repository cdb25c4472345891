"""Keep up with a server, and act on what changes: reflectors, caches, work queues, workers, leader election.

`Informers(client).of(PODS)` is the process's one cache of pods; its handlers put keys on a `Controller`'s queue, whose
workers read the caches and write through the client. `LeaderElector.run` lets one replica of several do so.
"""

from drakit.informers.backoff import Backoff
from drakit.informers.cache import IndexFunction, ObjectCache, by_controller, by_label, by_node, by_owner, by_uid
from drakit.informers.controller import Controller, Reconcile, Result
from drakit.informers.factory import Informers
from drakit.informers.informer import Handler, Informer
from drakit.informers.leaderelection import LeaderElector, LeaseLost, Timing
from drakit.informers.ratelimits import Bucket, RetryLimits
from drakit.informers.reflector import ListScope, Reflector, Sink
from drakit.informers.workqueue import QueueClosed, WorkQueue

__all__ = [
    "Backoff",
    "Bucket",
    "Controller",
    "Handler",
    "IndexFunction",
    "Informer",
    "Informers",
    "LeaderElector",
    "LeaseLost",
    "ListScope",
    "ObjectCache",
    "QueueClosed",
    "Reconcile",
    "Reflector",
    "Result",
    "RetryLimits",
    "Sink",
    "Timing",
    "WorkQueue",
    "by_controller",
    "by_label",
    "by_node",
    "by_owner",
    "by_uid",
]
