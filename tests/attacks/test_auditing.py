"""Every request leaves a line, also one that was refused; what is in it is for a policy to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drakit.apiserver import Settings
from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.auth.auditpolicy import AuditPolicy
from drakit.apiserver.http.protocol import URL_BYTES
from drakit.base.errors import UsageError
from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.attacks.sockets import asked, get, on_socket
from tests.builders.documents import claim_document

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


@pytest.mark.parametrize("text", ["", "kind: Pod", "kind: Policy", "{kind: Policy, rules: [{level: All}]}", "{kind: Policy, rules: 7}"])  # fmt: skip  # noqa: E501
def test_a_wrong_policy_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        AuditPolicy.parse(text)
