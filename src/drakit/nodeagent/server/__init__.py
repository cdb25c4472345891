"""The HTTPS server of a node: logs, exec, attach and port-forward of its pods, for the API server.

`NodeServer` is what the agent makes; `NodeAuthentication` and `NodeAuthorization` ask the API server about callers.
"""

from drakit.nodeagent.server.authentication import Authenticator, NodeAuthentication
from drakit.nodeagent.server.authorization import NodeAuthorization, NodeRequestAuthorizer
from drakit.nodeagent.server.lookup import CachedPods, PodSource
from drakit.nodeagent.server.renewal import NodeCertificates
from drakit.nodeagent.server.server import NodeAccess, NodeServer

__all__ = [
    "Authenticator",
    "CachedPods",
    "NodeAccess",
    "NodeAuthentication",
    "NodeAuthorization",
    "NodeCertificates",
    "NodeRequestAuthorizer",
    "NodeServer",
    "PodSource",
]
