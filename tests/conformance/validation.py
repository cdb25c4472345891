"""Compare validation with the recorded answers of a server: `python -m tests.conformance.validation FILE…`.

The recorded requests run against a stand-in for the server: objects in a dict, decoding, defaults and validation for
real, nothing else. What was decided elsewhere (decoding, routing, admission, conflicts) shows in the recorded code
and is left to those who decide it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from drakit.api import ObjectMeta, Partial, ResourceClaim, decode_plain, set_defaults, to_plain, to_wire
from drakit.api.codec.documents import parse_documents
from drakit.api.registry import Kind, find_plural
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.validation import (
    Context,
    drop_deallocated_devices,
    drop_disabled_fields,
    empty_lists,
    validate_create,
    validate_status_update,
    validate_update,
)
from tests.conformance.vectors import Case, read_vectors

DATA = Path(__file__).parent / "data" / "api"
GROUPS = ("validation/", "update/", "conversion", "defaulting", "authz/admin-access")
ACCEPTED = (200, 201)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = {"${ID}": "x0a1b0001", "${NS}": "n0a1b0001"}
ADMIN = "resource.kubernetes.io/admin-access"

Plain = dict[str, Any]
Verdict = tuple[FieldError, ...]
Cause = tuple[str, str, str]


def substitute(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with `${NAME}` replaced everywhere, in keys too."""
    text = json.dumps(value)
    for name, replacement in variables.items():
        text = text.replace(name, json.dumps(replacement)[1:-1])
    return json.loads(text)


def merge(target: Any, patch: Any, *, strategic: bool = False) -> Any:
    """A merge patch; a strategic one also merges lists of named things, new ones first."""
    if isinstance(patch, dict):
        base = target if isinstance(target, dict) else {}
        merged = {key: value for key, value in base.items() if patch.get(key, value) is not None}
        changes = {key: value for key, value in patch.items() if value is not None}
        return {**merged, **{key: merge(base.get(key), value, strategic=strategic) for key, value in changes.items()}}
    if strategic and isinstance(patch, list) and isinstance(target, list):
        known = {item.get("name"): item for item in target}
        changed = [merge(known.pop(item.get("name"), None), item, strategic=True) for item in patch]
        return changed + list(known.values())
    return patch


