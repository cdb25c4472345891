"""The roles that are there from the start: written, kept complete, and no wider than they should be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import PolicyRule
from drakit.apiserver.auth.authorization import Attributes
from drakit.apiserver.auth.rbac.rules import compile_rule
from drakit.apiserver.auth.roles.bootstrap import completed, default_objects
from drakit.apiserver.serving.bootstrap_roles import gathered, same_rules
from drakit.base.gates import FeatureGates
from tests.apiserver.auth.people import ADMIN, ALICE, RBAC, Plain, binding, guarded, person, role, rule
from tests.apiserver.calls import CLAIMS, on_loop

RECORDED = Path(__file__).parents[2] / "conformance" / "data" / "api" / "authz.jsonl.gz"
OBJECTS = list(default_objects(FeatureGates.all_on()))
ROLES = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == "ClusterRole"}


def test_recorded_roles_are_ours_to_the_letter() -> None:
    compared = 0
    for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
        for answer in json.loads(line)["expect"]:
            if answer["code"] == 200 and isinstance(answer["body"], dict) and answer["body"]["kind"] == "ClusterRole":
                body = answer["body"]
                ours = ROLES[body["metadata"]["name"]]
                assert ours["rules"] == body["rules"]
                assert ours["metadata"]["labels"] == body["metadata"]["labels"]
                assert ours["metadata"]["annotations"] == body["metadata"]["annotations"]
                compared += 1
    assert compared >= 4


def test_no_role_but_the_controller_s_and_the_admin_s_touches_pool_status_requests() -> None:
    able = set()
    for name, each in ROLES.items():
        for verb in ("create", "get", "update", "patch", "delete"):
            asked = Attributes(user=ALICE, verb=verb, group="resource.k8s.io", resource="resourcepoolstatusrequests")
            if any(compile_rule(from_plain(PolicyRule, rule)).allows(asked) for rule in each["rules"] or ()):
                able.add(name)
    assert able == {
        "cluster-admin",
        "system:controller:resourcepoolstatusrequest-controller",
        # These two work on whatever there is, and make nothing.
        "system:controller:generic-garbage-collector",
        "system:controller:namespace-controller",
    }


def test_roles_of_features_that_are_off_are_not_there() -> None:
    names = {each["metadata"]["name"] for each in default_objects(FeatureGates.defaults())}
    assert "system:controller:resourcepoolstatusrequest-controller" not in names
    assert "system:controller:device-taint-eviction-controller" in names


@on_loop
async def test_what_somebody_took_out_of_a_default_role_comes_back_and_what_was_added_stays() -> None:
    wanted = ROLES["system:basic-user"]
    found: Plain = {**wanted, "rules": [wanted["rules"][0], rule("get", "", "pods")]}
    made = completed(wanted, found)
    assert made is not None
    assert made["rules"] == [wanted["rules"][0], rule("get", "", "pods"), wanted["rules"][1]]
    assert completed(wanted, made) is None


def test_a_default_role_that_is_marked_is_left_alone() -> None:
    wanted = ROLES["system:basic-user"]
    annotations = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    assert (
        completed(wanted, {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}, "rules": []})
        is None
    )


def test_a_binding_gets_its_subjects_back() -> None:
    wanted = next(each for each in OBJECTS if each["kind"] == "ClusterRoleBinding")
    made = completed(wanted, {**wanted, "subjects": [person("extra")]})
    assert made is not None
    assert made["subjects"] == [person("extra"), *wanted["subjects"]]


@on_loop
async def test_aggregated_roles_follow_what_they_select() -> None:
    async with guarded(aggregate_roles=True) as api:
        view = await api.get(f"{RBAC}/clusterroles/view", user=ADMIN)
        claims = {"verbs": ["get", "list", "watch"], "apiGroups": ["resource.k8s.io"]}
        resources = ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]
        assert {**claims, "resources": resources} in view.body["rules"]
        place = f"{RBAC}/namespaces/default/rolebindings"
        await api.create(place, binding("b", "admin", person("alice"), role_kind="ClusterRole"), user=ADMIN)
        assert (await api.get(CLAIMS, user=ALICE)).code == 200
        label = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
        more = role("more", rule("get", "example.com", "things"), kind="ClusterRole", metadata=label)
        await api.create(f"{RBAC}/clusterroles", more, user=ADMIN)
        for _ in range(50):  # turns of the loop, not time
            found = await api.get(f"{RBAC}/clusterroles/admin", user=ADMIN)
            if rule("get", "example.com", "things") in found.body["rules"]:
                break
            await api.server.context.clock.sleep(0)
        else:
            raise AssertionError("the rule did not arrive at admin, by way of edit")


@on_loop
async def test_without_a_controller_aggregated_roles_hold_nothing() -> None:
    async with guarded() as api:
        assert not (await api.get(f"{RBAC}/clusterroles/view", user=ADMIN)).body.get("rules")


def labelled(name: str, labels: list[str], selected: str | None, rules: list[str]) -> Plain:
    made = role(name, *(rule(verb, "", "pods") for verb in rules), kind="ClusterRole")
    made["metadata"]["labels"] = dict.fromkeys(labels, "true")
    if selected:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {selected: "true"}}]}
    return made


letters = st.sampled_from("abc")


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.lists(letters, max_size=2), st.none() | letters, st.lists(letters, max_size=2)), max_size=6)
)
def test_gathering_comes_to_rest(drawn: list[tuple[list[str], str | None, list[str]]]) -> None:
    roles: list[dict[str, Any]] = [labelled(f"r{place}", *each) for place, each in enumerate(drawn)]
    for each in roles:
        if each.get("aggregationRule"):
            each["rules"] = []
    for _ in range(len(roles) + 2):
        before = json.dumps(roles)
        for each in roles:
            rules = gathered(each, roles)
            if rules is not None and not same_rules(rules, each["rules"]):
                each["rules"] = rules
        if json.dumps(roles) == before:
            return
    raise AssertionError("roles that select each other never agree")
