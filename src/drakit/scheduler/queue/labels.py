"""Why a pod came into a part of the queue, where it was no event of the cluster: labels of metrics."""

POD_ADDED = "UnscheduledPodAdd"
POD_UPDATED = "UnscheduledPodUpdate"
ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POPPED_EARLY = "PopFromBackoffQ"
ACTIVATED = "ForceActivate"
TIMED_OUT = "UnschedulableTimeout"
