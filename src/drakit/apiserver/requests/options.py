"""Options of a request: from the query, and from the body of a deletion.

In:  query parameters as text.
Out: checked structs. A bad value raises 400, a bad combination 422: as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from drakit.api.exchange import Request
from drakit.apiserver.failures import ApiError, bad_request
from drakit.base import fields, fieldselectors, labels, status
from drakit.base.fields import FieldError, Path

Query = tuple[tuple[str, str], ...]
EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
_TRUE = ("", "1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_MATCHES = (EXACT, NOT_OLDER_THAN)
_POLICIES = ("Foreground", "Background", "Orphan")
_VALIDATIONS = ("Ignore", "Warn", "Strict")
_LONG = 1024
"""Characters of a query. The options of a longer one are read each time: they would fill the memory."""


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    labels: labels.LabelMatcher = labels.EVERYTHING
    fields: fieldselectors.FieldSelector = fieldselectors.EVERYTHING
    watch: bool = False
    bookmarks: bool = False
    resource_version: str = ""
    match: str = ""
    timeout: int | None = None
    limit: int = 0
    continue_: str = ""
    initial_events: bool | None = None

    @property
    def revision(self) -> int:
        """The resourceVersion as a number; 0 when there is none."""
        return parse_revision(self.resource_version) if self.resource_version else 0


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None


_NO_WRITE_OPTIONS = WriteOptions()
_MOST_REMEMBERED = 256
_REMEMBERED: dict[tuple[Query, str], WriteOptions] = {}
"""The options that were read last, by query and kind."""


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool = False
    grace: int | None = None
    propagation: str | None = None
    preconditions: Preconditions = Preconditions()


class _DeleteBody(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


def list_options(request: Request, *, watch: bool = False) -> ListOptions:
    options = ListOptions(
        labels=labels.parse(request.parameter("labelSelector")),
        fields=fieldselectors.parse(request.parameter("fieldSelector")),
        watch=watch or boolean(request, "watch"),
        bookmarks=boolean(request, "allowWatchBookmarks"),
        resource_version=request.parameter("resourceVersion"),
        match=request.parameter("resourceVersionMatch"),
        timeout=_number(request, "timeoutSeconds"),
        limit=_number(request, "limit") or 0,
        continue_=request.parameter("continue"),
        initial_events=boolean(request, "sendInitialEvents") if request.parameters("sendInitialEvents") else None,
    )
    if found := list(_watch_errors(options) if options.watch else _list_errors(options)):
        raise invalid_options("ListOptions", found)
    return options


def write_options(request: Request, kind: str) -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions: errors name it."""
    query = request.query
    if not query:
        return _NO_WRITE_OPTIONS
    options = _REMEMBERED.get((query, kind))
    if options is None:
        options = _write_options(query, kind)
        if sum(len(name) + len(value) for name, value in query) <= _LONG:
            _remember(query, kind, options)
    return options


def _remember(query: Query, kind: str, options: WriteOptions) -> None:
    """A client sends the same options all the time."""
    if len(_REMEMBERED) >= _MOST_REMEMBERED:
        _REMEMBERED.clear()
    _REMEMBERED[query, kind] = options


def _write_options(query: Query, kind: str) -> WriteOptions:
    request = Request(method="", path="", query=query)
    validation = request.parameter("fieldValidation")
    manager = request.parameter("fieldManager")
    force = boolean(request, "force") if request.parameters("force") else None
    found = [*_dry_run_errors(request.parameters("dryRun")), *_manager_errors(manager)]
    if validation and validation not in _VALIDATIONS:
        found.append(fields.not_supported(Path("fieldValidation"), validation, ("", *_VALIDATIONS)))
    if found:
        raise invalid_options(kind, found)
    return WriteOptions(
        dry_run=bool(request.parameters("dryRun")), manager=manager, validation=validation or "Warn", force=force
    )


