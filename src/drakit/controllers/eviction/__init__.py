"""Pods leave devices that are tainted with NoExecute, by their driver or by a DeviceTaintRule."""

from drakit.controllers.eviction.controller import DeviceTaintEviction

__all__ = ["DeviceTaintEviction"]
