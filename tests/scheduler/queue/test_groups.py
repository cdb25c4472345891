"""Taking pods out together."""

from __future__ import annotations

from tests.scheduler.queue.pods import FIT, queue, queued_pod, refused


def test_pods_that_are_taken_are_in_flight_like_popped_ones() -> None:
    made = queue()
    refused(made, "waits", FIT)
    refused(made, "backs-off")
    made.add(queued_pod("active"))
    made.add(queued_pod("gated", gate="g"))
    uids = [f"uid-{name}" for name in ("waits", "backs-off", "active", "gated", "unknown")]
    taken = made.take(uids)
    assert [each.uid for each in taken] == uids[:3]
    assert [each.attempts for each in taken] == [2, 2, 1]
    assert len(made._flights) == 3
    assert made.take(uids) == []
    assert made.pop_now() is None
    for each in taken:
        made.put_back(each, unschedulable=[FIT])
    assert made.pending() == {"active": 0, "backoff": 0, "unschedulable": 3, "gated": 1}