def delete_options(request: Request, body: Any) -> DeleteOptions:
    """The options in the body if there is one, else in the query."""
    given = _delete_body(body) if body is not None else _delete_query(request)
    dry_run = given.dry_run or request.parameters("dryRun")
    found = list(_dry_run_errors(dry_run))
    policy = given.propagation_policy
    if policy is not None and given.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        found.append(fields.invalid(Path("propagationPolicy"), policy, detail))
    if policy is not None and policy not in _POLICIES:
        found.append(fields.not_supported(Path("propagationPolicy"), policy, (*_POLICIES, "nil")))
    if found:
        raise invalid_options("DeleteOptions", found)
    # The deprecated field says the same in other words; both at once were refused above.
    if given.orphan_dependents is not None:
        policy = "Orphan" if given.orphan_dependents else "Background"
    return DeleteOptions(
        dry_run=bool(dry_run),
        grace=given.grace_period_seconds,
        propagation=policy,
        preconditions=given.preconditions or Preconditions(),
    )


_DIGITS = 20
"""Of the largest number of 64 bits."""


def parse_revision(text: str) -> int:
    """A resourceVersion that a client sent; 400 if it is no number of 64 bits."""
    # `isdigit` alone accepts digits of other scripts.
    is_number = text.isascii() and text.isdigit()
    # Python refuses to read a number of thousands of digits: the length is looked at first.
    if is_number and len(text.lstrip("0")) <= _DIGITS and int(text) < 1 << 64:
        return int(text)
    problem = "value out of range" if is_number else "invalid syntax"
    quoted = fields.quote(text)
    raise bad_request(
        f"invalid resource version: resourceVersion: Invalid value: {quoted}: strconv.ParseUint: "
        f"parsing {quoted}: {problem}"
    )


def boolean(request: Request, name: str) -> bool:
    values = request.parameters(name)
    if not values:
        return False
    if values[0] in _TRUE or values[0] in _FALSE:
        return values[0] in _TRUE
    # Upstream reads every other text as true.
    return True


def invalid_options(kind: str, found: Iterable[FieldError]) -> ApiError:
    return ApiError(status.invalid(kind, "meta.k8s.io", "", found))


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    try:
        # Python's int() accepts more than Go's ParseInt.
        if not text.isascii() or "_" in text or text != text.strip():
            raise ValueError
        return int(text)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {fields.quote(text)}: invalid syntax") from None


def _list_errors(options: ListOptions) -> Iterable[FieldError]:
    at = Path("resourceVersionMatch")
    if options.initial_events is not None:
        yield fields.forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list")
    if not options.match:
        return
    if not options.resource_version:
        yield fields.forbidden(at, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if options.continue_:
        yield fields.forbidden(at, "resourceVersionMatch is forbidden when continue is provided")
    if options.match not in _MATCHES:
        yield fields.not_supported(at, options.match, (*_MATCHES, ""))
    if options.match == EXACT and options.resource_version == "0":
        yield fields.forbidden(at, 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')


def _watch_errors(options: ListOptions) -> Iterable[FieldError]:
    at = Path("resourceVersionMatch")
    if options.initial_events is not None and options.match != NOT_OLDER_THAN:
        yield fields.forbidden(at, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}")
    if not options.match:
        return
    if options.initial_events is None:
        yield fields.forbidden(at, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if options.match != NOT_OLDER_THAN:
        yield fields.not_supported(at, options.match, (NOT_OLDER_THAN,))
    if options.continue_:
        yield fields.forbidden(at, "resourceVersionMatch is forbidden when continue is provided")


def _dry_run_errors(values: Iterable[str]) -> Iterable[FieldError]:
    wrong = [value for value in values if value != "All"]
    if wrong:
        yield fields.not_supported(Path("dryRun"), list(values), ("All",))


def _manager_errors(manager: str) -> Iterable[FieldError]:
    at = Path("fieldManager")
    if len(manager) > 128:
        yield fields.too_long(at, 128)
    if not manager.isprintable():
        yield fields.invalid(at, manager, "should only contain printable characters")


def _delete_body(body: Any) -> _DeleteBody:
    try:
        return msgspec.convert(body, _DeleteBody)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions cannot be read: {error}") from None


def _delete_query(request: Request) -> _DeleteBody:
    orphan = boolean(request, "orphanDependents") if request.parameters("orphanDependents") else None
    return _DeleteBody(
        grace_period_seconds=_number(request, "gracePeriodSeconds"),
        orphan_dependents=orphan,
        propagation_policy=request.parameter("propagationPolicy") or None,
    )
