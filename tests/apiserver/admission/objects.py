"""Objects that tests of admission create, and who creates them."""

from __future__ import annotations

from typing import Any

from drakit.api.exchange import User
from drakit.apiserver import Settings
from tests.apiserver.calls import Answer, Api, namespace
from tests.builders.documents import Plain

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{REGISTRATIONS}/validatingadmissionpolicies"
BINDINGS = f"{REGISTRATIONS}/validatingadmissionpolicybindings"
MUTATING_POLICIES = f"{REGISTRATIONS}/mutatingadmissionpolicies"
MUTATING_BINDINGS = f"{REGISTRATIONS}/mutatingadmissionpolicybindings"
VALIDATING = f"{REGISTRATIONS}/validatingwebhookconfigurations"
MUTATING = f"{REGISTRATIONS}/mutatingwebhookconfigurations"
MIRROR = "kubernetes.io/config.mirror"


def node_user(name: str) -> User:
    return User(name=f"system:node:{name}", groups=("system:nodes", "system:authenticated"))


def disabled(*plugins: str) -> Settings:
    return Settings(disable_plugins=plugins)


def enabled(*plugins: str) -> Settings:
    return Settings(enable_plugins=plugins)


async def limit(api: Api, hard: dict[str, str], *, name: str = "q", used: dict[str, str] | None = None) -> None:
    """A quota whose usage has been counted."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}
    assert (await api.create(QUOTAS, quota)).code == 201
    counted = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    assert (await api.patch(f"{QUOTAS}/{name}/status", {"status": counted})).code == 200


async def used(api: Api, name: str = "q") -> dict[str, str]:
    answer = await api.get(f"{QUOTAS}/{name}")
    amounts: dict[str, str] = answer.body["status"]["used"]
    return amounts


async def labelled(api: Api, name: str, **labels: str) -> Answer:
    made = namespace(name)
    made["metadata"]["labels"] = labels
    return await api.create("/api/v1/namespaces", made)


def policy(name: str, *validations: Plain, resources: tuple[str, ...] = ("resourceclaims",), **spec: Any) -> Plain:
    rule = {
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": list(resources)
    }  # fmt: skip
    constraints = {"matchConstraints": {"resourceRules": [rule]}, "validations": list(validations)}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {**constraints, **spec},
    }


def binding(name: str, policy_name: str, *actions: str, **spec: Any) -> Plain:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": policy_name, "validationActions": list(actions or ("Deny",)), **spec},
    }


async def enforce(api: Api, made: Plain, *actions: str, **spec: Any) -> None:
    name = made["metadata"]["name"]
    answer = await api.create(POLICIES, made)
    assert answer.code == 201, answer.body
    assert (await api.create(BINDINGS, binding(f"{name}-b", name, *actions, **spec))).code == 201


def mutating_policy(
    name: str, *mutations: Plain, resources: tuple[str, ...] = ("configmaps", "pods"), **spec: Any
) -> Plain:
    made = policy(name, resources=resources)
    del made["spec"]["validations"]
    settings = {"mutations": list(mutations), "failurePolicy": "Fail", "reinvocationPolicy": "Never"}
    return made | {"kind": "MutatingAdmissionPolicy", "spec": {**made["spec"], **settings, **spec}}


def mutating_binding(name: str, policy_name: str, **spec: Any) -> Plain:
    made = binding(name, policy_name, **spec)
    del made["spec"]["validationActions"]
    return made | {"kind": "MutatingAdmissionPolicyBinding"}


def applied(expression: str) -> Plain:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patched(expression: str) -> Plain:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


async def mutate(api: Api, made: Plain, **spec: Any) -> None:
    """Store a mutating policy and a binding of it."""
    name = made["metadata"]["name"]
    answer = await api.create(MUTATING_POLICIES, made)
    assert answer.code == 201, answer.body
    assert (await api.create(MUTATING_BINDINGS, mutating_binding(f"{name}-b", name, **spec))).code == 201
