"""Whatever is sent, the answer is about what was sent: never 500, and never a right that was not there."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.auth.people import (
    ADMIN,
    ALICE,
    GROUP,
    RBAC,
    REVIEWS,
    Plain,
    binding,
    grant,
    group,
    guarded,
    person,
    role,
    rule,
)
from tests.apiserver.calls import on_loop

NAMES = """
rules verbs apiGroups resources resourceNames nonResourceURLs roleRef kind name namespace subjects apiGroup
aggregationRule clusterRoleSelectors matchLabels matchExpressions key operator values spec token audiences uid
expirationSeconds boundObjectRef user groups extra resourceAttributes fieldSelector requirements rawSelector verb
path nonResourceAttributes metadata labels annotations
"""
texts = st.sampled_from(("", "*", "a", "pods", "../x", "\u0000"))
scalars = st.none() | st.booleans() | st.integers(-5, 1 << 40) | texts
names = st.sampled_from(tuple(NAMES.split()))
bodies = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
PLACES = (
    (f"{RBAC}/namespaces/default/roles", "Role"),
    (f"{RBAC}/namespaces/default/rolebindings", "RoleBinding"),
    (f"{RBAC}/clusterroles", "ClusterRole"),
    (f"{RBAC}/clusterrolebindings", "ClusterRoleBinding"),
    (f"{REVIEWS}/subjectaccessreviews", "SubjectAccessReview"),
    (f"{REVIEWS}/selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    (f"{REVIEWS}/selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    (f"{REVIEWS}/namespaces/default/localsubjectaccessreviews", "LocalSubjectAccessReview"),
    ("/apis/authentication.k8s.io/v1/tokenreviews", "TokenReview"),
    ("/api/v1/namespaces/default/serviceaccounts/bot/token", "TokenRequest"),
)
Sent = list[tuple[tuple[str, str], Plain]]
patient = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@patient
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.dictionaries(names, bodies, max_size=5)), min_size=1, max_size=15
    )
)  # fmt: skip
def test_no_body_breaks_the_server(sent: Sent) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            await api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "bot"}}, user=ADMIN)
            for number, ((path, kind), body) in enumerate(sent):
                whole = {**body, "kind": kind}
                if path.startswith(RBAC):
                    whole["metadata"] = {"name": f"n{number}"}
                answer = await api.create(path, whole, user=ADMIN)
                assert answer.code < 500, (path, whole, answer.body)

    run()


some_rules = st.lists(
    st.sampled_from(
        (
            rule("*", "*", "*"), rule("get", "", "pods"), rule("get list", "", "secrets"), rule("*", GROUP, "*"),
            rule("bind", GROUP, "clusterroles"), rule("escalate", GROUP, "clusterroles"),
            rule("impersonate", "", "users groups"),
        )
    ),
    max_size=2,
)  # fmt: skip
selectors: st.SearchStrategy[Plain | None] = st.sampled_from(
    (None, {"clusterRoleSelectors": [{}]}, {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
)
roles = st.builds(
    lambda name, rules, selector: role(
        name, *rules, kind="ClusterRole", **({"aggregationRule": selector} if selector else {})
    ),
    st.sampled_from(("one", "two", "mine", "view")), some_rules, selectors,
)  # fmt: skip
bindings = st.builds(
    lambda name, of: binding(
        name, of, person("alice"), group("dev"), kind="ClusterRoleBinding", role_kind="ClusterRole"
    ),
    st.sampled_from(("one", "two", "cluster-admin", "alice-rights")),
    st.sampled_from(("one", "two", "mine", "cluster-admin", "edit", "system:kube-controller-manager")),
)  # fmt: skip


@patient
@given(st.lists(st.tuples(st.sampled_from(("POST", "PUT", "PATCH")), roles | bindings), max_size=12))
def test_nobody_climbs_by_writing_roles_and_bindings(steps: list[tuple[str, dict[str, Any]]]) -> None:
    @on_loop
    async def run() -> None:
        async with guarded(aggregate_roles=True) as api:
            all_of_them = "roles rolebindings clusterroles clusterrolebindings"
            await grant(api, "alice", rule("create get update patch delete", GROUP, all_of_them), namespace="")
            for method, document in steps:
                path = f"{RBAC}/{document['kind'].lower()}s"
                place = path if method == "POST" else f"{path}/{document['metadata']['name']}"
                content = "application/merge-patch+json" if method == "PATCH" else "application/json"
                assert (await api.send(method, place, document, user=ALICE, content=content)).code < 500
            assert (await api.get("/api/v1/secrets", user=ALICE)).code == 403
            assert (await api.get("/api/v1/pods", user=ALICE)).code == 403
            assert (await api.get("/healthz", user=ALICE, headers={"impersonate-user": "root"})).code == 403

    run()
