"""Every request leaves a line, also one that was refused; what is in it is for a policy to say."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from drakit.api.exchange import Request
from drakit.apiserver import Limits, Settings
from drakit.apiserver.auth.audit import AuditLog, Trail
from drakit.apiserver.auth.auditpolicy import AuditPolicy
from drakit.apiserver.http import asgi
from drakit.apiserver.http.protocol import URL_BYTES
from drakit.base.errors import UsageError
from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.attacks.sockets import asked, get, on_socket
from tests.builders.documents import claim_document

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/version"]
- level: RequestResponse
  verbs: [create]
  resources: [{group: resource.k8s.io, resources: [resourceclaims]}]
- level: Request
  namespaces: [default]
- level: Metadata
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@on_loop
async def test_refused_and_unreadable_requests_have_a_line_with_their_source(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log") as audit:
        async with on_socket(Settings(audit=audit)) as (_, port):
            large = f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n".encode()
            for request, code in (
                (large, 413),
                (get("/" + "x" * URL_BYTES + "y" * 20_000), 414),
                (get("/healthz", *["a: b"] * 2000), 431),
                (get("/healthz", "authorization: Bearer wrong", "x-forwarded-for: 192.0.2.1"), 401),
            ):
                assert await asked(port, request) == code
    found = lines(tmp_path / "audit.log")
    assert [each["responseStatus"]["code"] for each in found] == [413, 414, 431, 401]
    assert all(each["sourceIPs"] == ["127.0.0.1"] for each in found)


@on_loop
async def test_a_policy_says_how_much(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log", policy=AuditPolicy.parse(POLICY)) as audit:
        async with serving(Settings(audit=audit)) as api:
            await api.get("/healthz")
            await api.create(CLAIMS, claim_document("a"))
            await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"a": "b"}}})
            await api.get("/api/v1/nodes")
    first, second, third = lines(tmp_path / "audit.log")
    assert (first["level"], first["responseObject"]["metadata"]["name"]) == ("RequestResponse", "a")
    assert (second["level"], second["requestObject"]) == ("Request", {"metadata": {"labels": {"a": "b"}}})
    assert "responseObject" not in second
    assert (third["level"], "requestObject" in third) == ("Metadata", False)


@on_loop
async def test_lines_that_are_lost_are_counted() -> None:
    with AuditLog(Path("/dev/full")) as audit:
        async with serving(Settings(audit=audit)) as api:
            await api.get(CLAIMS)
            assert "apiserver_audit_error_total 1.0" in (await api.get("/metrics")).body


@on_loop
async def test_a_strict_log_refuses_what_it_cannot_note() -> None:
    with AuditLog(Path("/dev/full"), strict=True, policy=AuditPolicy.parse(POLICY)) as audit:
        async with serving(Settings(audit=audit)) as api:
            refused = await api.create(CLAIMS, claim_document("a"))
            assert (refused.code, "failed to store audit event" in refused.message) == (500, True)
            assert (await api.get("/healthz")).code == 200  # of which the policy wants no line
            assert (await api.server.context.objects.store.list("/registry/resource.k8s.io/")).records == []


@on_loop
async def test_a_strict_log_has_two_lines_of_one_request(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log", strict=True) as audit:
        async with serving(Settings(audit=audit)) as api:
            assert (await api.create(CLAIMS, claim_document("a"))).code == 201
    first, second = lines(tmp_path / "audit.log")
    assert (first["stage"], second["stage"]) == ("RequestReceived", "ResponseComplete")
    assert first["auditID"] == second["auditID"]
    assert "responseStatus" not in first


@on_loop
async def test_a_request_that_takes_too_long_has_a_line(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log") as audit, patch.object(asgi, "BODY_SECONDS", 0.05):
        async with on_socket(Settings(audit=audit)) as (_, port):
            stalled = f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n".encode()
            assert await asked(port, stalled) == 504
    [line] = lines(tmp_path / "audit.log")
    assert (line["responseStatus"]["code"], line["sourceIPs"], line["verb"]) == (504, ["127.0.0.1"], "create")


@on_loop
async def test_refusals_of_rights_and_of_load_have_a_line(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log") as audit:
        async with on_socket(Settings(audit=audit, modes=("RBAC",))) as (_, port):
            assert await asked(port, get(CLAIMS)) == 403
        async with on_socket(Settings(audit=audit, limits=Limits(reading=0))) as (_, port):
            assert await asked(port, get(CLAIMS)) == 429
    assert [each["responseStatus"]["code"] for each in lines(tmp_path / "audit.log")] == [403, 429]


def test_half_a_line_is_not_continued(tmp_path: Path) -> None:
    """A disk that is full in the middle of a line takes its first bytes."""

    class Half(io.BytesIO):
        def write(self, data: object, /) -> int:
            return super().write(bytes(data)[: 20 if not self.tell() else None])  # type: ignore[call-overload]

    with AuditLog(tmp_path / "audit.log") as audit:
        audit._file.close()
        audit._file = file = Half()
        for _ in range(2):
            audit.note(Request(method="GET", path="/a"), None, Trail(NOW), 200, NOW)
        torn, whole = file.getvalue().splitlines()
    assert (len(torn), json.loads(whole)["requestURI"], audit.lost) == (20, "/a", 1)


@pytest.mark.parametrize("text", ["", "kind: Pod", "kind: Policy", "{kind: Policy, rules: [{level: All}]}", "{kind: Policy, rules: 7}"])  # fmt: skip  # noqa: E501
def test_a_wrong_policy_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        AuditPolicy.parse(text)
