"""Daemon sets: one pod on every node that fits, as drivers run."""

from drakit.controllers.daemonsets.controller import DaemonSetController

__all__ = ["DaemonSetController"]
