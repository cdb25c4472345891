"""The plugin MutatingAdmissionPolicy: changes that administrators write as CEL expressions.

In:  the object that would be created or updated; mutating policies and their bindings.
Out: the object with the patches of all policies that apply, in the order of their names; or a refusal.

A policy that fails refuses the request, unless its failure policy is Ignore.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import NamedTuple

from drakit.api.objects.plain import Plain, from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import DELETE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.catalogues import Catalogue
from drakit.apiserver.admission.criteria.expressions import Failure, as_value
from drakit.apiserver.admission.criteria.matching import Matcher
from drakit.apiserver.admission.criteria.registrations import IF_NEEDED, IGNORE, MutatingPolicy, PolicyBinding
from drakit.apiserver.admission.criteria.replacements import IdentityChanged, completed, replace
from drakit.apiserver.admission.criteria.requests import AdmissionRequest, is_exempt
from drakit.apiserver.admission.criteria.rounds import Rounds
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.policies.mutations import CompiledMutations, Patch
from drakit.apiserver.admission.policies.parameters import Parameters
from drakit.apiserver.admission.policies.values import request_values
from drakit.apiserver.auth.authorization import Authorizer
from drakit.apiserver.failures import ApiError, internal
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.base import status
from drakit.base.clock import Clock
from drakit.base.status import StatusCause, StatusDetails

_POLICY = known_kind("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")
_BINDING = known_kind("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding")
_NO_PATCH = "the object of this request cannot be changed by a policy"


class _Invocation(NamedTuple):
    """A policy with one binding and one parameter object that apply to a request."""

    policy: CompiledMutations
    binding: str
    version: str
    params: Plain | None

    @property
    def key(self) -> Hashable:
        metadata = (self.params or {}).get("metadata") or {}
        return self.policy.name, self.binding, metadata.get("namespace"), metadata.get("name")

    @property
    def words(self) -> str:
        return f"policy '{self.policy.name}' with binding '{self.binding}' denied request"


class _Refusal(NamedTuple):
    message: str
    reason: str = "Forbidden"


class MutatingAdmissionPolicies(AdmissionPlugin):
    """Invariant: no policy is called in the second round that was not called in the first."""

    name = "MutatingAdmissionPolicy"

    def __init__(self, objects: ObjectStore, worker: Worker, authorizer: Authorizer, clock: Clock) -> None:
        self._authorizer = authorizer
        self._objects = objects
        self._worker = worker
        self._clock = clock
        self._matcher = Matcher(objects)
        self._parameters = Parameters(objects)
        self._policies = Catalogue(
            objects, _POLICY, lambda document: CompiledMutations(from_plain(MutatingPolicy, document))
        )
        self._bindings = Catalogue(objects, _BINDING, lambda document: from_plain(PolicyBinding, document))

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return operation != DELETE and not is_exempt(kind)

    def passes_over(self, change: ObjectChange) -> bool:  # noqa: ARG002
        return self._policies.is_empty

    async def admit(self, change: ObjectChange) -> None:
        policies = await self._policies.all()
        bindings = await self._bindings.all() if policies else ()
        if not bindings:
            return
        request, refusals = AdmissionRequest(change), list[_Refusal]()
        # All are chosen before the first one runs: what a policy changes does not decide which others apply.
        invocations = [
            each for policy in policies for each in await self._invocations(policy, bindings, request, refusals)
        ]
        rounds = change.memory.setdefault(self.name, Rounds())
        rounds.begin(change)
        for invocation in invocations:
            await self._invoke(invocation, request, rounds, refusals)
        rounds.end(change)
        if refusals:
            raise _refused(change, refusals)

    async def _invocations(
        self,
        policy: CompiledMutations,
        bindings: Sequence[PolicyBinding],
        request: AdmissionRequest,
        refusals: list[_Refusal],
    ) -> list[_Invocation]:
        bound = [each for each in bindings if each.spec.policy_name == policy.name]
        version = await self._matcher.version(policy.spec.match_constraints, request) if bound else None
        if version is None:
            return []
        found: list[_Invocation] = []
        for binding in bound:
            name, narrowed = binding.metadata.name, binding.spec.match_resources
            if narrowed is not None and await self._matcher.version(narrowed, request) is None:
                continue
            given = await self._parameters.collect(policy.spec.param_kind, binding.spec.param_ref, request.namespace)
            if isinstance(given, str):
                words = _Invocation(policy, name, version, None).words
                _note(policy, _Refusal(f"{words}: failed to configure binding: {given}"), refusals)
                continue
            found += [_Invocation(policy, name, version, params) for params in given]
        return found

    async def _invoke(
        self, invocation: _Invocation, request: AdmissionRequest, rounds: Rounds, refusals: list[_Refusal]
    ) -> None:
        policy = invocation.policy
        try:
            values = await self._values(invocation, request)
            if not await self._worker.run(partial(policy.conditions.hold, values)):
                return
        except Failure as failure:
            _note(policy, _Refusal(f"{invocation.words}: {failure.message}", "Invalid"), refusals)
            return
        if request.change.repeated and invocation.key not in rounds.again:
            return
        if await self._mutate(invocation, request, refusals):
            rounds.changed()
            request.change.repeat = True
        if policy.spec.reinvocation_policy == IF_NEEDED:
            rounds.asked.add(invocation.key)

    async def _mutate(self, invocation: _Invocation, request: AdmissionRequest, refusals: list[_Refusal]) -> bool:
        """Apply the mutations in order; one that fails does not keep the others from it. Whether the object changed."""
        changed = False
        for patch in invocation.policy.patches:
            try:
                changed = await self._patch(patch, invocation, request) or changed
            except Failure as failure:
                refusal = _Refusal(f"{invocation.words}: {failure.message}", "Invalid")
                _note(invocation.policy, refusal, refusals)
        return changed

    async def _patch(self, patch: Patch, invocation: _Invocation, request: AdmissionRequest) -> bool:
        before = request.new_in(invocation.version)
        if before is None or request.change.new is None or request.posted:
            raise Failure(_NO_PATCH)
        values = await self._values(invocation, request)
        after = await self._worker.run(partial(patch.patched, before, values))
        if after is before:
            return False
        try:
            document = completed(request.change, invocation.version, before, after, self._clock.now(), strict=True)
        except ApiError as error:
            raise internal(_cause(error)) from None
        except IdentityChanged as error:
            raise Failure(str(error)) from None
        return replace(request, invocation.version, document)

    async def _values(self, invocation: _Invocation, request: AdmissionRequest) -> dict[str, object]:
        values = await request_values(self._objects, self._authorizer, request, invocation.version)
        return values | {"params": as_value(invocation.params)}


def _cause(error: ApiError) -> str:
    """What the decoder says, without the sentence that is put around it for a body."""
    _, _, why = error.status.message.partition(" cannot be handled as a ")
    return why.partition(": ")[2] or error.status.message


def _note(policy: CompiledMutations, refusal: _Refusal, refusals: list[_Refusal]) -> None:
    if policy.spec.failure_policy != IGNORE:
        refusals.append(refusal)


def _refused(change: ObjectChange, refusals: list[_Refusal]) -> ApiError:
    """The first refusal is the answer; the others are among its causes."""
    causes = tuple(StatusCause(message=each.message) for each in refusals)
    kind, first = change.kind, refusals[0]
    details = StatusDetails(name=change.name, group=kind.group, kind=kind.plural, causes=causes)
    return ApiError(status.failure(403, first.reason, first.message, details))
