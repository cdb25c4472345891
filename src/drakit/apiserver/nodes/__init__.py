"""The way from the API server to a node's agent: where it is, how to trust it, how to ask it.

`location` finds a node's address, `client` dials it with the server's own certificate, `streams` carries what comes.
"""

from drakit.apiserver.nodes.client import NodeClient, NodeFiles, NodeResponse, NodeUnreachable
from drakit.apiserver.nodes.location import NodeAddress, address_of
from drakit.apiserver.nodes.streams import NodeBody, NodeTunnel

__all__ = [
    "NodeAddress",
    "NodeBody",
    "NodeClient",
    "NodeFiles",
    "NodeResponse",
    "NodeTunnel",
    "NodeUnreachable",
    "address_of",
]
