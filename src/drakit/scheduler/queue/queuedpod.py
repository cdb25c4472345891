"""A pod in the queue, with what is remembered of its attempts."""

from __future__ import annotations

from enum import StrEnum

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod

Order = tuple[int, float, int]
"""(priority, highest first; since when; number): the order in which pods are tried."""

NOBODY: frozenset[str] = frozenset()


class Part(StrEnum):
    """Where a pod is. The values are the labels of `scheduler_pending_pods`."""

    ACTIVE = "active"  # ready to be tried
    BACKOFF = "backoff"  # ready when its backoff is over
    UNSCHEDULABLE = "unschedulable"  # waits for an event that can help it
    GATED = "gated"  # refused by PreEnqueue
    IN_FLIGHT = "in flight"  # being tried or bound
    OUTSIDE = "outside"


class QueuedPod:
    """Belongs to the queue, which alone changes it. Times are of the monotonic clock.

    `pod` stays what it was when the pod was taken from the queue until it is put back, whatever happens meanwhile.
    """

    __slots__ = (
        "attempts",
        "backoff_until",
        "errors",
        "first_active",
        "flush_at",
        "gated_by",
        "gated_why",
        "number",
        "part",
        "pending",
        "pod",
        "queued_at",
        "refusals",
        "uid",
        "unschedulable",
    )

    def __init__(self, pod: Partial[Pod], *, now: float, number: int) -> None:
        self.pod = pod
        self.uid = pod.view.metadata.uid
        self.part = Part.OUTSIDE
        self.queued_at = now
        """When it was added or last put back: of pods with the same priority, the earlier one comes first."""
        self.number = number
        """Breaks ties of `queued_at`, so that the order is total."""
        self.attempts = 0  # times it was taken from the queue
        self.first_active: float | None = None  # when it could first be tried
        self.refusals = 0  # attempts that ended with a plugin's refusal
        self.errors = 0  # failures in a row
        self.unschedulable = NOBODY  # plugins that refused it
        self.pending = NOBODY  # plugins that await something for it
        self.gated_by: str | None = None
        """The PreEnqueue plugin that keeps it out of the queue; None once it may enter."""
        self.gated_why = ""
        self.backoff_until = float("-inf")
        """Not tried before this time, unless what it is pending for arrives, or nothing else waits (`pop_early`)."""
        self.flush_at = float("inf")
        """It is tried at this time even if no event helps: a hint may be wrong."""

    @property
    def priority(self) -> int:
        return self.pod.view.spec.priority or 0

    @property
    def profile(self) -> str:
        return self.pod.view.spec.scheduler_name

    @property
    def order(self) -> Order:
        return (-self.priority, self.queued_at, self.number)

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins because of which it waits."""
        plugins = self.unschedulable | self.pending
        return plugins if self.gated_by is None else plugins | {self.gated_by}

    @property
    def failed(self) -> bool:
        """Whether its last attempt ended in an error rather than a refusal."""
        return self.errors > 0

    def __repr__(self) -> str:
        metadata = self.pod.view.metadata
        return f"QueuedPod({metadata.namespace}/{metadata.name}, {self.part}, attempts={self.attempts})"
