"""The web page of a cluster: a map of its devices, what waits and why, the life of a pod, figures over time, what-if.

In:  requests of browsers, with the credentials of whoever looks.
Out: static pages, JSON and server-sent events. Everything is read with the viewer's own rights; the answers are those
     of `explain`. Nothing is written unless changes are allowed.
"""

from drakit.dashboard.handler import Dashboard
from drakit.dashboard.viewers import Viewer, over_http, within_process

__all__ = ["Dashboard", "Viewer", "over_http", "within_process"]
