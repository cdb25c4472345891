"""The API server: HTTP, discovery, authentication, authorization, admission, and everything a client can ask of it.

`build_server` puts one together over a store; `Server.handle` answers a request; `http.listener` serves it on a socket.
"""

from drakit.apiserver.serving.composition import Settings, build_server
from drakit.apiserver.serving.server import Server
from drakit.apiserver.serving.shares import Limits

__all__ = ["Limits", "Server", "Settings", "build_server"]
