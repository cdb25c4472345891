"""Users, roles and bindings for tests, and a server that knows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.auth import identities
from drakit.base.gates import FeatureGates
from tests.apiserver.calls import Api, serving

Plain = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
ADMIN = identities.ADMIN
ALICE = User(name="alice", uid="uid-alice", groups=("dev",))
BOB = User(name="bob", groups=("ops",))
NODE_A, NODE_B = identities.node_agent("node-a"), identities.node_agent("node-b")
REVIEWS = "/apis/authorization.k8s.io/v1"


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Plain:
    made = {"verbs": verbs.split(), "apiGroups": groups.split(",") if groups else [""], "resources": resources.split()}
    return {**made, "resourceNames": names.split()} if names else made


def role(name: str, *rules: Plain, kind: str = "Role", **more: Any) -> Plain:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": list(rules), **more}


def binding(name: str, of: str, *subjects: Plain, kind: str = "RoleBinding", role_kind: str = "Role") -> Plain:
    reference = {"apiGroup": GROUP, "kind": role_kind, "name": of}
    metadata = {"name": name}
    return {
        "apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "roleRef": reference,
        "subjects": list(subjects),
    }  # fmt: skip


def person(name: str) -> Plain:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> Plain:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(name: str, namespace: str = "") -> Plain:
    return {"kind": "ServiceAccount", "name": name, **({"namespace": namespace} if namespace else {})}


@asynccontextmanager
async def guarded(modes: Sequence[str] = ("Node", "RBAC"), **settings: Any) -> AsyncIterator[Api]:
    """A server with roles, and every gate on."""
    gates = FeatureGates.all_on()
    async with serving(Settings(modes=modes, gates=gates, random=Random(7), **settings)) as api:
        yield api


async def grant(api: Api, user: str, *rules: Plain, namespace: str = "default", name: str = "") -> None:
    """Give a user rights in a namespace; without one, in the whole cluster."""
    name = name or f"{user}-rights"
    if namespace:
        place, kinds = f"{RBAC}/namespaces/{namespace}", ("Role", "RoleBinding")
    else:
        place, kinds = RBAC, ("ClusterRole", "ClusterRoleBinding")
    made = role(name, *rules, kind=kinds[0])
    bound = binding(name, name, person(user), kind=kinds[1], role_kind=kinds[0])
    for kind, document in zip(kinds, (made, bound), strict=True):
        answer = await api.create(f"{place}/{kind.lower()}s", document, user=ADMIN)
        assert answer.code == 201, answer.body
