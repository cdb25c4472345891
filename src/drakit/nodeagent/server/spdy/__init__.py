"""SPDY/3.1, as far as kubectl's port-forward speaks it through a WebSocket (`SPDY/3.1+portforward.k8s.io`).

`frames` turns bytes into frames and back, `headers` packs header blocks, `session` keeps the streams of a connection.

There are no flow-control windows: neither kubectl nor the kubelet keeps any. A stream that is not read holds up the
connection instead, so that memory stays bounded.
"""

from drakit.nodeagent.server.spdy.frames import ProtocolError
from drakit.nodeagent.server.spdy.session import Session, SpdyStream, StreamRefused

__all__ = ["ProtocolError", "Session", "SpdyStream", "StreamRefused"]
