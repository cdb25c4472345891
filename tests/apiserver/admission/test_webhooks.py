"""Webhooks that are asked over a real socket: what they see, what they may say, and what happens when they fail."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.admission.criteria.registrations import ServiceReference
from drakit.apiserver.admission.standard import Caller
from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.kinds.served import known_kind
from tests.apiserver.admission.hooks import ALLOW, labelling, listening, ok, patch, register, webhook
from tests.apiserver.admission.objects import PRIORITIES, VALIDATING, disabled
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, on_loop, serving
from tests.builders.documents import Plain, claim_document, class_document, pod_document

CONFIGURATION = known_kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
POD_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def impatient(seconds: float = 0.05, **options: Any) -> Settings:
    """A server whose webhooks have hardly any time, whatever their configuration says."""
    caller = Caller(deadline=lambda _: asyncio.timeout(seconds), **options)
    return Settings(random=Random(7), caller=caller)


def configured(parameters: Plain) -> Plain:
    made = claim_document("a")
    opaque = {"driver": "gpu.example.com", "parameters": parameters}
    made["spec"]["devices"]["config"] = [{"opaque": opaque}]
    return made


def check_parameters(request: Plain) -> Plain:
    """What a driver's webhook does: it alone knows what its parameters mean."""
    for config in request["object"]["spec"]["devices"].get("config") or ():
        given = config["opaque"]["parameters"]
        if given.get("sharing") not in ("exclusive", "timeSliced"):
            message = f"unknown sharing {given.get('sharing')!r}"
            return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": message}}
    return {"allowed": True, "warnings": ["checked by the driver"], "auditAnnotations": {"sharing": "ok"}}


@on_loop
async def test_a_driver_checks_its_opaque_parameters() -> None:
    async with serving() as api, listening(check_parameters) as hook:
        await register(api, webhook(hook.url))
        good = await api.create(CLAIMS, configured({"kind": "GpuConfig", "sharing": "timeSliced"}))
        assert (good.code, good.response.warnings) == (201, ("checked by the driver",))
        bad = await api.create(CLAIMS, configured({"kind": "GpuConfig", "sharing": "often"}))
        assert (bad.code, bad.body["reason"]) == (422, "Invalid")
        assert bad.message == ("admission webhook \"check.example.com\" denied the request: unknown sharing 'often'")


def test_what_a_webhook_wants_audited_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    @on_loop
    async def run() -> None:
        with AuditLog(log) as audit:
            async with serving(Settings(audit=audit)) as api, listening(check_parameters) as hook:
                await register(api, webhook(hook.url))
                await api.create(CLAIMS, configured({"sharing": "exclusive"}))

    run()
    assert json.loads(log.read_text().splitlines()[-1])["annotations"]["check.example.com/sharing"] == "ok"


