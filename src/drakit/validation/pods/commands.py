"""What is done to a container while it runs: probes, and what happens at its start and end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base.fields import FieldError, Path, forbidden, invalid, required
from drakit.validation.fields.documentrules import (
    check_not_negative,
    check_port,
    check_port_or_name,
    check_words,
)

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_HEADER = re.compile("[-A-Za-z0-9]+")
_BAD_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def check_commands(container: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    """`grace` is how long the pod has at its end, in seconds."""
    lifecycle = container.get("lifecycle") or {}
    for moment in ("postStart", "preStop"):
        if lifecycle.get(moment) is not None:
            yield from _check_handler(lifecycle[moment], path / "lifecycle" / moment, grace)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            yield from _check_probe(probe, path / name, grace, once=name != "readinessProbe")


def _check_probe(probe: Mapping[str, Any], path: Path, grace: int, *, once: bool) -> Iterator[FieldError]:
    """`once` says that the first success counts."""
    yield from _check_handler(probe, path, grace)
    yield from check_not_negative(probe, path, *_COUNTS)
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and not once:
        yield invalid(path / "terminationGracePeriodSeconds", own, "must not be set for readinessProbes")
    elif own is not None and own <= 0:
        yield invalid(path / "terminationGracePeriodSeconds", own, "must be greater than 0")
    needed = probe.get("successThreshold", 1)
    if once and needed != 1:
        yield invalid(path / "successThreshold", needed, "must be 1")


def _check_handler(holder: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    given = [name for name in _HANDLERS if holder.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    yield from _check_action(given[0], holder[given[0]], path / given[0], grace)
    for extra in given[1:]:
        yield forbidden(path / extra, "may not specify more than 1 handler type")


def _check_action(kind: str, action: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    match kind:
        case "exec":
            if not action.get("command"):
                yield required(path / "command")
        case "httpGet":
            yield from _check_http(action, path)
        case "tcpSocket":
            yield from check_port_or_name(action.get("port", 0), path / "port")
        case "grpc":
            yield from check_port(action.get("port"), path / "port")
        case _:
            seconds = action.get("seconds") or 0
            if not 0 <= seconds <= grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid(path, seconds, detail)


def _check_http(action: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not action.get("path"):
        yield required(path / "path")
    yield from check_port_or_name(action.get("port", 0), path / "port")
    yield from check_words(action.get("scheme"), ("HTTP", "HTTPS"), path / "scheme")
    for header in action.get("httpHeaders") or ():
        if not _HEADER.fullmatch(header.get("name") or ""):
            yield invalid(path / "httpHeaders", header.get("name") or "", _BAD_HEADER)
