"""Who drakit's own components are.

In:  the name of a controller, a node or a driver.
Out: the user that it acts as, also when it runs in the server's process. What each may do stands in `defaults`.
"""

from __future__ import annotations

from drakit.api.exchange import User
from drakit.apiserver.auth.nodes.authorizer import NODES, PREFIX
from drakit.apiserver.auth.rbac.authorizer import MASTERS
from drakit.apiserver.auth.rbac.policy import ACCOUNT_PREFIX
from drakit.base import names

NODE_NAME = "authentication.kubernetes.io/node-name"
"""The key of a user's extra that says on which node its pod runs."""
SYSTEM = "kube-system"
SCHEDULER = User(name="system:kube-scheduler")
CONTROLLER_MANAGER = User(name="system:kube-controller-manager")
"""For what the controllers share: their informers (it may list and watch everything, and get next to nothing)."""
ADMIN = User(name="kubernetes-admin", groups=(MASTERS,))


def account(namespace: str, name: str, *, node: str = "") -> User:
    """A service account; with `node`, as one of its pods on that node is."""
    return User(
        name=f"{ACCOUNT_PREFIX}{namespace}:{name}",
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        extra={NODE_NAME: (node,)} if node else {},
    )


def controller(name: str) -> User:
    """`resource-claim-controller`, `node-controller`, …: each controller has an account, and a role of its own."""
    return account(SYSTEM, name)


def node_agent(node: str) -> User:
    return User(name=f"{PREFIX}{node}", groups=(NODES,))


def is_account(name: str) -> bool:
    """`system:serviceaccount:<namespace>:<name>`, both well-formed."""
    namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not name.startswith(ACCOUNT_PREFIX) or ":" in account:
        return False
    return not names.check_dns_label(namespace) and not names.check_dns_subdomain(account)
