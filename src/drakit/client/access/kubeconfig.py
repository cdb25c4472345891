"""Kubeconfig files to an Access.

In:  files, merged as kubectl merges them (the first that says something wins), a context's name, an environment.
Out: the Access of that context. What is wrong raises UsageError and names file and field.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings_text
from drakit.client.access.credentials import Files, Fixed, basic, bearer
from drakit.client.access.endpoint import Access, Certificate, Credentials, Trust
from drakit.client.access.entries import KubeconfigEntry, describe
from drakit.client.access.execplugin import VERSIONS, ExecCommand, ExecPlugin

_SCHEMES = ("http", "https", "unix")
_PROXY_SCHEMES = ("http", "https")
_EXEC = "client.authentication.k8s.io/exec"
_SERVERS = "drakit.io/servers"
"""The extension of a cluster that names further servers: kubectl knows one, and passes over extensions."""


class Kubeconfig:
    """Several files as one. Invariant: of two entries of one name, the one of the earlier file counts."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._entries: dict[tuple[str, str], KubeconfigEntry] = {}
        self.current = ""
        found = [path for path in self._paths if path.exists()]
        if not found:
            raise UsageError(f"there is no kubeconfig: {', '.join(map(str, self._paths)) or 'no file was named'}")
        for path in found:
            self._read(path)

    def contexts(self) -> list[str]:
        return [name for section, name in self._entries if section == "contexts"]

    def access(
        self, context: str = "", *, clock: Clock | None = None, environment: Mapping[str, str] | None = None
    ) -> Access:
        """How to reach the server of a context; of the current one if none is named.

        `environment` is what exec plugins run in.
        """
        entry = self._context(context)
        cluster = self._of(entry, "cluster", "clusters")
        user = self._of(entry, "user", "users") if entry.text("user") else KubeconfigEntry(entry.file, "user", {})
        return Access(
            server=_server(cluster),
            others=_other_servers(cluster),
            trust=_trust(cluster),
            credentials=_credentials(user, cluster, clock or RealClock(), environment or {}),
            namespace=entry.text("namespace") or "default",
            headers=_impersonation(user),
            proxy=_proxy(cluster),
            compress=not cluster.flag("disable-compression"),
        )

    def _context(self, name: str) -> KubeconfigEntry:
        wanted = name or self.current
        if not wanted:
            raise UsageError(f"{self._paths[0]}: current-context: it is not set, and no context was named")
        found = self._entries.get(("contexts", wanted))
        if found is None:
            known = ", ".join(self.contexts()) or "none"
            where = "current-context" if not name else "contexts"
            raise UsageError(f"{self._paths[0]}: {where}: there is no context {wanted!r}; there are {known}")
        return found

    def _of(self, context: KubeconfigEntry, name: str, section: str) -> KubeconfigEntry:
        wanted = context.text(name)
        found = self._entries.get((section, wanted))
        if found is None:
            raise context.wrong(name, f"there is no entry {wanted!r} under {section}")
        return found

    def _read(self, path: Path) -> None:
        document = _parse(path)
        current = document.get("current-context") or ""
        if not isinstance(current, str):
            raise UsageError(f"{path}: current-context: expected a string, found {describe(current)}")
        self.current = self.current or current
        for section, field in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for index, item in enumerate(_items(path, document, section)):
                place = f"{section}[{index}]"
                name = item.get("name")
                if not isinstance(name, str) or not name:
                    raise UsageError(f"{path}: {place}.name: expected a name, found {describe(name)}")
                values = item.get(field) or {}
                if not isinstance(values, dict):
                    raise UsageError(f"{path}: {place}.{field}: expected a map, found {describe(values)}")
                # Files are read in order: the entry of the earlier one stays.
                self._entries.setdefault((section, name), KubeconfigEntry(path, f"{place}.{field}", values))


def load_kubeconfig(
    paths: Sequence[Path],
    context: str = "",
    *,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
) -> Access:
    """The Access of a context in these files."""
    return Kubeconfig(paths).access(context, clock=clock, environment=environment)


def _in_one_line(error: yaml.YAMLError) -> str:
    """Without the text around the place: it may be a key or a token."""
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark or error.context_mark):
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or error.context}"
    return " ".join(str(error).split())


