"""The users of drakit's own components.

In:  the name of a controller, a node or a driver.
Out: the user that it acts as, also in the server's process. `roles` has what each may do.
"""

from __future__ import annotations

from drakit.api.exchange import User
from drakit.apiserver.auth.nodes.authorizer import NODES, PREFIX
from drakit.apiserver.auth.rbac.authorizer import MASTERS
from drakit.apiserver.auth.rbac.policy import ACCOUNT_PREFIX
from drakit.base import names

NODE_NAME = "authentication.kubernetes.io/node-name"
"""The key in a user's extra that has the node of its pod."""
SYSTEM = "kube-system"
_COMPONENTS = ("system:kube-", f"{ACCOUNT_PREFIX}{SYSTEM}:", PREFIX)
SCHEDULER = User(name="system:kube-scheduler")
CONTROLLER_MANAGER = User(name="system:kube-controller-manager")
"""The user of the controllers' shared informers: it may list and watch everything, and do little else."""
ADMIN = User(name="kubernetes-admin", groups=(MASTERS,))
NODE_CLIENT = User(name="kube-apiserver-kubelet-client", groups=(MASTERS,))
"""The API server itself, when it asks a node for logs and the like."""


def account(namespace: str, name: str, *, node: str = "") -> User:
    """The user of a service account; with `node`, that of one of its pods on that node."""
    return User(
        name=f"{ACCOUNT_PREFIX}{namespace}:{name}",
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        extra={NODE_NAME: (node,)} if node else {},
    )


def controller(name: str) -> User:
    """The user of a controller, such as `node-controller`: each has its own service account and role."""
    return account(SYSTEM, name)


def node_agent(node: str) -> User:
    return User(name=f"{PREFIX}{node}", groups=(NODES,))


def is_component(user: User) -> bool:
    """Whether a user is part of the cluster, or rules it anyway."""
    return user.name.startswith(_COMPONENTS) or NODES in user.groups or MASTERS in user.groups


def is_account(name: str) -> bool:
    """`system:serviceaccount:<namespace>:<name>`, both well-formed."""
    namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not name.startswith(ACCOUNT_PREFIX) or ":" in account:
        return False
    return not names.check_dns_label(namespace) and not names.check_dns_subdomain(account)
