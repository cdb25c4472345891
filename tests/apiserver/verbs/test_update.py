"""Replacing and patching objects: versions, generations, what stays the server's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from drakit.apiserver import build_server
from drakit.base.clock import FakeClock
from drakit.store import SQLiteStore
from tests.apiserver.calls import CLAIMS, CLASSES, MERGE, NAMESPACES, PODS, Api, namespace, on_loop, serving
from tests.builders.documents import claim_document, class_document, pod_document

STALE = "the object has been modified; please apply your changes to the latest version and try again"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"


async def made(api: Api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await api.create(path, body)
    assert answer.code == 201, answer.body
    found: dict[str, Any] = answer.body
    return found


@on_loop
async def test_an_update_of_an_old_version_is_a_conflict_and_one_without_a_version_is_not() -> None:
    async with serving() as api:
        old = await made(api, CLASSES, class_document("gpu", "true"))
        assert (await api.update(f"{CLASSES}/gpu", class_document("gpu", "true", labels={"a": "b"}))).code == 200
        stale = await api.update(f"{CLASSES}/gpu", old)
        assert (stale.code, stale.body["reason"]) == (409, "Conflict")
        assert stale.message == f'Operation cannot be fulfilled on deviceclasses.resource.k8s.io "gpu": {STALE}'


@on_loop
async def test_the_generation_counts_changes_of_the_spec_alone() -> None:
    async with serving() as api:
        await made(api, CLASSES, class_document("gpu", "true"))
        labelled = await api.patch(f"{CLASSES}/gpu", {"metadata": {"labels": {"a": "b"}}})
        changed = await api.patch(f"{CLASSES}/gpu", {"spec": {"selectors": []}})
        assert (labelled.body["metadata"]["generation"], changed.body["metadata"]["generation"]) == (1, 2)


@on_loop
async def test_a_write_that_changes_nothing_writes_nothing() -> None:
    async with serving() as api:
        first = await made(api, CLASSES, class_document("gpu", "true"))
        api.clock.advance(60)
        same = await api.update(f"{CLASSES}/gpu", class_document("gpu", "true"))
        empty = await api.patch(f"{CLASSES}/gpu", {})
        assert same.version == empty.version == first["metadata"]["resourceVersion"]


@on_loop
async def test_spec_and_status_have_a_door_each() -> None:
    device = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    status = {"allocation": {"devices": {"results": [device]}}}
    async with serving() as api:
        await made(api, CLAIMS, claim_document("a"))
        ignored = await api.patch(f"{CLAIMS}/a", {"status": status})
        assert ignored.body["status"] == {}
        change = {"metadata": {"labels": {"a": "b"}}, "status": status}
        written = await api.patch(f"{CLAIMS}/a/status", change)
        assert written.code == 200
        assert written.body["status"]["allocation"]["devices"]["results"][0]["device"] == "d"
        assert "labels" not in written.body["metadata"]
        assert (await api.get(f"{CLAIMS}/a/status")).body == written.body


@on_loop
async def test_what_the_server_sets_cannot_be_changed() -> None:
    async with serving() as api:
        old = await made(api, CLASSES, class_document("gpu", "true"))
        changed = {**old, "metadata": {**old["metadata"], "creationTimestamp": None, "generation": 7, "uid": ""}}
        new = (await api.update(f"{CLASSES}/gpu", changed)).body["metadata"]
        assert {key: new[key] for key in ("creationTimestamp", "generation", "uid")} == {
            key: old["metadata"][key] for key in ("creationTimestamp", "generation", "uid")
        }
        wrong = await api.patch(f"{CLASSES}/gpu", {"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}})
        assert (wrong.code, wrong.body["details"]["causes"][0]["field"]) == (422, "metadata.uid")


@on_loop
async def test_an_update_for_another_uid_is_a_conflict() -> None:
    async with serving() as api:
        await made(api, CLASSES, class_document("gpu", "true"))
        other = class_document("gpu", "true", uid="11111111-1111-4111-8111-111111111111")
        assert (await api.update(f"{CLASSES}/gpu", other)).code == 409


@on_loop
async def test_some_kinds_are_made_by_an_update_and_some_need_a_version() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    async with serving() as api:
        lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
        first = await api.update(f"{leases}/l", lease)
        assert first.code == 201
        blind = await api.update(f"{leases}/l", lease)
        assert (blind.code, blind.body["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
        assert (await api.update(f"{CLAIMS}/nope", claim_document("nope"))).code == 404


@on_loop
async def test_the_name_in_the_body_is_the_name_in_the_path() -> None:
    async with serving() as api:
        await made(api, CLASSES, class_document("gpu", "true"))
        other = await api.update(f"{CLASSES}/gpu", class_document("other", "true"))
        assert (other.code, other.message) == (
            400, "the name of the object (other) does not match the name on the URL (gpu)"
        )  # fmt: skip
        assert (await api.update(f"{CLASSES}/gpu", {"spec": {}})).code == 400


@on_loop
async def test_a_patch_keeps_to_the_version_of_its_path() -> None:
    beta = CLAIMS.replace("/v1/", "/v1beta1/")
    async with serving() as api:
        await made(api, CLAIMS, claim_document("a"))
        patched = await api.patch(f"{beta}/a", [{"op": "test", "path": "/spec/devices/requests/0/count", "value": 1}],
                                  content="application/json-patch+json")  # fmt: skip
        assert patched.code == 200
        assert (await api.patch(f"{CLAIMS}/a", {}, content="application/json")).code == 415


@on_loop
async def test_a_patch_may_name_the_version_it_changes() -> None:
    async with serving() as api:
        old = await made(api, CLASSES, class_document("gpu", "true"))
        version = {"resourceVersion": old["metadata"]["resourceVersion"]}
        assert (await api.patch(f"{CLASSES}/gpu", {"metadata": {**version, "labels": {"a": "1"}}})).code == 200
        assert (await api.patch(f"{CLASSES}/gpu", {"metadata": {**version, "labels": {"a": "2"}}})).code == 409


@on_loop
async def test_apply_makes_owns_conflicts_and_forces() -> None:
    apply = "application/apply-patch+yaml"
    async with serving() as api:
        body = class_document("gpu", "true", labels={"a": "1"})
        first = await api.patch(f"{CLASSES}/gpu", body, content=apply, fieldManager="one")
        assert first.code == 201
        other = class_document("gpu", "true", labels={"a": "2"})
        refused = await api.patch(f"{CLASSES}/gpu", other, content=apply, fieldManager="two")
        assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (409, ".metadata.labels.a")
        forced = await api.patch(f"{CLASSES}/gpu", other, content=apply, fieldManager="two", force="true")
        assert forced.body["metadata"]["labels"] == {"a": "2"}
        nameless = await api.patch(f"{CLASSES}/gpu", body, content=apply)
        assert (nameless.code, nameless.body["details"]["kind"]) == (422, "PatchOptions")
        misplaced = await api.patch(f"{CLASSES}/gpu", {}, content=MERGE, force="true")
        assert misplaced.code == 422


@on_loop
async def test_a_strict_patch_with_an_unknown_field_is_invalid() -> None:
    async with serving() as api:
        await made(api, CLASSES, class_document("gpu", "true"))
        strict = await api.patch(f"{CLASSES}/gpu", {"spec": {"zzz": 1}}, fieldValidation="Strict")
        assert (strict.code, strict.body["details"]["causes"][0]["field"]) == (422, "patch")
        warned = await api.patch(f"{CLASSES}/gpu", {"spec": {"zzz": 1}})
        assert warned.response.warnings == ('unknown field "spec.zzz"',)


@on_loop
async def test_a_taint_with_another_effect_counts_from_now() -> None:
    rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "a.example.com/b", "effect": "NoSchedule"}}}
    async with serving() as api:
        first = await made(api, RULES, rule)
        assert first["spec"]["taint"]["timeAdded"] == "2026-01-01T00:00:00Z"
        api.clock.advance(60)
        changed = await api.patch(f"{RULES}/r", {"spec": {"taint": {"effect": "NoExecute"}}})
        assert changed.body["spec"]["taint"]["timeAdded"] == "2026-01-01T00:01:00Z"


@on_loop
async def test_parameters_sent_with_spaces_count_as_changed_by_the_first_patch() -> None:
    opaque = {"driver": "gpu.example.com", "parameters": {"a": 1, "b": 2}}
    sent = class_document("gpu", "true")
    sent["spec"]["config"] = [{"opaque": opaque}]
    async with serving() as api:
        await made(api, CLASSES, sent)  # json.dumps puts spaces
        first = await api.patch(f"{CLASSES}/gpu", {"metadata": {"labels": {"a": "1"}}})
        second = await api.patch(f"{CLASSES}/gpu", {"metadata": {"labels": {"a": "2"}}})
        assert (first.body["metadata"]["generation"], second.body["metadata"]["generation"]) == (2, 2)
        assert first.body["spec"]["config"] == [{"opaque": opaque}]


@on_loop
async def test_a_pod_status_leaves_the_spec_alone() -> None:
    async with serving() as api:
        await made(api, PODS, pod_document("p"))
        change = {"spec": {"nodeName": "x"}, "status": {"phase": "Running"}}
        running = await api.patch(f"{PODS}/p/status", change)
        assert running.body["status"] == {"phase": "Running", "qosClass": "BestEffort"}
        assert "nodeName" not in running.body["spec"]


@on_loop
async def test_a_namespace_keeps_its_finalizers_except_through_finalize() -> None:
    async with serving() as api:
        await made(api, NAMESPACES, namespace("team"))
        put = await api.update(f"{NAMESPACES}/team", {**namespace("team"), "spec": {"finalizers": []}})
        assert put.body["spec"]["finalizers"] == ["kubernetes"]
        final = await api.update(f"{NAMESPACES}/team/finalize", {**namespace("team"), "spec": {"finalizers": []}})
        assert "finalizers" not in final.body["spec"]


@on_loop
async def test_writers_at_the_same_time_that_name_no_version_all_succeed(tmp_path: Path) -> None:
    async with await SQLiteStore.open(tmp_path / "store.db") as store:
        api = Api(await build_server(store), FakeClock())
        await made(api, CLASSES, class_document("gpu", "true"))
        changes = [{"metadata": {"labels": {f"l{number}": "x"}}} for number in range(30)]
        answers = await asyncio.gather(*(api.patch(f"{CLASSES}/gpu", change) for change in changes))
        assert {answer.code for answer in answers} == {200}
        assert len((await api.get(f"{CLASSES}/gpu")).body["metadata"]["labels"]) == 30
        gone = await asyncio.gather(*(api.delete(f"{CLASSES}/gpu") for _ in range(3)))
        assert sorted(answer.code for answer in gone) == [200, 404, 404]
