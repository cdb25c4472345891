"""The controller of claims dies after every single write: nothing is lost, nothing is made twice."""

from __future__ import annotations

from drakit.client import CLAIMS, POD_GROUPS, PODS
from drakit.controllers.claims import ClaimController
from tests.scenarios.claim_crashes import a_group_comes_and_goes, pods_come_and_go
from tests.scenarios.crashes import check_every_crash

KINDS = (PODS, CLAIMS, POD_GROUPS)


def test_pods_with_claims_of_templates_and_by_name() -> None:
    assert check_every_crash(pods_come_and_go, (ClaimController,), KINDS) >= 10


def test_a_group_with_a_claim_of_a_template() -> None:
    assert check_every_crash(a_group_comes_and_goes, (ClaimController,), KINDS) >= 6