class StandIn:
    """Objects by path. Invariant: what is stored was accepted by validation."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.revision = 0

    def run(self, step: Plain) -> tuple[Verdict, Plain]:
        """Errors and, for a step that was accepted, the object on the wire."""
        path, subresource = step["path"], ""
        if path.endswith("/status"):
            path, subresource = path.removesuffix("/status"), "status"
        match step["method"]:
            case "POST":
                return self.create(path, self.body(step))
            case "PUT":
                return self.update(path, subresource, self.body(step))
            case "PATCH":
                strategic = "strategic" in step["headers"]["Content-Type"]
                before = to_wire(self.objects[self.key(path)], self.version(path))
                return self.update(path, subresource, merge(before, self.body(step), strategic=strategic))
            case "DELETE":
                return self.delete(path)
        found = self.objects.get(self.key(path))
        return (), to_wire(found, self.version(path)) if found is not None else {}

    @staticmethod
    def body(step: Plain) -> Plain:
        body: Plain = parse_documents(step["raw"])[0] if "raw" in step else step["body"]
        return body

    def create(self, path: str, body: Plain) -> tuple[Verdict, Plain]:
        kind, namespace = self.kind(path), self.namespace(path)
        obj = self.decode(body, kind, self.version(path))
        meta = self.meta(obj)
        meta = replace(
            meta,
            name=meta.name or (meta.generate_name and meta.generate_name + "z2x4w"),
            namespace=meta.namespace or namespace,
            uid="22222222-2222-4222-8222-222222222222",
            generation=0,
            resource_version="",
            deletion_timestamp=None,
        )
        obj = self.with_parts(obj, meta, status_of=None)
        obj = drop_disabled_fields(obj, None, FeatureGates.all_on())
        errors = validate_create(obj, self.context(body, namespace))
        return self.store(f"{path}/{meta.name}", obj, errors)

    def update(self, path: str, subresource: str, body: Plain) -> tuple[Verdict, Plain]:
        old = self.objects[self.key(path)]
        before = self.meta(old)
        new = self.decode(body, self.kind(path), self.version(path))
        conditional = getattr(old, "kind", "") == "ResourcePoolStatusRequest"
        meta = self.meta(new)
        meta = replace(
            meta,
            uid=meta.uid or before.uid,
            namespace=meta.namespace or before.namespace,
            resource_version=meta.resource_version or ("" if conditional else before.resource_version),
            creation_timestamp=before.creation_timestamp,
            generation=before.generation,
            deletion_timestamp=before.deletion_timestamp or meta.deletion_timestamp,
            deletion_grace_period_seconds=before.deletion_grace_period_seconds,
        )
        context = self.context(body, before.namespace)
        if subresource:
            version = meta.resource_version
            new = self.with_parts(old, replace(before, resource_version=version), status_of=new)
            if isinstance(new, ResourceClaim):
                new = drop_deallocated_devices(new, old)
            new = drop_disabled_fields(new, old, FeatureGates.all_on())
            return self.store(path, new, validate_status_update(new, old, context))
        new = drop_disabled_fields(self.with_parts(new, meta, status_of=old), old, FeatureGates.all_on())
        return self.store(path, new, validate_update(new, old, context))

    def delete(self, path: str) -> tuple[Verdict, Plain]:
        obj = self.objects[self.key(path)]
        meta = self.meta(obj)
        if not meta.finalizers:
            return (), to_wire(self.objects.pop(self.key(path)), self.version(path))
        deleted = replace(meta, deletion_timestamp="2026-01-02T03:04:05Z", deletion_grace_period_seconds=0)
        return self.store(path, self.with_parts(obj, deleted, status_of=obj), ())

    def store(self, path: str, obj: Any, errors: Verdict) -> tuple[Verdict, Plain]:
        if errors:
            return errors, {}
        self.revision += 1
        meta = replace(self.meta(obj), resource_version=str(self.revision))
        self.objects[self.key(path)] = self.with_parts(obj, meta, status_of=obj)
        return (), to_wire(self.objects[self.key(path)], self.version(path))

    def decode(self, body: Plain, kind: Kind, version: str) -> Any:
        document = {"apiVersion": kind.group_version(version), "kind": kind.kind, **body}
        return set_defaults(decode_plain(document).object, NOW)

    def context(self, body: Plain, namespace: str) -> Context:
        found = self.objects.get(f"/api/v1/namespaces/{namespace}")
        admin = found is not None and self.meta(found).labels.get(ADMIN) == "true"
        return Context(gates=FeatureGates.all_on(), empty_lists=empty_lists(body), admin_namespace=admin)

    @staticmethod
    def with_parts(obj: Any, meta: ObjectMeta, *, status_of: Any) -> Any:
        """The object with other metadata, and with the status of another one, or none."""
        if isinstance(obj, Partial):
            document = {**obj.document, "metadata": to_plain(meta)}
            status = status_of.document.get("status") if status_of is not None else None
            return Partial.of(type(obj.view), {**document, "status": status or {}})
        if not hasattr(obj, "status"):
            return replace(obj, metadata=meta)
        return replace(obj, metadata=meta, status=status_of.status if status_of is not None else type(obj)().status)

    @staticmethod
    def meta(obj: Any) -> ObjectMeta:
        meta: ObjectMeta = obj.view.metadata if isinstance(obj, Partial) else obj.metadata
        return meta

    @staticmethod
    def version(path: str) -> str:
        return path.split("/")[2] if path.startswith("/api/") else path.split("/")[3]

    @staticmethod
    def key(path: str) -> str:
        """An object is the same in every version."""
        parts = path.split("/")
        return path if parts[1] == "api" else "/".join(parts[:3] + parts[4:])

    @staticmethod
    def namespace(path: str) -> str:
        parts = path.split("/namespaces/")
        return parts[1].split("/")[0] if len(parts) > 1 else ""

    @staticmethod
    def kind(path: str) -> Kind:
        parts = path.strip("/").split("/")
        group_version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        kind = find_plural(group_version, rest[0])
        assert kind is not None, path
        return kind


def recorded_causes(expected: Plain, variables: Mapping[str, str]) -> set[Cause]:
    causes = ((expected.get("body") or {}).get("details") or {}).get("causes") or ()
    return {
        (cause.get("field", ""), cause["reason"], cause["message"]) for cause in substitute(list(causes), variables)
    }


def is_validation(expected: Plain) -> bool:
    """Whether validation decided: the object was accepted, or refused for its content and not for the patch."""
    if expected["code"] in ACCEPTED:
        return True
    causes = ((expected.get("body") or {}).get("details") or {}).get("causes") or ()
    return expected["code"] == 422 and [cause.get("field") for cause in causes] != ["patch"]


class Outcome:
    """How one case went: whether each verdict agrees, and how many texts do to the letter."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self.decided = 0
        self.refused = 0
        self.same_texts = 0
        self.other_texts: list[str] = []

    def compare(self, index: int, errors: Verdict, expected: Plain, variables: Mapping[str, str]) -> None:
        self.decided += 1
        recorded = recorded_causes(expected, variables)
        ours = {(str(error.path), error.kind.reason, error.body) for error in errors}
        if {cause[:2] for cause in recorded} != {cause[:2] for cause in ours}:
            self.differences.append(f"step {index}: recorded {sorted(recorded)}, ours {sorted(ours)}")
        if recorded:
            self.refused += 1
            self.same_texts += recorded == ours
            if recorded != ours:
                self.other_texts.append(f"recorded {sorted(recorded - ours)}, ours {sorted(ours - recorded)}")


