"""The garbage collector and the controller of namespaces die after every single write."""

from __future__ import annotations

from drakit.client import CLAIMS, CONFIG_MAPS, NAMESPACES, POD_GROUPS, PODS
from drakit.controllers.garbage import GarbageCollector, NamespaceController
from drakit.controllers.podgroups import PodGroupProtection
from tests.scenarios.crashes import check_every_crash
from tests.scenarios.garbage_crashes import a_namespace_goes, owners_go

KINDS = (CONFIG_MAPS, PODS, CLAIMS, NAMESPACES, POD_GROUPS)


def test_owners_that_go_in_every_way() -> None:
    assert check_every_crash(owners_go, (GarbageCollector,), KINDS) >= 7


def test_a_namespace_with_a_pod_a_claim_and_a_group() -> None:
    assert check_every_crash(a_namespace_goes, (NamespaceController, PodGroupProtection), KINDS) >= 5
