"""Each request leaves one line: who, what, when, and whether it was allowed; and nothing secret."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from drakit.apiserver.auth.audit import AuditLog
from tests.apiserver.auth.people import ADMIN, ALICE, guarded
from tests.apiserver.calls import CLAIMS, Api, on_loop
from tests.builders.documents import claim_document


@asynccontextmanager
async def audited(path: Path) -> AsyncIterator[Api]:
    with AuditLog(path) as audit:
        async with guarded(audit=audit) as api:
            yield api


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_tells_user_object_decision_and_code(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    @on_loop
    async def run() -> None:
        async with audited(log) as api:
            await api.create(CLAIMS, claim_document("train"), user=ADMIN, headers={"user-agent": "kubectl"})
            await api.delete(f"{CLAIMS}/train", user=ALICE)

    run()
    created, refused = lines(log)
    assert created["user"] == {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
    assert created["verb"] == "create"
    assert created["objectRef"] == {
        "resource": "resourceclaims", "namespace": "default", "apiGroup": "resource.k8s.io", "apiVersion": "v1"
    }  # fmt: skip
    assert created["responseStatus"] == {"code": 201}
    assert created["userAgent"] == "kubectl"
    assert created["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert created["requestReceivedTimestamp"] <= created["stageTimestamp"]
    assert (refused["objectRef"]["name"], refused["responseStatus"]["code"]) == ("train", 403)
    assert refused["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert created["auditID"] != refused["auditID"]


def test_whoever_acts_as_another_is_named_beside_the_other(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    @on_loop
    async def run() -> None:
        async with audited(log) as api:
            await api.get(CLAIMS, user=ADMIN, headers={"impersonate-user": "alice"})

    run()
    (line,) = lines(log)
    assert line["user"]["username"] == "kubernetes-admin"
    assert line["impersonatedUser"]["username"] == "alice"


def test_tokens_and_bodies_stay_out_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    @on_loop
    async def run() -> None:
        async with audited(log) as api:
            await api.create(CLAIMS, claim_document("hidden-name"), headers={"authorization": "Bearer very-secret"})
            secret = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
            await api.create("/api/v1/namespaces/default/secrets", secret, user=ADMIN)

    run()
    text = log.read_text()
    assert "very-secret" not in text
    assert "hunter2" not in text
    assert lines(log)[0]["responseStatus"]["code"] == 401
    assert lines(log)[0]["user"] == {}


def test_only_its_owner_reads_the_log_and_a_restart_goes_on_with_it(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    @on_loop
    async def run() -> None:
        async with audited(log) as api:
            await api.get("/healthz")

    run()
    run()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert len(lines(log)) == 2