def replay(case: Case) -> Outcome:
    server, outcome, variables = StandIn(), Outcome(), dict(NAMES)
    for step in case.get("setup") or ():
        errors, answer = server.run(substitute(step, variables))
        if errors:
            outcome.differences.append(f"setup: {[str(error) for error in errors]}")
            return outcome
        _capture(step, answer, variables)
    for index, (step, expected) in enumerate(zip(case["steps"], case["expect"], strict=True)):
        if not is_validation(expected):
            continue
        errors, answer = server.run(substitute(step, variables))
        outcome.compare(index, errors, expected, variables)
        _capture(step, answer, variables)
    return outcome


def _capture(step: Plain, answer: Any, variables: dict[str, str]) -> None:
    for name, path in (step.get("capture") or {}).items():
        value = answer
        for part in path.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        variables["${%s}" % name] = str(value)  # noqa: UP031 - braces


def cases(files: list[str]) -> Iterator[Case]:
    found = files or [str(path) for path in sorted(DATA.glob("*.jsonl.gz"))]
    return (case for case in read_vectors(found) if case["group"].startswith(GROUPS))


def main(files: list[str]) -> int:
    """Print, per group, cases that agree and texts that are equal; then what differs."""
    table: dict[str, Counter[str]] = {}
    differing = []
    for case in cases(files):
        outcome = replay(case)
        row = table.setdefault(case["group"], Counter())
        row.update(cases=1, agree=not outcome.differences, refused=outcome.refused, texts=outcome.same_texts)
        differing += [f"{case['id']} {case['about']}: {each}" for each in outcome.differences]
        if "-v" in sys.argv:
            differing += [f"{case['id']} {case['about']}: text: {each}" for each in outcome.other_texts]
    for group, row in sorted(table.items()):
        print(f"{group:40} agree {row['agree']:4} of {row['cases']:4}, texts {row['texts']:4} of {row['refused']:4}")
    total = sum(table.values(), Counter())
    print(
        f"{'all':40} agree {total['agree']:4} of {total['cases']:4}, texts {total['texts']:4} of {total['refused']:4}"
    )
    print("\n".join(differing))
    return 1 if total["agree"] != total["cases"] or not total["cases"] else 0


if __name__ == "__main__":
    sys.exit(main([argument for argument in sys.argv[1:] if not argument.startswith("-")]))
