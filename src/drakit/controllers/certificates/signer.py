"""Approved requests for certificates get them.

In:  requests that are approved, and the cluster's certificate authority.
Out: certificates in their status; the condition Failed for what no signer gives.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from cryptography import x509

from drakit.api.text.times import format_time
from drakit.client import SIGNING_REQUESTS, Key
from drakit.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    NotPermitted,
    OneRequest,
    check_client,
    check_kubelet_client,
    check_kubelet_serving,
    decided,
    parse_request,
)
from drakit.controllers.context import ControllerContext
from drakit.informers import Result

log = logging.getLogger("drakit.controllers")

ACCOUNT = "certificate-controller"
LONGEST = timedelta(days=365)
SHORTEST = timedelta(minutes=10)
_CHECKS: Mapping[str, Callable[[x509.CertificateSigningRequest, Iterable[str]], None]] = {
    CLIENT: check_client,
    KUBELET_CLIENT: check_kubelet_client,
    KUBELET_SERVING: check_kubelet_serving,
}


class RequestSigner:
    """Does nothing in a process that has no authority."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._authority = context.authority
        self._requests = context.informers.of(SIGNING_REQUESTS)
        self.loop = context.loop("csrsigning", self.reconcile)
        self.loops = (self.loop,)
        self._requests.enqueue(self.loop.queue.add)

    async def reconcile(self, key: Key) -> Result:
        request = self._requests.cache.get(key)
        if self._authority is None or request is None or request.view.status.certificate:
            return Result.done()
        held, check = decided(request.view), _CHECKS.get(request.view.spec.signer_name)
        if "Approved" not in held or held & {"Denied", "Failed"} or check is None:
            return Result.done()
        spec = request.view.spec
        try:
            asked = parse_request(spec.request)
            check(asked, spec.usages)
        except (ValueError, NotPermitted) as error:
            await self._fail(request, str(error))
            return Result.done()
        wanted = LONGEST if spec.expiration_seconds is None else timedelta(seconds=spec.expiration_seconds)
        made = self._authority.sign(asked, spec.usages, min(max(wanted, SHORTEST), LONGEST))
        log.info("certificate request %s of %s is signed", request.view.metadata.name, spec.username)
        await self._write(request, {"certificate": base64.b64encode(made).decode()})
        return Result.done()

    async def _fail(self, request: OneRequest, why: str) -> None:
        now = format_time(self._clock.now())
        condition = {
            "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
            "lastUpdateTime": now, "lastTransitionTime": now,
        }  # fmt: skip
        before = (request.document.get("status") or {}).get("conditions") or []
        await self._write(request, {"conditions": [*before, condition]})

    async def _write(self, request: OneRequest, change: dict[str, Any]) -> None:
        status = {**(request.document.get("status") or {}), **change}
        await self._client.update({**request.document, "status": status}, subresource="status")
