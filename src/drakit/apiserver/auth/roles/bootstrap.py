"""The default roles and bindings of a cluster.

In:  feature gates.
Out: documents. At each start they are written where they are missing, and completed where somebody took something out;
     an object whose annotation `autoupdate` is not true stays as it is, and what was added stays added.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import PolicyRule
from drakit.api.registry import Kind
from drakit.apiserver.auth.authentication import AUTHENTICATED, UNAUTHENTICATED
from drakit.apiserver.auth.identities import CONTROLLER_MANAGER, SCHEDULER, SYSTEM
from drakit.apiserver.auth.rbac.authorizer import MASTERS
from drakit.apiserver.auth.rbac.coverage import missing_rights
from drakit.apiserver.auth.rbac.policy import GROUP
from drakit.apiserver.auth.rbac.rules import CompiledRule, compile_rules
from drakit.apiserver.auth.roles.builders import (
    AUTOUPDATE,
    READ,
    Document,
    account,
    binding,
    cluster_binding,
    cluster_role,
    group,
    on,
    role,
    user,
)
from drakit.apiserver.auth.roles.components import component_roles, node_rules
from drakit.apiserver.auth.roles.controllers import controller_rules
from drakit.apiserver.auth.roles.neighbours import neighbour_objects
from drakit.apiserver.auth.roles.users import user_roles
from drakit.apiserver.kinds.served import known_kind
from drakit.base.gates import FeatureGates

_CONTROLLER = "system:controller:"
_LOCKING = "system::leader-locking-"


def default_objects(gates: FeatureGates) -> Iterator[Document]:
    """Roles before the bindings that refer to them."""
    yield from user_roles(gates)
    yield from component_roles(gates)
    controllers = controller_rules(gates)
    for name, rules in controllers.items():
        yield cluster_role(_CONTROLLER + name, rules)
    yield from _cluster_bindings()
    for name in controllers:
        yield cluster_binding(_CONTROLLER + name, [account(SYSTEM, name)])
    yield from _leader_election()
    yield from neighbour_objects()


def node_role() -> tuple[CompiledRule, ...]:
    return compile_rules(from_plain(PolicyRule, rule) for rule in node_rules())


def _cluster_bindings() -> Iterator[Document]:
    everybody = [group(AUTHENTICATED)]
    yield cluster_binding("cluster-admin", [group(MASTERS)])
    yield cluster_binding("system:monitoring", [group("system:monitoring")])
    yield cluster_binding("system:discovery", everybody)
    yield cluster_binding("system:basic-user", everybody)
    yield cluster_binding("system:public-info-viewer", [*everybody, group(UNAUTHENTICATED)])
    yield cluster_binding("system:kube-controller-manager", [user(CONTROLLER_MANAGER.name)])
    yield cluster_binding("system:kube-scheduler", [user(SCHEDULER.name)])
    yield cluster_binding("system:volume-scheduler", [user(SCHEDULER.name)])
    yield cluster_binding("system:service-account-issuer-discovery", [group("system:serviceaccounts")])
    # Nodes get their rights from the node authorizer: the binding is there to have no subjects.
    yield cluster_binding("system:node", [])


def _leader_election() -> Iterator[Document]:
    verbs = f"{READ} create update"
    locks = [on(verbs, "coordination.k8s.io", each) for each in ("leases", "leasecandidates")]
    managers = [account(SYSTEM, "kube-controller-manager"), account(SYSTEM, "leader-election-controller")]
    for name, subjects in (
        ("kube-controller-manager", [user(CONTROLLER_MANAGER.name), *managers]),
        ("kube-scheduler", [user(SCHEDULER.name), account(SYSTEM, "kube-scheduler")]),
    ):
        yield role(SYSTEM, _LOCKING + name, locks)
        yield binding(SYSTEM, _LOCKING + name, subjects)


def kind_of(document: Document) -> Kind:
    return known_kind(f"{GROUP}/v1", document["kind"])


def completed(wanted: Document, found: Document) -> Document | None:
    """The stored object with the rules or subjects that it lacks; None if it lacks none, or opted out."""
    metadata = found["metadata"]
    if (metadata.get("annotations") or {}).get(AUTOUPDATE, "true") != "true":
        return None
    made = {**found, "metadata": {**metadata}}
    for part in ("labels", "annotations"):
        made["metadata"][part] = {**wanted["metadata"][part], **(metadata.get(part) or {})}
    if "roleRef" in wanted:
        lacking = [each for each in wanted.get("subjects") or () if each not in (found.get("subjects") or ())]
        if lacking:
            made["subjects"] = [*(found.get("subjects") or ()), *lacking]
    elif wanted.get("aggregationRule"):
        made["aggregationRule"] = found.get("aggregationRule") or wanted["aggregationRule"]
    else:
        made["rules"] = _with_missing(wanted["rules"], found.get("rules") or [])
    return None if made == found else made


def _with_missing(wanted: list[Document], found: list[Document]) -> list[Document]:
    if wanted == found:  # as at every start but the first
        return found
    held = [from_plain(PolicyRule, rule) for rule in found]
    lacking = [rule for rule in wanted if missing_rights(held, [from_plain(PolicyRule, rule)])]
    return [*found, *lacking] if lacking else found
