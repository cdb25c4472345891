"""Containers that run under a shim each: what the process and the crun runtime share."""