@on_loop
async def test_a_review_says_who_does_what_to_what() -> None:
    async with serving() as api, listening(lambda _: ALLOW) as hook:
        await register(api, webhook(hook.url, timeoutSeconds=7))
        user = User(name="alice", uid="u1", groups=("dev",), extra={"node": ("n1",)})
        await api.create(CLAIMS, claim_document("a"), user=user)
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}})
        await api.delete(f"{CLAIMS}/a")
        created, updated, deleted = hook.requests
        assert hook.lines[0] == "POST /check?timeout=7s HTTP/1.1"
        assert created["uid"]
        assert created["kind"] == {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
        assert created["resource"] == {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}
        assert created["userInfo"] == {
            "username": "alice", "uid": "u1", "groups": ["dev", "system:authenticated"], "extra": {"node": ["n1"]}
        }  # fmt: skip
        assert (created["operation"], created["namespace"], created["name"]) == ("CREATE", "default", "a")
        assert (created["dryRun"], created["oldObject"]) == (False, None)
        assert created["object"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
        assert (updated["operation"], updated["object"]["metadata"]["labels"]) == ("UPDATE", {"x": "y"})
        assert "labels" not in updated["oldObject"]["metadata"]
        assert (deleted["operation"], deleted["object"]) == ("DELETE", None)
        assert deleted["oldObject"]["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (None, 400, "denied the request without explanation"),
        ({"reason": "Because"}, 400, "denied the request: Because"),
        ({"code": 200, "message": "fine"}, 400, "denied the request: fine"),
        ({"code": 403, "message": "no"}, 403, "denied the request: no"),
        ({"code": 99999, "message": "no"}, 400, "denied the request: no"),
    ],
)
@on_loop
async def test_a_refusal_is_never_a_success(status: Plain | None, code: int, said: str) -> None:
    refused = {"allowed": False, **({"status": status} if status else {})}
    async with serving() as api, listening(lambda _: refused) as hook:
        await register(api, webhook(hook.url))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert (answer.code, answer.message) == (code, f'admission webhook "check.example.com" {said}')
        assert answer.body["status"] == "Failure"


def cut_off(_: Plain) -> bytes:
    return b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"kind": "Admission'


def garbage(_: Plain) -> bytes:
    return b"\x00\x01 this is no HTTP\r\n\r\n"


def no_json(_: Plain) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def deep(_: Plain) -> bytes:
    body = b'{"response":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def too_much(_: Plain) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + b"x" * 3000


def endless_head(_: Plain) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %b\r\n" % (index, b"y" * 100) for index in range(100))


def wrong_code(_: Plain) -> bytes:
    return b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"


def moved(_: Plain) -> bytes:
    return b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"


def other_uid(_: Plain) -> Plain:
    return {"allowed": True, "uid": "other"}


def no_response(_: Plain) -> bytes:
    return ok({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})


def other_kind(request: Plain) -> bytes:
    return ok({"kind": "Pod", "apiVersion": "v1", "response": {"uid": request["uid"], "allowed": True}})


def patching(_: Plain) -> Plain:
    return patch({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})


def silent(_: Plain) -> None:
    return None


def dead(_: Plain) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("respond", "said"),
    [
        (cut_off, "unexpected EOF"),
        (dead, "unexpected EOF"),
        (garbage, "malformed HTTP response"),
        (no_json, "received invalid webhook response: couldn't read the answer"),
        (deep, "couldn't read the answer"),
        (too_much, "the answer is longer than 2000 bytes"),
        (endless_head, "the answer is longer than 2000 bytes"),
        (wrong_code, "the server answered with code 500"),
        (moved, "the server answered with code 302"),
        (other_uid, 'received invalid webhook response: expected response.uid="'),
        (no_response, "webhook response was absent"),
        (other_kind, "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod"),
        (patching, "validating webhook may not return response.patch"),
        (silent, "context deadline exceeded"),
    ],
)
@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@on_loop
async def test_a_webhook_that_fails_refuses_or_is_passed_over(respond: Any, said: str, failure_policy: str) -> None:
    limit = 1_000_000 if respond is deep else 2000
    seconds = 0.05 if respond is silent else 30
    async with serving(impatient(seconds, max_answer=limit)) as api, listening(respond) as hook:
        await register(api, webhook(hook.url, failurePolicy=failure_policy))
        answer = await api.create(CLAIMS, claim_document("a"))
        if failure_policy == "Ignore":
            assert answer.code == 201, answer.body
            return
        assert (answer.code, answer.body["reason"]) == (500, "InternalError")
        assert answer.message.startswith('Internal error occurred: failed calling webhook "check.example.com": ')
        assert said in answer.message
        assert (await api.get(f"{CLAIMS}/a")).code == 404


@on_loop
async def test_a_connection_is_given_up_with_the_request() -> None:
    async with serving(impatient()) as api, listening(silent) as hook:
        await register(api, webhook(hook.url))
        await api.create(CLAIMS, claim_document("a"))
        await asyncio.wait_for(hook.closed.wait(), 5)


