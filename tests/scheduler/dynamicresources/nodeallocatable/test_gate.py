"""What the ledger counts with the gate on and off."""

from __future__ import annotations

import msgspec
import pytest

from drakit.scheduler.cache import SchedulerCache
from tests.scheduler.dynamicresources.nodeallocatable.objects import charging_pod, container, node_info


@pytest.mark.parametrize(("on", "counted"), [(True, 3000), (False, 1000)])
def test_what_claims_take_is_rebuilt_from_the_status_of_pods_with_the_gate_alone(on: bool, counted: int) -> None:
    cache = SchedulerCache(count_claims=on)
    cache.put_node(node_info(cpu="8").node)
    taking = charging_pod(
        container("c", "claim", cpu="1"), claims=("claim",), taken={"claim": {"cpu": "2"}}, nodeName="node-a"
    )
    cache.put_pod(taking)
    info = cache.get("node-a")
    assert info is not None
    assert info.requested == {"cpu": counted}
    cache.remove_pod("uid-pod")
    cache.assume(msgspec.structs.replace(taking))
    assert [each.requested["cpu"] for each in cache] == [counted]
