"""Replica sets, as far as workloads and drivers need them: scaled, adopted, told of."""

from drakit.controllers.replicasets.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]
