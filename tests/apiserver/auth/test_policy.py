"""Whom a binding is for, and which rules hold where."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drakit.api.exchange import User
from drakit.apiserver.auth import identities
from drakit.apiserver.auth.authorization import Attributes, Decision
from drakit.apiserver.auth.rbac.authorizer import RoleBased
from drakit.apiserver.auth.rbac.policy import RolePolicy
from tests.apiserver.auth.people import ALICE, account, binding, group, person, role, rule

GET_PODS = rule("get", "", "pods")


def placed(document: dict[str, Any], namespace: str) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def policy(*documents: dict[str, Any]) -> RolePolicy:
    made = RolePolicy()
    for document in documents:
        made.put(document["kind"], document)
    return made


def may(held: RolePolicy, user: User, namespace: str = "a") -> bool:
    asked = Attributes(user=user, verb="get", resource="pods", namespace=namespace)
    return RoleBased(held).decide(asked).decision is Decision.ALLOW


def test_a_role_holds_in_its_namespace_alone() -> None:
    held = policy(placed(role("r", GET_PODS), "a"), placed(binding("b", "r", person("alice")), "a"))
    assert may(held, ALICE, "a")
    assert not may(held, ALICE, "b")
    assert not may(held, ALICE, "")


def test_a_cluster_role_bound_in_a_namespace_holds_there_alone() -> None:
    held = policy(
        role("r", GET_PODS, kind="ClusterRole"),
        placed(binding("b", "r", group("dev"), role_kind="ClusterRole"), "a"),
    )
    assert may(held, ALICE, "a")
    assert not may(held, ALICE, "b")


def test_a_cluster_binding_holds_everywhere() -> None:
    held = policy(
        role("r", GET_PODS, kind="ClusterRole"),
        binding("b", "r", person("alice"), kind="ClusterRoleBinding", role_kind="ClusterRole"),
    )
    assert may(held, ALICE, "a")
    assert may(held, ALICE, "")


def test_a_cluster_binding_cannot_refer_to_a_role_of_a_namespace() -> None:
    held = policy(
        placed(role("r", GET_PODS), "a"),
        binding("b", "r", person("alice"), kind="ClusterRoleBinding", role_kind="Role"),
    )
    assert not may(held, ALICE, "a")


def test_a_service_account_without_namespace_is_of_the_binding_s_own() -> None:
    held = policy(placed(role("r", GET_PODS), "a"), placed(binding("b", "r", account("bot")), "a"))
    assert may(held, identities.account("a", "bot"))
    assert not may(held, identities.account("b", "bot"))


def test_a_user_who_is_called_like_a_group_is_not_in_it() -> None:
    held = policy(placed(role("r", GET_PODS), "a"), placed(binding("b", "r", group("dev")), "a"))
    assert not may(held, User(name="dev"))
    assert not may(held, User(name="group dev"))
    assert not may(held, User(name="Group"))


def test_taking_anything_away_takes_the_right_away() -> None:
    documents = [placed(role("r", GET_PODS), "a"), placed(binding("b", "r", person("alice")), "a")]
    for kind, name in (("Role", "r"), ("RoleBinding", "b")):
        held = policy(*documents)
        judge = RoleBased(held)
        asked = Attributes(user=ALICE, verb="get", resource="pods", namespace="a")
        assert judge.decide(asked).decision is Decision.ALLOW
        held.remove(kind, "a", name)
        assert judge.decide(asked).decision is Decision.NO_OPINION


def test_a_binding_that_loses_a_subject_no_longer_reaches_it() -> None:
    held = policy(placed(role("r", GET_PODS), "a"), placed(binding("b", "r", person("alice")), "a"))
    held.put("RoleBinding", placed(binding("b", "r", person("bob")), "a"))
    assert not may(held, ALICE)
    assert may(held, User(name="bob"))


def test_the_reason_names_binding_role_and_subject() -> None:
    held = policy(placed(role("r", GET_PODS), "a"), placed(binding("b", "r", account("bot"), person("alice")), "a"))
    asked = Attributes(user=ALICE, verb="get", resource="pods", namespace="a")
    assert RoleBased(held).decide(asked).reason == 'RBAC: allowed by RoleBinding "b/a" of Role "r" to User "alice"'
    asked = Attributes(user=identities.account("a", "bot"), verb="get", resource="pods", namespace="a")
    assert RoleBased(held).decide(asked).reason.endswith('to ServiceAccount "bot/a"')


def test_a_role_that_is_not_there_is_told() -> None:
    held = policy(
        placed(binding("b", "gone", person("alice")), "a"),
        binding("c", "lost", person("alice"), kind="ClusterRoleBinding", role_kind="ClusterRole"),
    )
    asked = Attributes(user=ALICE, verb="get", resource="pods", namespace="a")
    assert RoleBased(held).decide(asked).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "lost" not found, '
        'role.rbac.authorization.k8s.io "gone" not found]'
    )


NAMES = ("a", "b", "")
drawn_rules = st.lists(
    st.tuples(st.sampled_from(("get", "list", "*")), st.sampled_from(("", "a", "a b"))), max_size=3
)  # fmt: skip


@given(st.lists(drawn_rules, min_size=1, max_size=3), st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
def test_an_answer_that_is_remembered_is_the_answer(roles: list[list[tuple[str, str]]], asked: list[str]) -> None:
    held = RolePolicy()
    for number, drawn in enumerate(roles):
        name = f"r{number}"
        held.put("Role", placed(role(name, *(rule(verb, "", "pods", names) for verb, names in drawn)), "a"))
        held.put("RoleBinding", placed(binding(name, name, person("alice")), "a"))
    remembering = RoleBased(held)
    for name in asked:
        question = Attributes(user=ALICE, verb="get", resource="pods", namespace="a", name=name)
        assert remembering.decide(question) == RoleBased(held).decide(question)
        expected = any(
            v in ("get", "*") and (not names or name in names.split()) for each in roles for v, names in each
        )
        assert (remembering.decide(question).decision is Decision.ALLOW) is expected
