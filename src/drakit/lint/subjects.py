"""Subjects: the objects of the texts that lint looks at, each with its place.

In:  the text of a file, JSON or YAML, with any number of documents and lists.
Out: decoded objects with defaults, in the namespace that kubectl would give them; a finding for each thing that a
     server refuses to decode. Kinds of groups that have nothing to do with devices are passed over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.api import ObjectMeta, Partial, decode_plain, set_defaults
from drakit.api.codec.documents import Object, parse_documents, read_text
from drakit.api.registry import Kind, find_kind
from drakit.api.text.problems import NotAnObject, WrongType
from drakit.base.errors import DecodeError
from drakit.base.structs import Model
from drakit.lint.findings import Draft, Finding, Severity

OWN_GROUPS = ("resource.k8s.io", "scheduling.k8s.io")
DEFAULT_NAMESPACE = "default"


class Text(msgspec.Struct, frozen=True):
    """A file's name and what is in it."""

    name: str
    content: str


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An object. `prefix` leads to it in its document, when it stands in a list."""

    text: Text
    index: int
    prefix: str = ""
    kind: Kind
    version: str
    document: Mapping[str, Any]
    object: Object

    @property
    def view(self) -> Any:
        return self.object.view if isinstance(self.object, Partial) else self.object

    @property
    def metadata(self) -> ObjectMeta:
        meta: ObjectMeta = self.view.metadata
        return meta

    @property
    def title(self) -> str:
        name = self.metadata.name or f"{self.metadata.generate_name}*"
        inside = f"{self.metadata.namespace}/" if self.kind.namespaced else ""
        return f"{self.kind.kind} {inside}{name}"

    @property
    def identity(self) -> Hashable:
        """What makes it the same object as another one; one whose name is generated is like no other."""
        meta = self.metadata
        return (self.kind.qualified, meta.namespace, meta.name) if meta.name else id(self)

    def warn(self, rule: str, path: str, message: str) -> Draft:
        return self.find(Severity.WARNING, rule, path, message)

    def find(self, severity: Severity, rule: str, path: str, message: str) -> Draft:
        finding = Finding(
            severity=severity, rule=rule, source=self.text.name, object=self.title, path=path, message=message
        )
        return Draft(finding, self.index, f"{self.prefix}.{path}".strip("."))


class Reading(msgspec.Struct, frozen=True):
    """What became of a text."""

    text: Text
    subjects: tuple[Subject, ...] = ()
    drafts: tuple[Draft, ...] = ()
    skipped: int = 0


def read_subjects(name: str, data: str | bytes, now: datetime) -> Reading:
    """Raise Malformed when the text is neither JSON nor YAML."""
    text = Text(name, read_text(data, name))
    subjects: list[Subject] = []
    drafts: list[Draft] = []
    skipped = 0
    for index, document in enumerate(parse_documents(text.content, source=name)):
        for item, prefix in _items(document):
            if _is_foreign(item):
                skipped += 1
                continue
            subject, wrong = _read(text, index, prefix, item, now)
            subjects += [subject] if subject else []
            drafts += wrong
    return Reading(text, tuple(subjects), tuple(drafts), skipped)


def _read(text: Text, index: int, prefix: str, item: Any, now: datetime) -> tuple[Subject | None, list[Draft]]:
    def refuse(rule: str, path: str, message: str) -> Draft:
        finding = Finding(
            severity=Severity.ERROR, rule=rule, source=text.name, object=_called(item), path=path, message=message
        )
        return Draft(finding, index, f"{prefix}.{path}".strip("."))

    try:
        decoded = decode_plain(item)
    except WrongType as error:
        return None, [refuse("wrong-type", error.path, error.reason)]
    except NotAnObject as error:
        return None, [refuse("unknown-kind", "kind" if isinstance(item, dict) else "", str(error))]
    except DecodeError as error:
        return None, [refuse("undecodable", "", str(error))]
    placed = set_defaults(_placed(decoded.object, decoded.kind), now)
    subject = Subject(
        text=text, index=index, prefix=prefix, kind=decoded.kind, version=decoded.version, document=item, object=placed
    )
    strict = [
        subject.find(Severity.ERROR, f"{problem.kind}-field", problem.path, f'{problem.kind} field "{problem.path}"')
        for problem in decoded.problems
    ]
    return subject, strict


def _called(item: Any) -> str:
    """What an object calls itself that could not be read."""
    kind = item.get("kind") if isinstance(item, dict) else None
    meta = item.get("metadata") if isinstance(item, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    return " ".join(part for part in (kind, name) if isinstance(part, str))


def _items(document: Any) -> Iterator[tuple[Any, str]]:
    """The document itself, or what a list holds, with the path to it."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(document.get("items"), list):
        yield document, ""
        return
    types = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(document["items"]):
        yield ({**types, **item} if isinstance(item, dict) else item), f"items[{number}]"


def _is_foreign(item: Any) -> bool:
    """Whether it says of itself that it is something that lint has nothing to say about."""
    if not isinstance(item, dict) or not item.get("kind") or not isinstance(item.get("apiVersion"), str):
        return False
    group = item["apiVersion"].rpartition("/")[0]
    if group in OWN_GROUPS or not item["apiVersion"]:
        return False
    return find_kind(item["apiVersion"], str(item["kind"])) is None


def _placed(value: Object, kind: Kind) -> Object:
    view: Any = value.view if isinstance(value, Partial) else value
    if not kind.namespaced or view.metadata.namespace:
        return value
    if not isinstance(value, Partial):
        moved: Model = replace(view, metadata=replace(view.metadata, namespace=DEFAULT_NAMESPACE))
        return moved
    meta = {**(value.document.get("metadata") or {}), "namespace": DEFAULT_NAMESPACE}
    return Partial.of(type(view), {**value.document, "metadata": meta})
