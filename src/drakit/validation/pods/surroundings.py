"""What a pod says of its place among others, its name in the network and its system, as its document has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.validation.fields.documentrules import check_address, check_name, check_selector_labels, check_words
from drakit.validation.pods.podsecurity import check_pod_security

_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_POSITIVE = "must be greater than zero"
_SEARCH = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_SEARCH_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_MOST_SERVERS, _MOST_SEARCHES = 3, 32


def check_surroundings(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy not in _POLICIES:
        yield not_supported(path / "dnsPolicy", policy, _POLICIES)
    if spec.get("securityContext"):
        yield from check_pod_security(spec["securityContext"], path / "securityContext")
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity.get(kind):
            yield from _check_affinity(affinity[kind], path / "affinity" / kind)
    if spec.get("dnsConfig") is not None or policy == "None":
        yield from _check_resolver(spec.get("dnsConfig"), policy, path / "dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        where = (path / "readinessGates")[index] / "conditionType"
        yield from check_name(gate.get("conditionType"), names.check_label_key, where)
    if spec.get("topologySpreadConstraints"):
        yield from _check_spread(spec["topologySpreadConstraints"], path / "topologySpreadConstraints")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from check_name(spec[name], names.check_dns_label, path / name)
    if spec.get("hostAliases"):
        yield from _check_aliases(spec["hostAliases"], path / "hostAliases")
    if spec.get("os") is not None:
        yield from _check_system(spec["os"], path / "os")
    if spec.get("volumes") and not spec.get("serviceAccountName"):
        yield from _check_no_tokens(spec["volumes"], path / "volumes")


def _check_affinity(affinity: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    required_terms = path / "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
        yield from _check_term(term, required_terms[index])
    preferred = path / "preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        weight = weighted.get("weight") or 0
        if not 1 <= weight <= 100:
            yield invalid(preferred[index] / "weight", weight, "must be in the range 1-100")
        yield from _check_term(weighted.get("podAffinityTerm") or {}, preferred[index] / "podAffinityTerm")


def _check_term(term: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_selector_labels(term.get(name), path / name)
    for namespace in term.get("namespaces") or ():
        yield from check_name(namespace, names.check_dns_label, path / "namespace")
    if not term.get("topologyKey"):
        yield required(path / "topologyKey", "can not be empty")
    yield from check_name(term.get("topologyKey"), names.check_label_key, path / "topologyKey")


def _check_resolver(config: Mapping[str, Any] | None, policy: str, path: Path) -> Iterator[FieldError]:
    if policy == "None" and config is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    if config is None:
        return
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(path / "nameservers", detail)
        return
    for name, values, limit, things in (
        ("nameservers", servers, _MOST_SERVERS, "nameservers"),
        ("searches", searches, _MOST_SEARCHES, "search paths"),
    ):
        if len(values) > limit:
            yield invalid(path / name, values, f"must not have more than {limit} {things}")
    for index, server in enumerate(servers):
        yield from check_address(server, (path / "nameservers")[index])
    for index, search in enumerate(searches):
        if search != ".":
            yield from check_name(search.removesuffix("."), _search_problems, (path / "searches")[index])
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required((path / "options")[index], "must not be empty")


def _search_problems(name: str) -> Iterator[str]:
    if len(name) > 253:
        yield "must be no more than 253 characters"
    if not _SEARCH.fullmatch(name):
        yield names.form_message(_SEARCH_RULE, _SEARCH.pattern, ("example.com",))


def _check_spread(constraints: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    for index, constraint in enumerate(constraints):
        where, key = path[index], constraint.get("topologyKey") or ""
        skew, action = constraint.get("maxSkew") or 0, constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid(where / "maxSkew", skew, _POSITIVE)
        if not key:
            yield required(where / "topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE:
            yield not_supported(where / "whenUnsatisfiable", action, _UNSATISFIABLE)
        later = {(each.get("topologyKey") or "", each.get("whenUnsatisfiable")) for each in constraints[index + 1 :]}
        if (key, action) in later:
            yield duplicate(where / "{topologyKey, whenUnsatisfiable}", f"{{{key}, {action}}}")
        yield from _check_domains(constraint.get("minDomains"), action, where / "minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                yield from check_words(constraint[name], ("Honor", "Ignore"), where / name)
        yield from _check_label_keys(constraint, where / "matchLabelKeys")
        yield from check_selector_labels(constraint.get("labelSelector"), where / "labelSelector")


def _check_label_keys(constraint: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    keys = constraint.get("matchLabelKeys") or ()
    if keys and constraint.get("labelSelector") is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        yield from check_name(key, names.check_label_key, path[index])


def _check_domains(least: int | None, action: str, path: Path) -> Iterator[FieldError]:
    if least is None:
        return
    if least <= 0:
        yield invalid(path, least, _POSITIVE)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(path, least, detail)


def _check_aliases(aliases: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    for index, alias in enumerate(aliases):
        yield from check_address(alias.get("ip"), path[index] / "ip")
        for at, name in enumerate(alias.get("hostnames") or ()):
            yield from check_name(name, names.check_dns_subdomain, (path[index] / "hostnames")[at])


def _check_system(system: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not system.get("name"):
        yield required(path / "name")
    elif system["name"] not in ("linux", "windows"):
        yield not_supported(path, system["name"], ("linux", "windows"))


def _check_no_tokens(volumes: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """A token is somebody's: without an account there is none."""
    for index, volume in enumerate(volumes):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                where = (path[index] / "projected" / "sources")[at] / "serviceAccountToken"
                yield forbidden(where, "must not be specified when serviceAccountName is not set")
