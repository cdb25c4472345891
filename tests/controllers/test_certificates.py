"""Certificates for kubelets: approved by policy, signed, and refused with a reason."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from drakit.api.exchange import User
from drakit.apiserver.auth.certificates import Authority, read_certificate
from drakit.apiserver.auth.identities import controller
from drakit.client import SIGNING_REQUESTS, Client, InProcess
from drakit.client.failures import Forbidden, Invalid
from drakit.controllers.authority import SigningAuthority
from drakit.controllers.certificates import RequestApprover, RequestSigner
from tests.apiserver.neighbours import neighbour, signing_request
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.scenarios.crashes import check_every_crash

NODE = User(name="system:node:a", groups=("system:nodes", "system:authenticated"))
USAGES = ["digital signature", "client auth"]
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SELF = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"


def asked(name: str = "system:node:a", **spec: Any) -> dict[str, Any]:
    content = {"request": signing_request(name), "signerName": KUBELET, "usages": USAGES, **spec}
    return neighbour("certificatesigningrequests", spec=content)


async def allow_nodes(it: Cluster) -> None:
    """What kubeadm sets up: nodes may renew their own certificates."""
    await it.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "nodes"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SELF},
            "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}],
        }
    )  # fmt: skip


@asynccontextmanager
async def running(pki: Path | None = None) -> AsyncIterator[Cluster]:
    async with cluster() as it:
        if pki is not None:
            files = Authority(pki, it.clock.now()).files
            signer = SigningAuthority(files.certificate.read_bytes(), files.key.read_bytes(), it.clock)
            it.authority = signer
        await allow_nodes(it)
        await it.start((RequestApprover, RequestSigner))
        yield it


async def ask(it: Cluster, document: dict[str, Any], user: User = NODE) -> None:
    await Client(InProcess(it.server, user), clock=it.clock).create(document)
    await it.settle()


async def conditions(it: Cluster) -> dict[str, tuple[str, str]]:
    found = (await it.find(SIGNING_REQUESTS, "x")).status.conditions
    return {each.type: (each.reason, each.message) for each in found}


@on_loop
async def test_a_node_gets_the_certificate_that_it_asks_for_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await ask(it, asked(expirationSeconds=3600))
        stored = await it.find(SIGNING_REQUESTS, "x")
        assert stored.spec.username == "system:node:a"
        message = "Auto approving self kubelet client certificate after SubjectAccessReview."
        assert await conditions(it) == {"Approved": ("AutoApproved", message)}
        made = x509.load_pem_x509_certificate(base64.b64decode(stored.status.certificate))
        made.verify_directly_issued_by(read_certificate(tmp_path / "ca.crt"))
        assert made.subject.rfc4514_string() == "CN=system:node:a,O=system:nodes"
        assert made.not_valid_after_utc == it.clock.now() + timedelta(hours=1)


@on_loop
async def test_a_request_for_another_node_waits_for_somebody_to_decide(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await ask(it, asked("system:node:b"))
        assert await conditions(it) == {}
        assert (await it.find(SIGNING_REQUESTS, "x")).status.certificate == ""


@on_loop
async def test_a_serving_certificate_is_signed_once_somebody_approves(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        serving = asked(signerName="kubernetes.io/kubelet-serving", usages=["digital signature", "server auth"])
        await ask(it, serving)
        assert await conditions(it) == {}
        request = await it.client.get(SIGNING_REQUESTS, "x")
        approved = {"type": "Approved", "status": "True", "reason": "ByHand", "message": ""}
        await it.client.update({**request.document, "status": {"conditions": [approved]}}, subresource="approval")
        await it.settle()
        # The request has no name or address that it could be reached by.
        assert (await conditions(it))["Failed"] == ("SignerValidationFailure", "DNS or IP subjectAltName is required")


@on_loop
async def test_who_may_not_approve_or_sign_does_not() -> None:
    async with running() as it:
        await ask(it, asked("system:node:b"))
        someone = Client(InProcess(it.server, User(name="eve")), clock=it.clock)
        request = await it.client.get(SIGNING_REQUESTS, "x")
        approved = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        with pytest.raises(Forbidden):
            await someone.update({**request.document, **approved}, subresource="approval")
        approver = Client(InProcess(it.server, controller("certificate-controller")), clock=it.clock)
        serving = asked("system:node:b", signerName="example.com/other")
        serving["metadata"] = {"name": "other"}
        await ask(it, serving)
        other = await it.client.get(SIGNING_REQUESTS, "other")
        with pytest.raises(Forbidden, match=r'not permitted to approve requests with signerName "example\.com/other"'):
            await approver.update({**other.document, **approved}, subresource="approval")
        with pytest.raises(Forbidden, match=r'not permitted to sign requests with signerName "example\.com/other"'):
            await approver.update({**other.document, "status": {"certificate": "eA=="}}, subresource="status")


@on_loop
async def test_what_is_no_request_is_refused_with_every_reason() -> None:
    async with cluster() as it:
        wrong = asked(request="bm9uc2Vuc2U=", usages=["flying"], signerName="nobody", expirationSeconds=1)
        with pytest.raises(Invalid) as refused:
            await it.client.create(wrong)
        paths = {cause.field for cause in refused.value.causes}
        assert paths == {"spec.request", "spec.usages[0]", "spec.signerName", "spec.expirationSeconds"}


@on_loop
async def test_nobody_becomes_an_administrator_by_a_request() -> None:
    async with cluster() as it:
        text = signing_request("eve", ("system:masters",))
        with pytest.raises(Forbidden, match="with system:masters group is not allowed"):
            await it.client.create(asked(request=text, signerName="kubernetes.io/kube-apiserver-client"))


async def a_node_asks(it: Cluster) -> None:
    await allow_nodes(it)
    await ask(it, asked(request=FIXED))


FIXED = signing_request()


def test_a_crash_after_any_write_changes_nothing() -> None:
    makers, reviews = (RequestApprover, RequestSigner), ("accessreviews",)
    assert check_every_crash(a_node_asks, makers, [SIGNING_REQUESTS], exact=False, at_most=True, apart=reviews) >= 1
