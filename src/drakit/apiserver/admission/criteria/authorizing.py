"""The variable `authorizer` of expressions: asks whether the user of a request, or a service account, may do something.

`authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()`,
`authorizer.path('/metrics').check('get')`, `authorizer.requestResource.check('mycustomverb')`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.auth.authorization import Attributes, AuthorizationResult, Authorizer, Decision
from drakit.apiserver.auth.identities import account
from drakit.cel import BOOL, STRING, EvalError, Function, Overload, Type
from drakit.cel.checking.types import opaque
from drakit.cel.values import Opaque

AUTHORIZER, REQUEST_RESOURCE = "authorizer", "authorizer.requestResource"
_ASKER = opaque("kubernetes.authorization.Authorizer")
_PATH = opaque("kubernetes.authorization.PathCheck")
_GROUP = opaque("kubernetes.authorization.GroupCheck")
_RESOURCE = opaque("kubernetes.authorization.ResourceCheck")
_DECISION = opaque("kubernetes.authorization.Decision")
VARIABLES: Mapping[str, Type] = {AUTHORIZER: _ASKER, REQUEST_RESOURCE: _RESOURCE}
MOST_CHECKS = 28
"""Checks of one request: upstream counts each as 350,000 of a budget of 10,000,000."""

Decide = Callable[[Attributes], AuthorizationResult]


class _Asked(Opaque):
    """A question that is being put together: what is asked so far, and who decides."""

    __slots__ = ("attributes", "decide", "type_name")

    def __init__(self, type_: Type, attributes: Attributes, decide: Decide) -> None:
        self.type_name = type_.name  # type: ignore[misc]  # each step of a question has a type of its own
        self.attributes = attributes
        self.decide = decide

    def same(self, other: Any) -> bool:
        return bool(self.attributes == other.attributes)

    def __hash__(self) -> int:
        return hash((self.type_name, self.attributes.verb, self.attributes.resource))

    def asking(self, type_: Type, **more: Any) -> _Asked:
        return _Asked(type_, msgspec.structs.replace(self.attributes, **more), self.decide)


class _Decided(Opaque):
    __slots__ = ("result",)
    type_name = _DECISION.name

    def __init__(self, result: AuthorizationResult) -> None:
        self.result = result

    def same(self, other: Any) -> bool:
        return bool(self.result == other.result)

    def __hash__(self) -> int:
        return hash(self.result)


def authorizer_values(authorizer: Authorizer, change: ObjectChange) -> dict[str, object]:
    """The two variables for one request."""

    count = 0

    def decide(asked: Attributes) -> AuthorizationResult:
        nonlocal count
        count += 1
        if count > MOST_CHECKS:
            raise EvalError(f"more than {MOST_CHECKS} checks of the authorizer: out of the cost budget")
        # Expressions cannot wait, and no authorizer here does: each decides from memory at its first step.
        steps = authorizer.authorize(asked)
        try:
            steps.send(None)
        except StopIteration as ended:
            result: AuthorizationResult = ended.value
            return result
        steps.close()
        raise EvalError("the authorizer would have to wait")

    asker = _Asked(_ASKER, Attributes(user=change.user, verb=""), decide)
    kind = change.kind
    own = asker.asking(
        _RESOURCE, group=kind.group, resource=kind.plural, subresource=change.subresource,
        namespace=change.namespace, name=change.name,
    )  # fmt: skip
    return {AUTHORIZER: asker, REQUEST_RESOURCE: own}


def _service_account(asked: _Asked, namespace: str, name: str) -> _Asked:
    return asked.asking(_ASKER, user=account(namespace, name))


def _check(asked: _Asked, verb: str) -> _Decided:
    return _Decided(asked.decide(msgspec.structs.replace(asked.attributes, verb=verb)))


def _step(name: str, of: Type, to: Type, field: str = "") -> Function:
    """A method with one text that says more about what is asked."""

    def call(asked: _Asked, text: str) -> _Asked:
        return asked.asking(to, **{field or name: text})

    return Function(name, (Overload(f"authorizer_{name}", (of, STRING), to, call, member=True),))


def _told(name: str, result: Type, read: Callable[[AuthorizationResult], Any]) -> Function:
    def call(decided: _Decided) -> Any:
        return read(decided.result)

    return Function(name, (Overload(f"decision_{name}", (_DECISION,), result, call, member=True),))


FUNCTIONS = (
    _step("path", _ASKER, _PATH),
    _step("group", _ASKER, _GROUP),
    _step("resource", _GROUP, _RESOURCE),
    _step("subresource", _RESOURCE, _RESOURCE),
    _step("namespace", _RESOURCE, _RESOURCE),
    _step("name", _RESOURCE, _RESOURCE),
    _step("fieldSelector", _RESOURCE, _RESOURCE, "field_selector"),
    _step("labelSelector", _RESOURCE, _RESOURCE, "label_selector"),
    Function(
        "serviceAccount",
        (Overload("authorizer_serviceaccount", (_ASKER, STRING, STRING), _ASKER, _service_account, member=True),),
    ),
    Function(
        "check",
        (
            Overload("pathcheck_check", (_PATH, STRING), _DECISION, _check, member=True),
            Overload("resourcecheck_check", (_RESOURCE, STRING), _DECISION, _check, member=True),
        ),
    ),
    _told("allowed", BOOL, lambda result: result.decision is Decision.ALLOW),
    _told("reason", STRING, lambda result: result.reason),
    # Nothing that decides from memory can fail.
    _told("errored", BOOL, lambda _: False),
    _told("error", STRING, lambda _: ""),
)
