"""Put authorization together, and keep what it depends on up to date.

In:  the names of authorization modes; roles, bindings, pods and slices, followed in the store.
Out: an authorizer, the plugin against escalation, the index of objects that tokens are bound to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from drakit.api.exchange import User
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import AdmissionPlugin
from drakit.apiserver.admission.plugins.escalation import NoEscalation
from drakit.apiserver.auth.authorization import MODES as SIMPLE_MODES
from drakit.apiserver.auth.authorization import Attributes, AuthorizationResult, Authorizer, AuthorizerUnion, Decision
from drakit.apiserver.auth.nodes.authorizer import NodeAuthorizer, node_of
from drakit.apiserver.auth.nodes.graph import Relations
from drakit.apiserver.auth.rbac.authorizer import Masters, RoleBased
from drakit.apiserver.auth.rbac.policy import GROUP, RolePolicy
from drakit.apiserver.auth.roles.bootstrap import node_role
from drakit.apiserver.auth.tokens.boundobjects import BoundObjects
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.serving.bootstrap_roles import aggregate, write_defaults
from drakit.apiserver.storage.follower import Follower, Index
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.apiserver.verbs.context import ServerContext
from drakit.base.errors import Retryable, UsageError
from drakit.store import StoreClosed

log = logging.getLogger("drakit.apiserver.auth")
_RETRY_SECONDS = 1.0
RBAC = "RBAC"
NODE = "Node"
MODES = (*SIMPLE_MODES, NODE, RBAC)
"""What `--authorization-mode` may name."""


class SyncAuthorizer(Authorizer, Protocol):
    """An authorizer that decides from memory, without waiting."""

    def decide(self, asked: Attributes) -> AuthorizationResult: ...


class RuleListingUnion:
    """Asks authorizers in turn, as `AuthorizerUnion`, without waiting. It can also list the rules of a user."""

    def __init__(self, authorizers: Sequence[SyncAuthorizer], roles: RoleBased) -> None:
        self._authorizers = tuple(authorizers)
        self._roles = roles

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        reasons = []
        for authorizer in self._authorizers:
            result = authorizer.decide(attributes)
            if result.decision is not Decision.NO_OPINION:
                return result
            if result.reason:
                reasons.append(result.reason)
        return AuthorizationResult(Decision.NO_OPINION, "\n".join(reasons))

    async def rules_for(self, user: User, namespace: str) -> dict[str, Any]:
        resources, paths, problem = self._roles.rules_for(user, namespace)
        # The node authorizer decides by relations between objects. Rules cannot express that: the list is incomplete.
        is_node = node_of(user) is not None
        if is_node:
            problem = "node authorizer does not support user rule resolution"
        status = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": is_node}
        return {**status, "evaluationError": problem} if problem else status


class AccessControl:
    """Authorization of one server, with the followers that feed it.

    Without `modes` somebody else authorizes. Then only the objects that tokens are bound to are followed, from the
    first token on.
    """

    def __init__(self, objects: ObjectStore, modes: Sequence[str] = (), *, aggregate: bool = False) -> None:
        unknown = [name for name in modes if name not in MODES]
        if unknown:
            raise UsageError(f"--authorization-mode: unknown {', '.join(unknown)}; known are {', '.join(MODES)}")
        self.modes = tuple(modes)
        self._aggregate = aggregate and RBAC in modes
        self._aggregation: asyncio.Task[None] | None = None
        self.policy = RolePolicy()
        self.relations = Relations()
        self.bound_objects = BoundObjects(objects)
        self._followers: list[Follower] = []
        if RBAC in modes:
            self._followers.append(Follower(objects, _kinds(f"{GROUP}/v1", *_RBAC_KINDS), _PolicyIndex(self.policy)))
        if NODE in modes:
            watched = (*_kinds("v1", "Pod"), *_kinds("resource.k8s.io/v1", "ResourceSlice"))
            self._followers.append(Follower(objects, watched, self.relations))

    def authorizer(self) -> Authorizer:
        roles = RoleBased(self.policy)
        authorizers: dict[str, SyncAuthorizer] = {NODE: NodeAuthorizer(self.relations, node_role()), RBAC: roles}
        if RBAC in self.modes and all(name in authorizers for name in self.modes):
            return RuleListingUnion([Masters(), *(authorizers[name] for name in self.modes)], roles)
        return AuthorizerUnion(
            [Masters(), *(authorizers[name] if name in authorizers else SIMPLE_MODES[name]() for name in self.modes)]
        )

    def plugins(self, authorizer: Authorizer) -> list[AdmissionPlugin]:
        return [NoEscalation(self.policy, authorizer)] if RBAC in self.modes else []

    async def start(self, context: ServerContext) -> None:
        """Write the default roles; read roles, bindings, pods and slices, and follow them from then on."""
        if RBAC in self.modes:
            await write_defaults(context)
        for follower in self._followers:
            await follower.start()
        if self.modes:
            await self.bound_objects.start()
        if self._aggregate:
            await aggregate(context)
            # Once before the first request; from then on in the background.
            self._aggregation = asyncio.create_task(RoleAggregation(context).run())

    def check_followed(self) -> None:
        """Raise Retryable, naming them, if kinds that authorization depends on are not followed."""
        if missing := [name for follower in self._followers for name in follower.behind()]:
            raise Retryable(f"not followed: {', '.join(missing)}")

    async def check_roles(self) -> None:
        """Raise Retryable unless the default roles are known."""
        if RBAC in self.modes and not self.policy.has_role("cluster-admin"):
            raise Retryable("the role cluster-admin is not there")

    async def stop(self) -> None:
        """End all tasks that `start`, or the first token, began. Idempotent."""
        if self._aggregation is not None:
            self._aggregation.cancel()
            await asyncio.gather(self._aggregation, return_exceptions=True)
        await self.bound_objects.stop()
        for follower in self._followers:
            await follower.stop()


class RoleAggregation:
    """Keeps aggregated roles up to date while it runs. In Kubernetes a controller does this."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._changed = asyncio.Event()

    def put(self, kind: Kind, document: dict[str, Any]) -> None:  # noqa: ARG002
        self._changed.set()

    def remove(self, kind: Kind, namespace: str, name: str) -> None:  # noqa: ARG002
        self._changed.set()

    async def run(self) -> None:
        follower = Follower(self._context.objects, _kinds(f"{GROUP}/v1", "ClusterRole"), self)
        try:
            await follower.start()
            while True:
                # Cleared before the work: a change during it must cause another round.
                self._changed.clear()
                await self._gather()
                await self._changed.wait()
        except StoreClosed:
            return
        finally:
            await follower.stop()

    async def _gather(self) -> None:
        try:
            await aggregate(self._context)
        except Retryable as error:
            log.warning("cannot write aggregated roles: %s", error)
            await self._context.clock.sleep(_RETRY_SECONDS)
            self._changed.set()


class _PolicyIndex(Index):
    def __init__(self, policy: RolePolicy) -> None:
        self._policy = policy

    def put(self, kind: Kind, document: dict[str, Any]) -> None:
        self._policy.put(kind.kind, document)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        self._policy.remove(kind.kind, namespace, name)


_RBAC_KINDS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


def _kinds(group_version: str, *names: str) -> tuple[Kind, ...]:
    return tuple(known_kind(group_version, name) for name in names)