@on_loop
async def test_nobody_at_the_address_is_a_failure() -> None:
    async with serving() as api:
        async with listening(lambda _: ALLOW) as hook:
            url = hook.url
        await register(api, webhook(url))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.code == 500
        assert f'failed to call webhook: Post "{url}?timeout=10s": dial tcp 127.0.0.1:' in answer.message


@pytest.mark.parametrize("chunked", [True, False])
@on_loop
async def test_an_answer_may_come_in_pieces_or_end_with_the_connection(chunked: bool) -> None:
    def respond(request: Plain) -> bytes:
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        body = json.dumps({**review, "response": {"uid": request["uid"], "allowed": True}}).encode()
        if not chunked:
            return b"HTTP/1.0 200 OK\r\n\r\n" + body
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:20], body[20:]))
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"

    async with serving() as api, listening(respond) as hook:
        await register(api, webhook(hook.url))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.code == 201, answer.body


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, datetime.now(UTC))


def server_context(authority: Authority, *names: str) -> ssl.SSLContext:
    pair = authority.server(names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def bundle(authority: Authority) -> str:
    return base64.b64encode(authority.files.certificate.read_bytes()).decode()


@on_loop
async def test_a_webhook_is_reached_over_tls_if_it_can_be_trusted(authority: Authority) -> None:
    async with serving() as api, listening(lambda _: ALLOW, server_context(authority, "127.0.0.1")) as hook:
        await register(api, webhook(hook.url, clientConfig={"url": hook.url, "caBundle": bundle(authority)}))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        await register(api, webhook(hook.url), name="no-bundle")
        answer = await api.create(CLAIMS, claim_document("b"))
        assert answer.code == 500
        assert "tls: CERTIFICATE_VERIFY_FAILED" in answer.message


@on_loop
async def test_a_webhook_must_be_who_it_is_called(authority: Authority) -> None:
    async with serving() as api, listening(lambda _: ALLOW, server_context(authority, "other.example.com")) as hook:
        await register(api, webhook(hook.url, clientConfig={"url": hook.url, "caBundle": bundle(authority)}))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert "tls: CERTIFICATE_VERIFY_FAILED" in answer.message


@on_loop
async def test_a_service_needs_somebody_who_knows_where_it_is(authority: Authority) -> None:
    service = {"namespace": "ns", "name": "svc", "path": "/check"}
    config: Plain = {"service": service, "caBundle": bundle(authority)}
    async with serving() as api:
        await register(api, webhook("", clientConfig=config))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert (
            'Post "https://svc.ns.svc:443/check?timeout=10s": service "ns/svc": this server is not part of a cluster '
            "network and reaches no services; use clientConfig.url" in answer.message
        )
    async with listening(lambda _: ALLOW, server_context(authority, "svc.ns.svc")) as hook:

        async def resolve(reference: ServiceReference) -> tuple[str, int]:
            if reference.name != "svc":
                raise LookupError("no endpoints")
            return "127.0.0.1", int(hook.url.rpartition(":")[2].partition("/")[0])

        async with serving(Settings(caller=Caller(resolve=resolve))) as api:
            await register(api, webhook("", clientConfig=config))
            assert (await api.create(CLAIMS, claim_document("a"))).code == 201
            lost = {**config, "service": {**service, "name": "lost"}}
            await register(api, webhook("", clientConfig=lost), name="lost")
            assert 'service "ns/lost": no endpoints' in (await api.create(CLAIMS, claim_document("b"))).message


@on_loop
async def test_a_dry_run_reaches_only_webhooks_without_side_effects() -> None:
    async with serving() as api, listening(lambda _: ALLOW) as hook:
        await register(api, webhook(hook.url))
        assert (await api.create(CLAIMS, claim_document("a"), dryRun="All")).code == 201
        assert hook.requests[0]["dryRun"] is True
        objects = api.server.context.objects
        stored = await objects.get(CONFIGURATION, "", "hooks")
        document = json.loads(json.dumps(stored.document))
        document["webhooks"][0]["sideEffects"] = "Some"
        await objects.update(stored, document)
        answer = await api.create(CLAIMS, claim_document("a"), dryRun="All")
        assert (answer.code, answer.message) == (
            400, 'admission webhook "check.example.com" does not support dry run'
        )  # fmt: skip
        assert len(hook.requests) == 1


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, True),
        ({"objectSelector": {"matchLabels": {"x": "y"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"matchConditions": [{"name": "c", "expression": "request.name == 'a'"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'b'"}]}, False),
        ({"rules": [POD_RULE]}, False),
    ],
)
@on_loop
async def test_a_webhook_is_asked_about_what_concerns_it(fields: Plain, asked: bool) -> None:
    async with serving() as api, listening(lambda _: ALLOW) as hook:
        await register(api, webhook(hook.url, **fields))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        assert bool(hook.requests) is asked


@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 403), ("Ignore", 201)])
@on_loop
async def test_a_condition_without_an_answer_refuses_or_skips_the_webhook(failure_policy: str, code: int) -> None:
    async with serving() as api, listening(lambda _: ALLOW) as hook:
        condition = {"name": "c", "expression": "object.spec.missing == 1"}
        await register(api, webhook(hook.url, matchConditions=[condition], failurePolicy=failure_policy))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.code == code
        assert not hook.requests
        if code == 403:
            assert "expression 'object.spec.missing == 1' resulted in error: no such key: missing" in answer.message


@on_loop
async def test_validating_webhooks_are_asked_at_the_same_time() -> None:
    both = asyncio.Barrier(2)
    async with (
        serving(impatient(5)) as api,
        listening(lambda _: ALLOW, before=both.wait) as one,
        listening(lambda _: ALLOW, before=both.wait) as two,
    ):
        await register(api, webhook(one.url), webhook(two.url, name="two.example.com"))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.code == 201, answer.body


@on_loop
async def test_of_several_refusals_the_first_in_order_is_told() -> None:
    refused = {"allowed": False, "status": {"message": "no"}}
    async with serving() as api, listening(lambda _: refused) as hook:
        await register(api, webhook(hook.url, name="b.example.com"), webhook(hook.url, name="a.example.com"))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.message == 'admission webhook "b.example.com" denied the request: no'
        assert len(hook.requests) == 2


@on_loop
async def test_a_mutating_webhook_changes_what_is_stored() -> None:
    operations = (
        {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}},
        {"op": "replace", "path": "/spec/devices/requests/0/exactly/count", "value": 3},
    )
    async with serving() as api, listening(lambda _: patch(*operations)) as hook:
        await register(api, webhook(hook.url), mutating=True)
        made = await api.create(CLAIMS, claim_document("a"))
        assert made.code == 201, made.body
        stored = (await api.get(f"{CLAIMS}/a")).body
        assert stored["metadata"]["labels"] == {"by": "hook"}
        assert stored["spec"]["devices"]["requests"][0]["exactly"]["count"] == 3


