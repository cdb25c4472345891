"""Taking pods out together, and trying pods now."""

from __future__ import annotations

from tests.scheduler.queue.pods import FIT, names, pod, popped, queue, refused, where


def test_members_are_found_in_every_part_but_among_gated_ones_in_order() -> None:
    made = queue()
    refused(made, "waits", FIT)
    refused(made, "backs-off")
    made.add(pod("active", priority=5))
    made.add(pod("gated", gate="g"))
    found = made.members(lambda each: each.metadata.name != "other")
    assert [each.pod.view.metadata.name for each in found] == ["active", "waits", "backs-off"]
    assert made.members(lambda each: each.metadata.name == "waits") == [made.get("uid-waits")]


def test_pods_that_are_taken_are_in_flight_like_popped_ones() -> None:
    made = queue()
    refused(made, "waits", FIT)
    refused(made, "backs-off")
    made.add(pod("active"))
    made.add(pod("gated", gate="g"))
    uids = [f"uid-{name}" for name in ("waits", "backs-off", "active", "gated", "unknown")]
    taken = made.take(uids)
    assert [each.uid for each in taken] == uids[:3]
    assert [each.attempts for each in taken] == [2, 2, 1]
    assert made.in_flight == 3
    assert made.take(uids) == []
    assert made.pop_now() is None
    for each in taken:
        made.put_back(each, unschedulable=[FIT])
    assert made.pending() == {"active": 0, "backoff": 0, "unschedulable": 3, "gated": 1}


def test_activated_pods_are_tried_at_once() -> None:
    made = queue()
    refused(made, "waits", FIT)
    refused(made, "backs-off")
    made.activate(["uid-waits", "uid-backs-off", "uid-unknown"])
    assert names(made) == ["waits", "backs-off"]


def test_a_pod_that_is_activated_during_its_attempt_is_tried_again() -> None:
    made = queue()
    made.add(pod("a"))
    made.add(pod("b"))
    a, b = popped(made), popped(made)
    made.activate(["uid-a"])
    made.put_back(a, unschedulable=[FIT])
    made.put_back(b, unschedulable=[FIT])
    assert (where(made, "a"), where(made, "b")) == ("backoff", "unschedulable")
