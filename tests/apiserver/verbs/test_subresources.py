"""Binding, eviction, resize, ephemeral containers, scale, tokens, reviews, events of two groups."""

from __future__ import annotations

from datetime import timedelta

import pytest

from drakit.api.exchange import User
from drakit.apiserver.auth.authentication import AUTHENTICATED
from tests.apiserver.calls import MERGE, PODS, Api, on_loop, serving
from tests.builders.documents import pod_document

BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "p"},
    "target": {"kind": "Node", "name": "node-a"},
}
SETS = "/apis/apps/v1/namespaces/default/replicasets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
JSON_PATCH = "application/json-patch+json"


@on_loop
async def test_a_bound_pod_has_a_node_and_is_scheduled() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p"))
        done = await api.create(f"{PODS}/p/binding", BINDING)
        assert (done.code, done.body["status"]) == (201, "Success")
        bound = (await api.get(f"{PODS}/p")).body
        assert bound["spec"]["nodeName"] == "node-a"
        assert bound["metadata"]["generation"] == 1
        assert bound["status"]["conditions"] == [
            {"type": "PodScheduled", "status": "True", "lastProbeTime": None,
             "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ]  # fmt: skip
        again = await api.create(f"{PODS}/p/binding", BINDING)
        assert again.code == 409
        assert 'already assigned to node "node-a"' in again.message


@on_loop
async def test_only_the_pod_that_was_meant_is_bound_and_only_to_a_node() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p", {"schedulingGates": [{"name": "wait"}]}))
        gated = await api.create(f"{PODS}/p/binding", BINDING)
        assert "schedulingGates" in gated.message
        await api.create(PODS, pod_document("q"))
        other = {**BINDING, "metadata": {"name": "q", "uid": "someone-else"}}
        assert (await api.create(f"{PODS}/q/binding", other)).code == 409
        named = {**BINDING, "metadata": {"name": "q"}}
        assert (await api.create(f"{PODS}/q/binding", {**named, "target": {"kind": "Pod", "name": "x"}})).code == 422
        assert (await api.create(f"{PODS}/q/binding", {**named, "target": {}})).code == 422
        assert (await api.create(f"{PODS}/none/binding", {**BINDING, "metadata": None})).code == 404
        misnamed = await api.create(f"{PODS}/q/binding", BINDING)
        assert (misnamed.code, misnamed.message.partition(":")[0]) == (
            400, "name in URL does not match name in Binding object",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("place", "method", "body"),
    [
        (f"{PODS}/p/binding", "POST", {"target": {"name": 7}}),
        (f"{PODS}/p/binding", "POST", {"target": {"name": "a"}, "metadata": {"labels": {"a": {"b": 1}}}}),
        (f"{PODS}/p/binding", "POST", {"target": "a"}),
        (f"{PODS}/p/binding", "POST", {"kind": "Pod", "target": {"name": "a"}}),
        (f"{PODS}/p/binding", "POST", []),
        (f"{PODS}/p/eviction", "POST", {"metadata": "p"}),
        (f"{PODS}/p/eviction", "POST", {"deleteOptions": []}),
        (f"{SETS}/web/scale", "PUT", {"metadata": "web"}),
        (f"{SETS}/web/scale", "PUT", {"metadata": {"resourceVersion": 7}}),
        (f"{SETS}/web/scale", "PUT", {"spec": []}),
        (f"{SETS}/web/scale", "PUT", {"spec": {"replicas": True}}),
        (f"{SETS}/web/scale", "PATCH", {"metadata": -1}),
    ],
)
def test_a_body_of_another_form_is_a_bad_request_and_changes_nothing(place: str, method: str, body: object) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            await api.create(PODS, pod_document("p"))
            await replica_set(api)
            target = place.rpartition("/")[0]
            before = (await api.get(target)).body
            content = MERGE if method == "PATCH" else "application/json"
            assert (await api.send(method, place, body, content=content)).code == 400
            assert (await api.get(target)).body == before

    run()


@on_loop
async def test_an_eviction_deletes() -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    async with serving() as api:
        await api.create(PODS, pod_document("p", {"nodeName": "node-a"}))
        options = {"deleteOptions": {"gracePeriodSeconds": 3}}
        assert (await api.create(f"{PODS}/p/eviction", {**eviction, **options})).code == 201
        assert (await api.get(f"{PODS}/p")).body["metadata"]["deletionGracePeriodSeconds"] == 3
        assert (await api.create(f"{PODS}/q/eviction", eviction)).code == 400


@on_loop
async def test_a_resize_changes_what_containers_ask_for_and_nothing_else() -> None:
    async with serving() as api:
        small = pod_document("p")
        small["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        await api.create(PODS, small)
        change = {
            "metadata": {"labels": {"no": "no"}},
            "spec": {
                "nodeName": "no",
                "containers": [{"name": "ctr", "image": "no", "resources": {"requests": {"cpu": "2"}}}],
            },
        }
        resized = await api.patch(f"{PODS}/p/resize", change, content="application/strategic-merge-patch+json")
        assert resized.code == 200, resized.body
        container = resized.body["spec"]["containers"][0]
        assert container["resources"] == {"requests": {"cpu": "2"}}
        assert container["image"] == "img"
        assert "labels" not in resized.body["metadata"]
        assert resized.body["metadata"]["generation"] == 2
        limits = {"cpu": "2", "memory": "1Gi"}
        held = {"spec": {"containers": [{"name": "ctr", "resources": {"limits": limits, "requests": limits}}]}}
        refused = await api.patch(f"{PODS}/p/resize", held, content="application/strategic-merge-patch+json")
        assert refused.code == 422
        assert "QOS Class may not change" in refused.message


@on_loop
async def test_ephemeral_containers_are_added_through_their_own_door() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p"))
        change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        added = await api.patch(f"{PODS}/p/ephemeralcontainers", change)
        assert added.code == 200, added.body
        assert added.body["spec"]["ephemeralContainers"][0]["name"] == "debug"
        assert len(added.body["spec"]["containers"]) == 1
        gone = await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": None}})
        assert gone.code == 422
        assert "may not be removed" in gone.message


@on_loop
async def test_logs_of_a_pod_need_a_node() -> None:
    async with serving() as api:
        assert (await api.get(f"{PODS}/p/log")).code == 404
        await api.create(PODS, pod_document("p"))
        assert (await api.get(f"{PODS}/p/log")).code == 503


async def replica_set(api: Api) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod_document("x")["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    made = await api.create(SETS, {"metadata": {"name": "web"}, "spec": spec})
    assert made.code == 201, made.body


@on_loop
async def test_a_scale_is_read_and_written_apart_from_its_replica_set() -> None:
    async with serving() as api:
        await replica_set(api)
        scale = (await api.get(f"{SETS}/web/scale")).body
        assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 2, "app=web")
        written = await api.update(f"{SETS}/web/scale", {**scale, "spec": {"replicas": 5}})
        assert written.body["spec"] == {"replicas": 5}
        stale = await api.update(f"{SETS}/web/scale", {**scale, "spec": {"replicas": 6}})
        assert stale.code == 409
        await api.patch(f"{SETS}/web/scale", {"spec": {"replicas": 0}})
        found = (await api.get(f"{SETS}/web")).body
        assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (0, 3)
        assert (await api.patch(f"{SETS}/web/scale", {"spec": {"replicas": -1}})).code == 422


@on_loop
async def test_a_token_stands_for_its_service_account_until_it_ends() -> None:
    async with serving() as api:
        account = (await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})).body["metadata"]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        issued = await api.create(f"{ACCOUNTS}/robot/token", request)
        token = issued.body["status"]["token"]
        assert issued.body["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
        headers = {"authorization": f"Bearer {token}"}
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        who = (await api.create(review, {}, headers=headers)).body["status"]["userInfo"]
        assert (who["username"], who["uid"]) == ("system:serviceaccount:default:robot", account["uid"])
        assert "system:serviceaccounts:default" in who["groups"]
        api.clock.advance(timedelta(minutes=10).total_seconds())
        assert (await api.create(review, {}, headers=headers)).code == 401


@on_loop
async def test_a_token_for_somebody_else_or_by_somebody_else_is_none() -> None:
    async with serving() as api, serving() as other:
        for each in (api, other):
            await each.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        elsewhere = {"spec": {"audiences": ["vault"]}}
        foreign = (await api.create(f"{ACCOUNTS}/robot/token", elsewhere)).body["status"]["token"]
        forged = (await other.create(f"{ACCOUNTS}/robot/token", {"spec": {}})).body["status"]["token"]
        for token in (foreign, forged, "x.y.z"):
            headers = {"authorization": f"Bearer {token}"}
            assert (await api.get(PODS, headers=headers)).code == 401
            review = {"spec": {"token": token}}
            told = await api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
            assert not told.body["status"].get("authenticated")


@on_loop
async def test_access_reviews_ask_the_authorizer() -> None:
    path = "/apis/authorization.k8s.io/v1"
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    async with serving() as api:
        mine = await api.create(f"{path}/selfsubjectaccessreviews", {"spec": attributes})
        assert (mine.code, mine.body["status"]) == (201, {"allowed": True})
        theirs = await api.create(f"{path}/subjectaccessreviews", {"spec": {**attributes, "user": "x"}})
        assert theirs.body["status"]["allowed"] is True
        local = f"{path}/namespaces/other/localsubjectaccessreviews"
        assert (await api.create(local, {"spec": {**attributes, "user": "x"}})).code == 422
        rules = await api.create(f"{path}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
        assert rules.body["status"]["resourceRules"][0]["verbs"] == ["*"]


@on_loop
async def test_who_am_i_tells_name_groups_and_extras() -> None:
    user = User(name="ann", uid="7", groups=("dev",), extra={"scope": ("a",)})
    async with serving() as api:
        answer = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user=user)
        assert answer.body["status"]["userInfo"] == {
            "username": "ann", "uid": "7", "groups": ["dev", AUTHENTICATED], "extra": {"scope": ["a"]}
        }  # fmt: skip


@on_loop
async def test_an_event_of_one_group_is_read_in_the_other() -> None:
    new, core = "/apis/events.k8s.io/v1/namespaces/default/events", "/api/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "hello",
        "reason": "Scheduled", "action": "Binding", "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "drakit.example.com/scheduler", "reportingInstance": "one",
    }  # fmt: skip
    async with serving() as api:
        assert (await api.create(new, event)).code == 201
        (found,) = (await api.get(core, fieldSelector="involvedObject.name=p,reason=Scheduled")).body["items"]
        assert (found["message"], found["involvedObject"]["kind"]) == ("hello", "Pod")
        assert found["reportingComponent"] == "drakit.example.com/scheduler"
        await api.patch(f"{core}/e", {"count": 2})
        back = (await api.get(new, fieldSelector="regarding.name=p")).body["items"][0]
        assert (back["note"], back["deprecatedCount"]) == ("hello", 2)
