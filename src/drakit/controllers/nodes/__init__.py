"""Nodes: whether they live, what that means for their pods, and what is left of them when they are gone."""

from drakit.controllers.nodes.health import NodeHealth
from drakit.controllers.nodes.remains import NodeRemains
from drakit.controllers.nodes.tainteviction import NodeTaintEviction

__all__ = ["NodeHealth", "NodeRemains", "NodeTaintEviction"]
