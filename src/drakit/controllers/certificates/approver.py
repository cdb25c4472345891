"""Requests of kubelets for client certificates are approved, if whoever asks may ask for that.

In:  requests for certificates.
Out: the condition Approved. Everything else waits for a person: `kubectl certificate approve`.
"""

from __future__ import annotations

import logging

from drakit.api.text.times import format_time
from drakit.client import SIGNING_REQUESTS, Key
from drakit.controllers.certificates.requests import (
    KUBELET_CLIENT,
    NotPermitted,
    OneRequest,
    check_kubelet_client,
    common_name,
    decided,
    parse_request,
)
from drakit.controllers.context import ControllerContext
from drakit.informers import Result

log = logging.getLogger("drakit.controllers")

ACCOUNT = "certificate-controller"
_SELF = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_ANY = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


class RequestApprover:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._requests = context.informers.of(SIGNING_REQUESTS)
        self.loop = context.loop("csrapproving", self.reconcile)
        self.loops = (self.loop,)
        self._requests.enqueue(self.loop.queue.add)

    async def reconcile(self, key: Key) -> Result:
        request = self._requests.cache.get(key)
        if request is None or request.view.status.certificate or decided(request.view) & {"Approved", "Denied"}:
            return Result.done()
        for subresource, message in self._recognized(request):
            if await self._may(request, subresource):
                await self._approve(request, message)
                return Result.done()
        return Result.done()

    def _recognized(self, request: OneRequest) -> list[tuple[str, str]]:
        """As what a request may be approved: one of a node for itself, one of any node."""
        spec = request.view.spec
        if spec.signer_name != KUBELET_CLIENT:
            return []
        try:
            asked = parse_request(spec.request)
            check_kubelet_client(asked, spec.usages)
        except (ValueError, NotPermitted) as error:
            log.info("certificate request %s is not approved: %s", request.view.metadata.name, error)
            return []
        return [_SELF, _ANY] if spec.username == common_name(asked) else [_ANY]

    async def _may(self, request: OneRequest, subresource: str) -> bool:
        spec = request.view.spec
        attributes = {
            "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
            "subresource": subresource, "version": "*",
        }  # fmt: skip
        asker = {"user": spec.username, "uid": spec.uid, "groups": list(spec.groups), "extra": dict(spec.extra)}
        review = {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {**asker, "resourceAttributes": attributes},
        }  # fmt: skip
        answer = await self._client.create(review)
        document = answer if isinstance(answer, dict) else answer.document
        return bool((document.get("status") or {}).get("allowed"))

    async def _approve(self, request: OneRequest, message: str) -> None:
        now = format_time(self._clock.now())
        condition = {
            "type": "Approved", "status": "True", "reason": "AutoApproved", "message": message,
            "lastUpdateTime": now, "lastTransitionTime": now,
        }  # fmt: skip
        status = request.document.get("status") or {}
        made = {**status, "conditions": [*(status.get("conditions") or ()), condition]}
        await self._client.update({**request.document, "status": made}, subresource="approval")
