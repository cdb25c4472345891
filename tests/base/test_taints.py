"""Which taints keep things away."""

from __future__ import annotations

import pytest

from drakit.base.taints import DeviceTaint, DeviceToleration, Taint, Toleration, tolerates, untolerated

BAD = DeviceTaint(key="example.com/bad", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (DeviceToleration(key="example.com/bad", operator="Exists"), True),
        (DeviceToleration(key="example.com/bad", operator="Equal", value="yes"), True),
        (DeviceToleration(key="example.com/bad", value="yes"), True),
        (DeviceToleration(key="example.com/bad", operator="Equal", value="no"), False),
        (DeviceToleration(operator="Exists"), True),
        (DeviceToleration(operator="Exists", effect="NoExecute"), False),
        (DeviceToleration(key="other", operator="Exists"), False),
        (DeviceToleration(key="example.com/bad", operator="Near", value="yes"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: DeviceToleration, expected: bool) -> None:
    assert tolerates(toleration, BAD) is expected


def test_only_effects_that_keep_away_count() -> None:
    harmless = [DeviceTaint(key="k", effect=effect) for effect in ("None", "PreferNoSchedule", "Later", "")]
    assert untolerated(harmless, ()) is None
    assert untolerated([*harmless, BAD], ()) is BAD


def test_node_taints_follow_the_same_rule() -> None:
    taint = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")
    assert untolerated([taint], [Toleration(key=taint.key, operator="Exists")]) is None
    assert untolerated([taint], [Toleration(key="other", operator="Exists")]) is taint
