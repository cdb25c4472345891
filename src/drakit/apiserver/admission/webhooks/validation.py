"""Validation of webhook configurations.

In:  the webhooks of a configuration that is written.
Out: every error with its path.

Webhooks must use TLS, except on the loopback interface, where nobody can listen in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import SplitResult, urlsplit

from drakit.apiserver.admission.criteria.registrations import ClientConfig, ServiceReference, Webhook
from drakit.apiserver.admission.criteria.validation import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    check_conditions,
    check_rule,
    check_selector,
)
from drakit.apiserver.admission.webhooks.reviews import VERSIONS
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, invalid, not_supported, required

SIDE_EFFECTS = ("None", "NoneOnDryRun")
REINVOCATIONS = ("IfNeeded", "Never")
MAX_SECONDS = 30
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FORM = "; desired format: https://host[/path]"


def check_webhooks(webhooks: Sequence[Webhook], *, mutating: bool) -> Iterator[FieldError]:
    seen = set[str]()
    for index, webhook in enumerate(webhooks):
        path = Path("webhooks")[index]
        yield from _check_webhook(webhook, path)
        if mutating and webhook.reinvocation_policy not in REINVOCATIONS:
            yield not_supported(path / "reinvocationPolicy", webhook.reinvocation_policy, REINVOCATIONS)
        if webhook.name and webhook.name in seen:
            yield duplicate(path / "name", webhook.name)
        seen.add(webhook.name)


def _check_webhook(webhook: Webhook, path: Path) -> Iterator[FieldError]:
    yield from _check_name(webhook.name, path / "name")
    for index, rule in enumerate(webhook.rules):
        yield from check_rule(rule, (path / "rules")[index])
    if webhook.failure_policy not in FAILURE_POLICIES:
        yield not_supported(path / "failurePolicy", webhook.failure_policy, FAILURE_POLICIES)
    if webhook.match_policy not in MATCH_POLICIES:
        yield not_supported(path / "matchPolicy", webhook.match_policy, MATCH_POLICIES)
    if not webhook.side_effects:
        yield required(path / "sideEffects", f"must specify one of {', '.join(SIDE_EFFECTS)}")
    elif webhook.side_effects not in SIDE_EFFECTS:
        yield not_supported(path / "sideEffects", webhook.side_effects, SIDE_EFFECTS)
    if not 1 <= webhook.timeout_seconds <= MAX_SECONDS:
        why = f"the timeout value must be between 1 and {MAX_SECONDS} seconds"
        yield invalid(path / "timeoutSeconds", webhook.timeout_seconds, why)
    yield from check_selector(webhook.namespace_selector, path / "namespaceSelector")
    yield from check_selector(webhook.object_selector, path / "objectSelector")
    yield from _check_client(webhook.client_config, path / "clientConfig")
    yield from check_conditions(webhook.match_conditions, path / "matchConditions")
    yield from _check_versions(webhook.admission_review_versions, path / "admissionReviewVersions")


def _check_name(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif messages := names.check_dns_subdomain(name):
        yield from (invalid(path, name, message) for message in messages)
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _check_client(config: ClientConfig, path: Path) -> Iterator[FieldError]:
    if bool(config.url) == (config.service is not None):
        yield required(path, "exactly one of url or service is required")
    elif config.service is not None:
        yield from _check_service(config.service, path / "service")
    else:
        yield from _check_url(config.url, path / "url")


def _check_url(url: str, path: Path) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises when it is no number
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https" and not _is_local(parts):
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.hostname:
        yield invalid(path, parts.netloc, f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        yield invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _is_local(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in LOOPBACK


def _check_service(service: ServiceReference, path: Path) -> Iterator[FieldError]:
    if not service.name:
        yield required(path / "name")
    if not service.namespace:
        yield required(path / "namespace")
    if not 1 <= service.port <= 65535:
        yield invalid(path / "port", service.port, "port is not valid: must be between 1 and 65535, inclusive")
    if service.path and not service.path.startswith("/"):
        yield invalid(path / "path", service.path, "must start with a '/'")
    for index, step in enumerate(service.path.strip("/").split("/") if service.path.strip("/") else ()):
        if not step:
            yield invalid(path / "path", service.path, f"segment[{index}] may not be empty")
            continue
        messages = names.check_dns_subdomain(step)
        yield from (invalid(path / "path", service.path, f"segment[{index}]: {each}") for each in messages)


def _check_versions(versions: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not versions:
        yield required(path, f"must specify one of {', '.join(VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(path[index], version, "duplicate version")
            continue
        yield from (invalid(path[index], version, message) for message in names.check_dns1035_label(version))
    if not any(version in VERSIONS for version in versions):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(VERSIONS)}")
