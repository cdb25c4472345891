"""A node agent of this process, with the server of its pages.

In:  a client, a runtime, settings; certificates and a bound socket for the pages.
Out: an agent, for `drakit node` and for the nodes of `drakit up`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from drakit.apiserver.auth.certificates import Authority
from drakit.base.clock import Clock
from drakit.client import Client
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.runtimes.contract import Runtime
from drakit.nodeagent.server import NodeAccess, NodeAuthentication, NodeAuthorization, NodeCertificates, NodeServer
from drakit.nodeagent.server.lookup import CachedPods
from drakit.nodeagent.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class PagesOf:
    """What the node serves its pages with."""

    certificates: NodeCertificates
    bound: socket.socket

    def server(self, client: Client, registry: CollectorRegistry) -> Callable[[NodeAgent], NodeServer]:
        def make(agent: NodeAgent) -> NodeServer:
            name, clock = agent.settings.node, agent.clock
            access = NodeAccess(NodeAuthentication(client, clock), NodeAuthorization(client, clock, name))
            return NodeServer(
                self.bound,
                self.certificates,
                access,
                node_name=name,
                pods=CachedPods(agent.pods),
                runtime=agent.runtime,
                clock=clock,
                metrics=lambda: generate_latest(registry),
            )

        return make


def issued_certificates(directory: Path, node: str, hosts: Sequence[str], now: datetime) -> NodeCertificates:
    """A node's certificate by the CA in a directory, issued anew before it ends."""
    authority = Authority(directory, now)
    pair = authority.node(node, hosts)
    return NodeCertificates(
        pair.certificate,
        pair.key,
        authority.files.certificate,
        renew=lambda later: Authority(directory, later).node(node, hosts),
    )


def make_agent(
    client: Client,
    runtime: Runtime,
    settings: AgentSettings,
    *,
    clock: Clock,
    registry: CollectorRegistry,
    pages: PagesOf | None = None,
) -> NodeAgent:
    """An agent of this process, for `drakit node` and for whoever has one beside other components."""
    server = pages.server(client, registry) if pages is not None else None
    agent = NodeAgent(client, runtime, settings, clock=clock, registry=registry, server=server)
    if pages is not None:
        agent.state.port = pages.bound.getsockname()[1]
    return agent
