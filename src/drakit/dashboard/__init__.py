"""The web dashboard of a cluster: a device map, pending pods and why, a pod's timeline, metrics over time, what-if.

In:  requests of browsers, with the credentials of the viewer.
Out: static pages, JSON and server-sent events. Everything is read with the viewer's own rights; the answers are those
     of `explain`. Nothing is written unless changes are allowed.
"""

from drakit.dashboard.handler import Dashboard
from drakit.dashboard.viewers import Viewer, over_http, within_process

__all__ = ["Dashboard", "Viewer", "over_http", "within_process"]
