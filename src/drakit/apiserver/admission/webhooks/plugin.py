"""The plugins for admission webhooks.

In:  changes; the registered webhooks.
Out: mutating webhooks are called one after the other, and their patches change the object. Validating webhooks are
     called at the same time, and may refuse or warn. A call that fails refuses or is ignored, by the failure policy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from drakit.api.objects.plain import Plain, from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.authorizing import authorizer_values
from drakit.apiserver.admission.criteria.catalogues import Catalogue
from drakit.apiserver.admission.criteria.evaluation import Conditions
from drakit.apiserver.admission.criteria.expressions import Failure, as_value
from drakit.apiserver.admission.criteria.matching import Matcher
from drakit.apiserver.admission.criteria.registrations import IF_NEEDED, IGNORE, Webhook, WebhookConfiguration
from drakit.apiserver.admission.criteria.replacements import IdentityChanged, completed, replace
from drakit.apiserver.admission.criteria.requests import AdmissionRequest, is_exempt
from drakit.apiserver.admission.criteria.rounds import Rounds
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.webhooks.caller import Caller, WebhookCallFailed
from drakit.apiserver.admission.webhooks.reviews import (
    ReviewInvalid,
    ReviewResponse,
    chosen_version,
    question,
    read_answer,
    refusal,
)
from drakit.apiserver.auth.authorization import Authorizer
from drakit.apiserver.failures import ApiError, bad_request, internal
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.patching.jsonpatches import apply_operations
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.base.clock import Clock

log = logging.getLogger("drakit.apiserver.admission")

MAX_WARNINGS = 4096
SHORT_WARNING = 256
_GROUP = "admissionregistration.k8s.io/v1"
_NO_EFFECTS = ("None", "NoneOnDryRun")


class CompiledWebhook:
    """A webhook of a configuration, with compiled match conditions."""

    def __init__(self, configuration: str, index: int, webhook: Webhook) -> None:
        self.key = (configuration, index)
        self.webhook = webhook
        self.name = webhook.name
        self.criteria = webhook.criteria
        self.conditions = Conditions(webhook.match_conditions, webhook.failure_policy)


def _webhooks_of(document: Plain) -> list[CompiledWebhook]:
    found = from_plain(WebhookConfiguration, document)
    return [CompiledWebhook(found.metadata.name, index, webhook) for index, webhook in enumerate(found.webhooks)]


class _Webhooks(AdmissionPlugin):
    """What both plugins share: choosing the webhooks to call, and calling one."""

    mutating = False

    def __init__(
        self,
        objects: ObjectStore,
        kind: Kind,
        caller: Caller,
        new_uid: Callable[[], str],
        worker: Worker,
        authorizer: Authorizer,
    ) -> None:
        self._worker = worker
        self._authorizer = authorizer
        self._matcher = Matcher(objects)
        self._catalogue = Catalogue(objects, kind, _webhooks_of)
        self._caller = caller
        self._new_uid = new_uid

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return not is_exempt(kind)

    def passes_over(self, change: ObjectChange) -> bool:  # noqa: ARG002
        return self._catalogue.is_empty

    async def _registered(self) -> list[CompiledWebhook]:
        configurations = await self._catalogue.all()
        return [hook for hooks in configurations for hook in hooks] if configurations else []

    async def _wanted(self, hook: CompiledWebhook, request: AdmissionRequest) -> str | None:
        """The version in which a webhook wants to see the request; None if it does not apply."""
        version = await self._matcher.version(hook.criteria, request)
        if version is None or not hook.webhook.match_conditions:
            return version
        values = {
            "object": as_value(request.new_in(version)),
            "oldObject": as_value(request.old_in(version)),
            "request": as_value(request.as_review(version)),
            "namespaceObject": None,
            **authorizer_values(self._authorizer, request.change),
        }
        try:
            return version if await self._worker.run(partial(hook.conditions.hold, values)) else None
        except Failure as failure:
            raise request.change.forbid(failure.message) from None

    async def _ask(self, hook: CompiledWebhook, request: AdmissionRequest, version: str) -> ReviewResponse | None:
        """The response of a webhook that allows the request; None if the call failed and that is to be ignored."""
        if request.change.dry_run and hook.webhook.side_effects not in _NO_EFFECTS:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._answer(hook, request, version)
        except WebhookCallFailed as error:
            _failed(hook, str(error))
            return None
        request.change.annotations |= {f"{hook.name}/{key}": text for key, text in answer.audit_annotations.items()}
        request.change.warnings.extend(_bounded(answer.warnings))
        if not answer.allowed:
            raise refusal(hook.name, answer.status)
        return answer

    async def _answer(self, hook: CompiledWebhook, request: AdmissionRequest, version: str) -> ReviewResponse:
        uid = self._new_uid()
        try:
            review_version = chosen_version(hook.webhook.admission_review_versions)
        except ReviewInvalid as error:
            raise WebhookCallFailed(f"could not create admission objects: {error}") from None
        body = question(request, version, review_version, uid)
        try:
            data = await self._caller.post(hook.webhook.client_config, body, hook.webhook.timeout_seconds)
        except WebhookCallFailed as error:
            raise WebhookCallFailed(f"failed to call webhook: {error}") from None
        try:
            return read_answer(data, review_version, uid, mutating=self.mutating)
        except ReviewInvalid as error:
            raise WebhookCallFailed(f"received invalid webhook response: {error}") from None


def _bounded(warnings: Sequence[str]) -> list[str]:
    """Limit warnings: clients limit headers. If the warnings are too long in all, each is cut."""
    if sum(map(len, warnings)) <= MAX_WARNINGS:
        return list(warnings)
    return [text[:SHORT_WARNING] for text in warnings[: MAX_WARNINGS // SHORT_WARNING]]


def _failed(hook: CompiledWebhook, why: str) -> None:
    """Handle a failed call: log it if the failure policy is Ignore, else raise 500."""
    message = f'failed calling webhook "{hook.name}": {why}'
    if hook.webhook.failure_policy != IGNORE:
        raise internal(message)
    log.warning("%s; it is passed over, as its failure policy says", message)


class ValidatingWebhooks(_Webhooks):
    name = "ValidatingAdmissionWebhook"

    def __init__(
        self,
        objects: ObjectStore,
        caller: Caller,
        new_uid: Callable[[], str],
        worker: Worker,
        authorizer: Authorizer,
    ) -> None:
        kind = known_kind(_GROUP, "ValidatingWebhookConfiguration")
        super().__init__(objects, kind, caller, new_uid, worker, authorizer)

    async def validate(self, change: ObjectChange) -> None:
        """Call all webhooks at the same time. Of several refusals the client gets the first in order."""
        hooks = await self._registered()
        if not hooks:
            return
        request = AdmissionRequest(change)
        wanted = [(hook, await self._wanted(hook, request)) for hook in hooks]
        # Conditions one by one, because they run here; the calls together, because they wait.
        asked = [self._ask(hook, request, version) for hook, version in wanted if version is not None]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome


class MutatingWebhooks(_Webhooks):
    """Invariant: no webhook is called in the second round that was not called in the first."""

    name = "MutatingAdmissionWebhook"
    mutating = True

    def __init__(
        self,
        objects: ObjectStore,
        caller: Caller,
        new_uid: Callable[[], str],
        worker: Worker,
        authorizer: Authorizer,
        clock: Clock,
    ) -> None:
        kind = known_kind(_GROUP, "MutatingWebhookConfiguration")
        super().__init__(objects, kind, caller, new_uid, worker, authorizer)
        self._clock = clock

    async def admit(self, change: ObjectChange) -> None:
        hooks = await self._registered()
        if not hooks:
            return
        request = AdmissionRequest(change)
        rounds = change.memory.setdefault(self.name, Rounds())
        rounds.begin(change)
        for hook in hooks:
            if not change.repeated or hook.key in rounds.again:
                await self._admit(hook, request, rounds)
        rounds.end(change)

    async def _admit(self, hook: CompiledWebhook, request: AdmissionRequest, rounds: Rounds) -> None:
        version = await self._wanted(hook, request)
        if version is None:
            return
        answer = await self._ask(hook, request, version)
        if answer is not None and self._patched(hook, request, version, answer):
            rounds.changed()
            request.change.repeat = True
        if hook.webhook.reinvocation_policy == IF_NEEDED:
            rounds.asked.add(hook.key)

    def _patched(self, hook: CompiledWebhook, request: AdmissionRequest, version: str, answer: ReviewResponse) -> bool:
        """Apply the patch of a webhook. Return whether it changed the object."""
        try:
            operations = answer.operations()
        except ReviewInvalid as error:
            _failed(hook, str(error))
            return False
        if not operations:
            return False
        change = request.change
        before = request.new_in(version)
        if change.new is None or before is None or request.posted:
            raise internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        return replace(request, version, self._applied(hook, change, version, before, operations))

    def _applied(
        self, hook: CompiledWebhook, change: ObjectChange, version: str, before: Plain, operations: list[Plain]
    ) -> Plain:
        try:
            result = apply_operations(before, operations)
            return completed(change, version, before, result, self._clock.now(), strict=False)
        except ApiError as error:
            raise internal(f'the patch of admission webhook "{hook.name}": {error.status.message}') from None
        except IdentityChanged as error:
            raise internal(f'admission webhook "{hook.name}" {error}') from None
