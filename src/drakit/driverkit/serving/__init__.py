"""The sockets that a kubelet speaks to.

In order: `paths` (where they are), `sockets` (a server on a path), `services` (calls), `registration`, `healthcheck`.
"""