@on_loop
async def test_what_a_mutating_webhook_makes_is_validated_and_prepared() -> None:
    operation = {"op": "replace", "path": "/spec/devices/requests/0/exactly/count", "value": -1}
    async with serving() as api, listening(lambda _: patch(operation)) as hook:
        await register(api, webhook(hook.url), mutating=True)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 422
    status = {"op": "add", "path": "/status", "value": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    async with serving() as api, listening(lambda _: patch(status)) as hook:
        await register(api, webhook(hook.url, rules=[_rule("UPDATE")]), mutating=True)
        await api.create(CLAIMS, claim_document("a"))
        updated = await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}})
        assert (updated.code, updated.body["status"]) == (200, {})


def _rule(*operations: str) -> Plain:
    groups = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"]}
    return {**groups, "operations": list(operations), "resources": ["resourceclaims", "deviceclasses"]}


@on_loop
async def test_a_change_by_a_webhook_counts_for_the_generation() -> None:
    operation = {"op": "add", "path": "/spec/extendedResourceName", "value": "example.com/gpu"}
    async with serving() as api, listening(lambda _: patch(operation)) as hook:
        await register(api, webhook(hook.url, rules=[_rule("UPDATE")]), mutating=True)
        await api.create(CLASSES, class_document("c", "true"))
        updated = await api.patch(f"{CLASSES}/c", {"metadata": {"labels": {"x": "y"}}})
        assert updated.body["spec"]["extendedResourceName"] == "example.com/gpu"
        assert updated.body["metadata"]["generation"] == 2


