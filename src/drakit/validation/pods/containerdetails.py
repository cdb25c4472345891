"""Containers, as their document has them: ports, environment, mounts, and the rights of their processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_found, not_supported, required
from drakit.validation.fields.documentrules import (
    check_name,
    check_port,
    check_protocol,
    check_words,
    port_name_problems,
)
from drakit.validation.fields.volumesources import check_no_backsteps
from drakit.validation.pods.commands import check_commands
from drakit.validation.pods.downward import ENVIRONMENT_PATHS, check_field, check_resource_field
from drakit.validation.pods.podsecurity import check_security

_ENVIRONMENT_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_MORE_THAN_ONE = "may not have more than one field specified at a time"
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_PULLS = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "Never", "OnFailure")
_RESIZED, _RESIZE_RESTARTS = ("cpu", "memory"), ("NotRequired", "RestartContainer")


def check_details(
    containers: Sequence[Mapping[str, Any]], path: Path, volumes: set[str], grace: int, *, initial: bool
) -> Iterator[FieldError]:
    """`volumes` are the names of those that can be mounted; `initial` containers run before the others."""
    for index, container in enumerate(containers):
        where = path[index]
        policy = container.get("terminationMessagePolicy") or "File"
        if policy not in ("File", "FallbackToLogsOnError"):
            yield not_supported(where / "terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
        if container.get("resizePolicy"):
            yield from _check_resizes(container["resizePolicy"], where / "resizePolicy")
        if container.get("ports"):
            yield from _check_ports(container["ports"], where / "ports")
        if container.get("env"):
            yield from _check_environment(container["env"], where / "env")
        if container.get("envFrom"):
            yield from _check_environment_sources(container["envFrom"], where / "envFrom")
        if container.get("volumeMounts"):
            yield from _check_mounts(container, where / "volumeMounts", volumes)
        pull = container.get("imagePullPolicy") or "Always"
        if pull not in _PULLS:
            yield not_supported(where / "imagePullPolicy", pull, _PULLS)
        if container.get("securityContext") is not None:
            yield from check_security(container["securityContext"], where / "securityContext")
        yield from check_commands(container, where, grace)
        restarts = container.get("restartPolicy")
        if initial and restarts is not None:
            yield from check_words(restarts, _RESTARTS, where / "restartPolicy")
    if not initial:
        yield from _check_host_ports(containers, path)


def _check_resizes(policies: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource = policy.get("resourceName") or ""
        if resource in seen:
            yield duplicate(path[index], resource)
        seen.add(resource)
        for value, words in ((resource, _RESIZED), (policy.get("restartPolicy") or "", _RESIZE_RESTARTS)):
            if not value:
                yield required(path)
            else:
                yield from check_words(value, words, path)


def _check_ports(ports: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        where, name = path[index], port.get("name")
        if name:
            problems = list(port_name_problems(name))
            yield from (invalid(where / "name", name, problem) for problem in problems)
            if not problems and name in taken:
                yield duplicate(where / "name", name)
            taken.add(name)
        if not port.get("containerPort"):
            yield required(where / "containerPort")
        else:
            yield from check_port(port["containerPort"], where / "containerPort")
        if port.get("hostPort"):
            yield from check_port(port["hostPort"], where / "hostPort")
        yield from check_protocol(port.get("protocol") or "TCP", where / "protocol")


def _check_host_ports(containers: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """A port of the node belongs to one container."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in taken:
                yield duplicate((path[index] / "ports")[at] / "hostPort", key)
            taken.add(key)


def _check_environment(variables: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(path[index] / "name")
        else:
            yield from check_name(name, _name_problems, path[index] / "name")
        if variable.get("valueFrom") is not None:
            yield from _check_value(variable, path[index] / "valueFrom")


def _name_problems(name: str) -> Iterator[str]:
    if not name.isascii() or not name.isprintable() or "=" in name:
        yield _ENVIRONMENT_NAME


def _check_value(variable: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    given = [source for source in _SOURCES if variable["valueFrom"].get(source) is not None]
    for source in given:
        reference, where = variable["valueFrom"][source], path / source
        if source == "fieldRef":
            yield from check_field(reference, where, ENVIRONMENT_PATHS)
        elif source == "resourceFieldRef":
            yield from check_resource_field(reference, where, volume=False)
        elif source != "fileKeyRef":
            yield from _check_key(reference, where)
    if not given:
        yield invalid(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", _MORE_THAN_ONE)


def _check_key(reference: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_name(reference.get("name"), names.check_dns_subdomain, path / "name")
    if not reference.get("key"):
        yield required(path / "key")
    else:
        yield from check_name(reference["key"], names.check_config_key, path / "key")


def _check_environment_sources(sources: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        where = path[index]
        if source.get("prefix"):
            yield from check_name(source["prefix"], _name_problems, where / "prefix")
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            if not source[kind].get("name"):
                yield required(where / kind / "name")
            else:
                yield from check_name(source[kind]["name"], names.check_dns_subdomain, where / kind / "name")
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", _MORE_THAN_ONE)


def _check_mounts(container: Mapping[str, Any], path: Path, volumes: set[str]) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where, name, place = path[index], mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(where / "name")
        if name not in volumes:
            yield not_found(where / "name", name)
        if not place:
            yield required(where / "mountPath")
        if place in taken:
            yield invalid(where / "mountPath", place, "must be unique")
        taken.add(place)
        yield from _check_part(mount, where, path)
        propagation = mount.get("mountPropagation")
        if propagation is not None:
            yield from check_words(propagation, _PROPAGATIONS, path / "mountPropagation")
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(path / "mountPropagation", detail)


def _check_part(mount: Mapping[str, Any], where: Path, path: Path) -> Iterator[FieldError]:
    """The part of a volume that is mounted."""
    part, template = mount.get("subPath"), mount.get("subPathExpr")
    if part and template:
        yield invalid(where / "subPathExpr", template, "subPathExpr and subPath are mutually exclusive")
    for name, text in (("subPath", part), ("subPathExpr", template)):
        if text and text.startswith("/"):
            yield invalid(path / name, text, "must be a relative path")
        yield from check_no_backsteps(text or "", path / name)
