"""A node inside `drakit up`: pods are processes of whoever started it.

In:  the node's name, the directory of the cluster, where the API server listens.
Out: a component. It has the identity and the rights of a node; its files are below the directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drakit.api.exchange import User
from drakit.cli.components import Component, Surroundings
from drakit.client import Client

if TYPE_CHECKING:
    from drakit.nodeagent.agent import NodeAgent


def local_node(name: str, directory: Path, api_address: str) -> Component:
    """Its modules are loaded only when it is made."""

    def make(client: Client, around: Surroundings) -> NodeAgent:
        from drakit.base.clock import RealClock
        from drakit.cli.diagnostics import bind_port
        from drakit.cli.node import PagesOf, RuntimeFlags, ServeFlags, make_agent, make_runtime
        from drakit.nodeagent.node.facts import this_machine
        from drakit.nodeagent.settings import AgentPaths, AgentSettings

        paths = AgentPaths.below(directory / "node")
        paths.make()
        settings = AgentSettings(name, paths, this_machine(paths.root), around.gates)
        runtime = make_runtime(RuntimeFlags(), settings, around.clock, f"https://{api_address}")
        authority = directory / "pki"
        flags = ServeFlags(authority_dir=authority if (authority / "ca.key").is_file() else None)
        certificates = flags.certificates(name, "127.0.0.1", RealClock().now())
        pages = PagesOf(certificates, bind_port("127.0.0.1", 0)) if certificates is not None else None
        return make_agent(client, runtime, settings, clock=around.clock, registry=around.registry, pages=pages)

    identity = User(name=f"system:node:{name}", groups=("system:nodes", "system:authenticated"))
    return Component("node", identity, make)