@on_loop
async def test_a_webhook_sees_and_changes_the_version_that_it_knows() -> None:
    operation = {"op": "replace", "path": "/spec/devices/requests/0/count", "value": 2}
    rule = {**_rule("CREATE"), "apiVersions": ["v1beta1"]}
    async with serving() as api, listening(lambda _: patch(operation)) as hook:
        await register(api, webhook(hook.url, rules=[rule]), mutating=True)
        made = await api.create(CLAIMS, claim_document("a"))
        assert hook.requests[0]["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
        assert (hook.requests[0]["kind"]["version"], hook.requests[0]["requestKind"]["version"]) == ("v1beta1", "v1")
        assert made.body["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"allowed": True, "patch": "W10="}, "webhook returned response.patch but not response.patchType"),
        (
            {"allowed": True, "patchType": "JSONPatch"},
            "webhook returned response.patchType but not response.patch",
        ),
        ({"allowed": True, "patchType": "Merge", "patch": "W10="}, 'unsupported patch type "Merge"'),
        ({"allowed": True, "patchType": "JSONPatch", "patch": "!"}, "received undecodable patch in webhook response"),
        ({"allowed": True, "patchType": "JSONPatch", "patch": "e30="}, "expected a list of operations"),
        (patch({"op": "remove", "path": "/spec/missing"}), 'the patch of admission webhook "check.example.com"'),
        (patch({"op": "replace", "path": "/spec", "value": 7}), 'the patch of admission webhook "check.example.com"'),
        (patch({"op": "replace", "path": "/kind", "value": "Pod"}), "the patch of admission webhook"),
        (
            patch({"op": "replace", "path": "/metadata/name", "value": "b"}),
            "attempted to change the identity of the object",
        ),
        (
            patch({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}),
            "attempted to change the identity of the object",
        ),
    ],
)
@on_loop
async def test_a_patch_that_makes_no_sense_is_a_failure(answer: Plain, said: str) -> None:
    async with serving() as api, listening(lambda _: answer) as hook:
        await register(api, webhook(hook.url), mutating=True)
        refused = await api.create(CLAIMS, claim_document("a"))
        assert (refused.code, refused.body["reason"]) == (500, "InternalError")
        assert said in refused.message


@on_loop
async def test_what_only_the_server_sets_is_out_of_reach() -> None:
    operations = (
        {"op": "add", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z"},
        {"op": "add", "path": "/metadata/generation", "value": 99},
        {"op": "add", "path": "/metadata/deletionTimestamp", "value": "2001-01-01T00:00:00Z"},
    )
    async with serving() as api, listening(lambda _: patch(*operations)) as hook:
        await register(api, webhook(hook.url), mutating=True)
        metadata = (await api.create(CLASSES, class_document("c", "true"))).body["metadata"]
        assert (metadata["creationTimestamp"], metadata["generation"]) == ("2026-01-01T00:00:00Z", 1)
        assert "deletionTimestamp" not in metadata


@on_loop
async def test_a_deletion_cannot_be_patched() -> None:
    async with serving() as api, listening(labelling_unless_deleted) as hook:
        await register(api, webhook(hook.url, rules=[_rule("DELETE")]), mutating=True)
        await api.create(CLAIMS, claim_document("a"))
        answer = await api.delete(f"{CLAIMS}/a")
        assert answer.code == 500
        assert "attempted to modify the object, which is not supported for this operation" in answer.message


def labelling_unless_deleted(_: Plain) -> Plain:
    return patch({"op": "add", "path": "/metadata", "value": {}})


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (("Never", "Never"), {"first": "1", "second": "1"}),
        (("IfNeeded", "Never"), {"first": "2", "second": "1"}),
        (("Never", "IfNeeded"), {"first": "1", "second": "1"}),
        (("IfNeeded", "IfNeeded"), {"first": "2", "second": "2"}),
    ],
)
@on_loop
async def test_who_wants_to_is_asked_again_after_others_changed_something(
    policies: tuple[str, str], expected: dict[str, str]
) -> None:
    async with serving() as api, listening(labelling("first")) as one, listening(labelling("second")) as two:
        await register(
            api,
            webhook(one.url, name="one.example.com", reinvocationPolicy=policies[0]),
            webhook(two.url, name="two.example.com", reinvocationPolicy=policies[1]),
            mutating=True,
        )
        made = await api.create(CLAIMS, claim_document("a"))
        assert made.body["metadata"]["labels"] == expected


