"""Who drakit's own components are.

In:  the name of a controller, a node or a driver.
Out: the user that it acts as, also when it runs in the server's process. What each may do stands in `defaults`.
"""

from __future__ import annotations

from drakit.api.exchange import User
from drakit.apiserver.access.claimstatus import NODE_NAME
from drakit.apiserver.access.nodes import NODES, PREFIX
from drakit.apiserver.access.policy import ACCOUNT_PREFIX
from drakit.apiserver.access.rbac import MASTERS

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