def _parse(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(read_settings_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: it cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: {_in_one_line(error)}") from None
    except RecursionError:
        raise UsageError(f"{path}: it is nested too deeply") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: expected a kubeconfig, found {describe(document)}")
    kind = document.get("kind", "Config")
    if kind != "Config":
        raise UsageError(f"{path}: kind: expected Config, found {describe(kind)}")
    return document


def _items(path: Path, document: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    items = document.get(section) or []
    if not isinstance(items, list):
        raise UsageError(f"{path}: {section}: expected a list, found {describe(items)}")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise UsageError(f"{path}: {section}[{index}]: expected a map, found {describe(item)}")
    return items


def _server(cluster: KubeconfigEntry) -> str:
    server = cluster.text("server")
    if not _is_address(server, _SCHEMES):
        raise cluster.wrong("server", f"expected https://host:port, found {describe(server)}")
    return server


def _other_servers(cluster: KubeconfigEntry) -> tuple[str, ...]:
    entry = KubeconfigEntry(cluster.file, f"{cluster.field}.extensions", _extensions(cluster))
    found = entry.texts(_SERVERS)
    for each in found:
        if not _is_address(each, ("http", "https")):
            raise entry.wrong(_SERVERS, f"expected https://host:port, found {describe(each)}")
    return tuple(each for each in found if each != cluster.text("server"))


def _extensions(cluster: KubeconfigEntry) -> dict[str, Any]:
    """What programs have added to a cluster, by name."""
    extensions = cluster.values.get("extensions") or []
    if not isinstance(extensions, list):
        raise cluster.wrong("extensions", f"expected a list, found {describe(extensions)}")
    return {str(each.get("name")): each.get("extension") for each in extensions if isinstance(each, dict)}


def _proxy(cluster: KubeconfigEntry) -> str:
    proxy = cluster.text("proxy-url")
    if proxy and not _is_address(proxy, _PROXY_SCHEMES):
        raise cluster.wrong("proxy-url", f"expected http://host:port, found {describe(proxy)}")
    return proxy


def _is_address(text: str, schemes: Sequence[str]) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises when it is no number, or too large
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.path if parts.scheme == "unix" else parts.hostname)


def _trust(cluster: KubeconfigEntry) -> Trust:
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.data("certificate-authority")
    if insecure and ca:
        raise cluster.wrong("insecure-skip-tls-verify", "a certificate authority is given, too: it is one or the other")
    return Trust(ca=ca, insecure=insecure, server_name=cluster.text("tls-server-name"))


def _credentials(
    user: KubeconfigEntry, cluster: KubeconfigEntry, clock: Clock, environment: Mapping[str, str]
) -> Credentials:
    """A certificate goes with any of the others; of these, a token file counts before a token."""
    if user.values.get("exec") is not None:
        return ExecPlugin(_program(user, cluster, environment), clock)
    if user.values.get("auth-provider") is not None:
        raise user.wrong("auth-provider", "not supported since Kubernetes 1.26: use exec")
    headers: Mapping[str, str] = {}
    if token := user.header("token"):
        headers = bearer(token)
    elif name := user.text("username"):
        headers = basic(name, user.text("password"))
    token_file = user.path("tokenFile")
    if token_file is None and not user.text("client-certificate"):
        return Fixed(headers, _certificate(user))
    has_certificate = _certificate(user) is not None

    def read() -> Certificate:
        """Read the file again. Then a missing or torn file is no error: it is being replaced."""
        try:
            found = _certificate(user)
        except UsageError as error:
            raise OSError(str(error)) from None
        if found is None:
            raise OSError(f"{user.file}: {user.field}: no certificate")
        return found

    return Files(clock, token=token_file, certificate=read if has_certificate else None, headers=headers)


def _certificate(user: KubeconfigEntry) -> Certificate | None:
    certificate, key = user.data("client-certificate"), user.data("client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise user.wrong(missing, "a client certificate and its key go together")
    return Certificate(certificate, key) if certificate else None


def _program(user: KubeconfigEntry, cluster: KubeconfigEntry, environment: Mapping[str, str]) -> ExecCommand:
    values = user.values["exec"]
    entry = KubeconfigEntry(user.file, f"{user.field}.exec", values if isinstance(values, dict) else {})
    if not entry.text("command"):
        raise entry.wrong("command", "expected the name of a program")
    version = entry.text("apiVersion")
    if version not in VERSIONS:
        raise entry.wrong("apiVersion", f"expected {' or '.join(VERSIONS)}, found {describe(version)}")
    if entry.text("interactiveMode") == "Always":
        raise entry.wrong("interactiveMode", "the program wants to ask somebody, and nobody is there")
    return ExecCommand(
        command=_command(entry),
        arguments=entry.texts("args"),
        environment={**environment, **_variables(entry)},
        api_version=version,
        install_hint=entry.text("installHint"),
        cluster=_cluster_info(cluster) if entry.flag("provideClusterInfo") else None,
        source=f"{entry.file}: {entry.field}",
    )


def _command(entry: KubeconfigEntry) -> str:
    """A program with a directory in its name is relative to the kubeconfig, any other is looked for."""
    command = entry.text("command")
    return str(entry.file.parent / command) if "/" in command else command


def _variables(entry: KubeconfigEntry) -> dict[str, str]:
    variables = entry.values.get("env") or []
    if not isinstance(variables, list):
        raise entry.wrong("env", f"expected a list, found {describe(variables)}")
    found: dict[str, str] = {}
    for index, each in enumerate(variables):
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str) or not name or "=" in name:
            raise entry.wrong(f"env[{index}]", f"expected name and value, found {describe(each)}")
        found[name] = str(each.get("value") or "")
    return found


def _cluster_info(cluster: KubeconfigEntry) -> dict[str, Any]:
    info: dict[str, Any] = {"server": cluster.text("server")}
    ca = cluster.data("certificate-authority")
    if ca:
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    if cluster.flag("insecure-skip-tls-verify"):
        info["insecure-skip-tls-verify"] = True
    for name in ("tls-server-name", "proxy-url"):
        if cluster.text(name):
            info[name] = cluster.text(name)
    extensions = _extensions(cluster)
    if _EXEC in extensions:
        info["config"] = extensions[_EXEC]
    return info


def _impersonation(user: KubeconfigEntry) -> dict[str, str]:
    name = user.header("as")
    headers = {"impersonate-user": name} if name else {}
    if uid := user.header("as-uid"):
        headers["impersonate-uid"] = uid
    if groups := user.texts("as-groups"):
        headers["impersonate-group"] = "\n".join(groups)
    extra = user.values.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise user.wrong("as-user-extra", f"expected a map, found {describe(extra)}")
    entry = KubeconfigEntry(user.file, f"{user.field}.as-user-extra", extra)
    for key in extra:
        if not isinstance(key, str):
            raise user.wrong("as-user-extra", f"expected names, found {describe(key)}")
        headers[f"impersonate-extra-{quote(key.lower(), safe='')}"] = "\n".join(entry.texts(key))
    if headers and not name:
        raise user.wrong("as", "uid, groups and extra fields need a user to go with")
    return headers