@on_loop
async def test_built_in_plugins_look_again_at_what_webhooks_changed() -> None:
    operations = (
        {"op": "remove", "path": "/spec/tolerations"},
        {"op": "remove", "path": "/spec/priority"},
        {"op": "add", "path": "/spec/priorityClassName", "value": "high"},
    )
    async with serving() as api, listening(lambda _: patch(*operations)) as hook:
        await register(api, webhook(hook.url, rules=[POD_RULE]), mutating=True)
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
        await api.create(PRIORITIES, high)
        spec = (await api.create(PODS, pod_document("a"))).body["spec"]
        assert (spec["priority"], len(spec["tolerations"])) == (5, 2)
        assert len(hook.requests) == 1


@on_loop
async def test_a_mutating_webhook_can_refuse_and_fail_like_any_other() -> None:
    async with serving(impatient()) as api, listening(lambda _: {"allowed": False}) as no, listening(silent) as slow:
        await register(api, webhook(no.url), mutating=True)
        assert "denied the request without explanation" in (await api.create(CLAIMS, claim_document("a"))).message
        await api.delete(VALIDATING.replace("validating", "mutating") + "/hooks")
        await register(api, webhook(slow.url, failurePolicy="Ignore"), mutating=True)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_configurations_of_webhooks_are_never_locked_by_webhooks() -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    async with serving() as api, listening(lambda _: {"allowed": False}) as hook:
        await register(api, webhook(hook.url, rules=[everything]))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 400
        assert (await api.delete(f"{VALIDATING}/hooks")).code == 200
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_a_webhook_may_say_null_where_it_has_nothing_to_say() -> None:
    empty = {"status": None, "patch": None, "patchType": None, "warnings": None, "auditAnnotations": None}
    async with serving() as api, listening(lambda _: {"allowed": True, **empty}) as hook:
        await register(api, webhook(hook.url))
        await register(api, webhook(hook.url), mutating=True)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_warnings_without_end_are_cut() -> None:
    talkative = {"allowed": True, "warnings": ["x" * 5000] * 100}
    async with serving() as api, listening(lambda _: talkative) as hook:
        await register(api, webhook(hook.url))
        warnings = (await api.create(CLAIMS, claim_document("a"))).response.warnings
        assert [len(text) for text in warnings] == [256] * 16


@on_loop
async def test_the_older_review_is_spoken_too() -> None:
    def older(request: Plain) -> bytes:
        return ok({"response": {"uid": request["uid"], "allowed": True}})

    async with serving() as api, listening(older) as hook:
        await register(api, webhook(hook.url, admissionReviewVersions=["v9", "v1beta1"]))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_without_the_plugins_no_webhook_is_asked() -> None:
    settings = disabled("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook")
    async with serving(settings) as api, listening(lambda _: {"allowed": False}) as hook:
        await register(api, webhook(hook.url))
        await register(api, webhook(hook.url), mutating=True)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        assert not hook.requests
