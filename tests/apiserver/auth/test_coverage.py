"""Rights that include others, and the words for those that are missing."""

from __future__ import annotations

from hypothesis import given

from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.authorization import Attributes
from drakit.apiserver.auth.rbac.coverage import describe, missing_rights
from drakit.apiserver.auth.rbac.rules import compile_rule
from tests.apiserver.auth.matching import questions, rules


def on(verbs: str, resources: str, *, groups: str = "apps", names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=tuple(verbs.split()),
        api_groups=tuple(groups.split()),
        resources=tuple(resources.split()),
        resource_names=tuple(names.split()),
    )


def test_each_right_may_come_from_another_rule() -> None:
    held = [on("get", "pods"), on("list", "pods"), on("get list", "jobs")]
    assert missing_rights(held, [on("get list", "pods jobs")]) == []


def test_rights_on_some_names_are_not_rights_on_all() -> None:
    assert missing_rights([on("get", "pods", names="a b")], [on("get", "pods", names="a")]) == []
    assert missing_rights([on("get", "pods", names="a")], [on("get", "pods")])
    assert missing_rights([on("get", "pods", names="a")], [on("get", "pods", names="a b")])


def test_a_star_is_included_by_a_star_alone() -> None:
    assert missing_rights([on("get list watch create update patch delete", "pods")], [on("*", "pods")])
    assert missing_rights([on("*", "*/status")], [on("get", "pods/status")]) == []
    assert missing_rights([on("*", "*")], [on("escalate", "roles/anything")]) == []


def test_missing_rights_are_told_by_resource() -> None:
    missing = missing_rights(
        [], [on("get list", "pods", names="a"), PolicyRule(verbs=("get",), non_resource_urls=("/x",))]
    )
    assert describe(missing) == (
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


@given(rules, rules, questions)
def test_whoever_holds_all_of_a_rule_may_do_what_it_allows(
    owner: PolicyRule, granted: PolicyRule, asked: Attributes
) -> None:
    if not missing_rights([owner], [granted]) and compile_rule(granted).allows(asked):
        assert compile_rule(owner).allows(asked)
