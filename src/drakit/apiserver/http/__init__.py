"""Requests over sockets: listening, ASGI, compression, and the discovery documents."""
