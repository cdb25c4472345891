"""The options of the pod subresources log, exec, attach and portforward, as query parameters.

In:  query parameters, as a client sends them to the API server and the API server to the node.
Out: frozen structs, and the query that says the same to the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from drakit.base.errors import DecodeError
from drakit.base.fields import FieldError, Path, forbidden, invalid

Query = Sequence[tuple[str, str]]

_FALSE = ("false", "0")


class PodLogOptions(msgspec.Struct, frozen=True, kw_only=True):
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    insecure_skip_tls_verify_backend: bool = False
    stream: str | None = None

    def query(self) -> list[tuple[str, str]]:
        """The options that a node is asked with; the container is part of the path there."""
        flags = (("follow", self.follow), ("previous", self.previous), ("timestamps", self.timestamps))
        numbers = (
            ("sinceSeconds", self.since_seconds),
            ("tailLines", self.tail_lines),
            ("limitBytes", self.limit_bytes),
        )
        asked = [(name, "true") for name, wanted in flags if wanted]
        asked += [(name, str(number)) for name, number in numbers if number is not None]
        if self.since_time is not None:
            asked.append(("sinceTime", self.since_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
        return asked


class PodStreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of exec and attach; only exec has a command."""

    container: str = ""
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    command: tuple[str, ...] = ()

    def query(self) -> list[tuple[str, str]]:
        """The options that a node is asked with."""
        flags = (("input", self.stdin), ("output", self.stdout), ("error", self.stderr), ("tty", self.tty))
        return [(name, "1") for name, wanted in flags if wanted] + [("command", word) for word in self.command]


def parse_log_options(query: Query) -> PodLogOptions:
    """Raise DecodeError for a value that is not of its type."""
    return PodLogOptions(
        container=_text(query, "container"),
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        since_seconds=_number(query, "sinceSeconds"),
        since_time=_time(query, "sinceTime"),
        tail_lines=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        insecure_skip_tls_verify_backend=_flag(query, "insecureSkipTLSVerifyBackend"),
        stream=_first(query, "stream"),
    )


def parse_stream_options(query: Query) -> PodStreamOptions:
    """Read the options of exec and attach as a client sends them to the API server."""
    return _stream_options(query, "stdin", "stdout", "stderr")


def parse_node_stream_options(query: Query) -> PodStreamOptions:
    """Read them as the API server sends them to a node, where the three streams have other names."""
    return _stream_options(query, "input", "output", "error")


def _stream_options(query: Query, stdin: str, stdout: str, stderr: str) -> PodStreamOptions:
    return PodStreamOptions(
        container=_text(query, "container"),
        stdin=_flag(query, stdin),
        stdout=_flag(query, stdout),
        stderr=_flag(query, stderr),
        tty=_flag(query, "tty"),
        command=tuple(value for name, value in query if name == "command"),
    )


def parse_ports(query: Query, name: str) -> tuple[int, ...]:
    """The ports of a port-forward: several parameters, or several in one. Raise DecodeError."""
    ports: list[int] = []
    for text in (value for key, value in query if key == name):
        if not text:
            raise DecodeError(f'query parameter "{name}" cannot be empty')
        ports += [parse_port(part) for part in text.split(",")]
    return tuple(ports)


def parse_port(text: str) -> int:
    """Raise DecodeError for a text that is not a port number."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise DecodeError(f'unable to parse "{text}" as a port')
    if int(text) < 1:
        raise DecodeError(f'port "{text}" must be > 0')
    return int(text)


def log_option_problems(options: PodLogOptions) -> Iterator[FieldError]:
    if options.tail_lines is not None and options.tail_lines < 0:
        yield invalid(Path("tailLines"), options.tail_lines, "must be greater than or equal to 0")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        yield invalid(Path("limitBytes"), options.limit_bytes, "must be greater than 0")
    if options.since_seconds is not None and options.since_time is not None:
        yield forbidden(Path(""), "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif options.since_seconds is not None and options.since_seconds < 1:
        yield invalid(Path("sinceSeconds"), options.since_seconds, "must be greater than 0")
    if options.stream is not None:
        # PodLogsQuerySplitStreams is alpha, and off.
        yield forbidden(Path("stream"), "may not be specified")


def _first(query: Query, name: str) -> str | None:
    return next((value for key, value in query if key == name), None)


def _text(query: Query, name: str) -> str:
    return _first(query, name) or ""


def _flag(query: Query, name: str) -> bool:
    """Whatever is not plainly false counts as true, as Kubernetes reads a query: `?follow` does too."""
    value = _first(query, name)
    return value is not None and value.lower() not in _FALSE


def _number(query: Query, name: str) -> int | None:
    value = _first(query, name)
    if value is None:
        return None
    try:
        number = int(value) if value.isascii() else None
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise DecodeError(f'{name}: "{value}" is not a whole number')
    return number


def _time(query: Query, name: str) -> datetime | None:
    value = _first(query, name)
    if not value:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise DecodeError(f'{name}: "{value}" is not a time such as 2026-01-01T00:00:00Z')
    return time.astimezone(UTC)
