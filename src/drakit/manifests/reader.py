"""From texts to objects.

In:  paths, or the content of one text.
Out: objects with defaults, and problems with line and column. A value of a wrong type is left out after it was told, so
     that everything else in its object is told too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from drakit.api import Partial, decode_plain, set_defaults
from drakit.api.codec.documents import Decoded, Object, parse_documents, read_text
from drakit.api.registry import Kind, find_kind
from drakit.api.schemas.shapes import Place, path_of
from drakit.api.text.problems import Malformed, NotAnObject, WrongType
from drakit.base.clock import RealClock
from drakit.base.errors import DecodeError
from drakit.base.structs import Model
from drakit.manifests.files import read_files
from drakit.manifests.objects import Manifest, ManifestText
from drakit.manifests.omission import below, without
from drakit.manifests.positions import find_positions
from drakit.manifests.problems import BadManifests, ManifestProblem
from drakit.manifests.snapshots import is_snapshot, snapshot_items

OWN_GROUPS = ("resource.k8s.io", "scheduling.k8s.io")
"""Groups whose kinds are all known: an unknown kind of theirs is an error, one of any other group is skipped."""
DEFAULT_NAMESPACE = "default"
M = TypeVar("M", bound=Model)
Progress = Callable[[Sequence[Any], str], Iterable[Any]]
"""Hands out the steps of some work one by one, and may show how far it has come."""


class Manifests:
    """All objects that were read, and all problems that were met, each with its file and line."""

    def __init__(self, texts: Iterable[ManifestText], problems: Iterable[ManifestProblem] = ()) -> None:
        self._contents: dict[str, str] = {}
        found: list[Manifest] = []
        told = list(problems)
        self.skipped = 0
        for text in texts:
            self._contents[text.name] = text.content
            found += text.manifests
            told += text.problems
            self.skipped += text.skipped
        self.objects = tuple(found)
        self.problems = tuple(told)

    def of(self, model: type[M]) -> list[M]:
        """The objects of one kind, in the order of the files."""
        return [each.view for each in self.objects if isinstance(each.view, model)]

    def locate(self, problems: Iterable[ManifestProblem]) -> list[ManifestProblem]:
        """The problems with line and column, where their text has them."""
        problems = list(problems)
        fields: dict[str, set[tuple[int, str]]] = {}
        for each in problems:
            if not each.line and each.source in self._contents:
                fields.setdefault(each.source, set()).add((each.document, each.field))
        found = {source: find_positions(self._contents[source], wanted) for source, wanted in fields.items()}
        return [_positioned(each, found.get(each.source, {})) for each in problems]


def read_manifests(
    paths: Iterable[str | Path], *, now: datetime | None = None, stdin: Callable[[], bytes] | None = None
) -> Manifests:
    """Read everything; raise BadManifests with every problem found. See `load_manifests`."""
    found = load_manifests(paths, now=now, stdin=stdin)
    problems = [*found.problems, *found.locate(repeated(found.objects))]
    if problems:
        raise BadManifests(problems)
    return found


def load_manifests(
    paths: Iterable[str | Path],
    *,
    now: datetime | None = None,
    stdin: Callable[[], bytes] | None = None,
    progress: Progress | None = None,
) -> Manifests:
    """Read everything that can be read; what cannot is among the problems.

    `now` stands in where a server would put the time. `stdin` is what the path `-` stands for.
    """
    files = read_files(paths, stdin=stdin)
    moment = now or RealClock().now()
    texts: list[ManifestText] = []
    problems = list(files.problems)
    for name, data in files.contents.items():
        try:
            texts.append(parse_manifests(name, data, now=moment, progress=progress))
        except Malformed as error:
            problems.append(malformed(name, error))
    return Manifests(texts, problems)


def malformed(name: str, error: Malformed) -> ManifestProblem:
    """A text that is neither JSON nor YAML, as a problem."""
    position = error.position
    return ManifestProblem(
        rule="malformed", source=name, reason=error.expected, line=position.line, column=position.column
    )


def parse_manifests(name: str, data: str | bytes, *, now: datetime, progress: Progress | None = None) -> ManifestText:
    """The objects of one text. Raise Malformed when it is neither JSON nor YAML."""
    content = read_text(data, name)
    documents = parse_documents(content, source=name)
    items = [(index, *item) for index, document in enumerate(documents) for item in _items(document)]
    manifests: list[Manifest] = []
    problems: list[ManifestProblem] = []
    skipped = 0
    for index, item, place in progress(items, f"reading {name}") if progress else items:
        if _is_foreign(item):
            skipped += 1
            continue
        manifest, wrong = _read_item(name, index, place, item, now)
        manifests += [manifest] if manifest else []
        problems += wrong
    positions = find_positions(content, {(each.document, each.field) for each in problems}) if problems else {}
    located = tuple(_positioned(each, positions) for each in problems)
    return ManifestText(name, content, tuple(manifests), located, skipped)


def repeated(manifests: Iterable[Manifest]) -> Iterator[ManifestProblem]:
    """A problem for each object that occurs a second time."""
    seen: dict[object, Manifest] = {}
    for each in manifests:
        first = seen.setdefault(each.identity, each)
        if first is not each:
            reason = f"{each.title}: is there twice, first as {first.place}"
            yield each.problem("repeated-object", "metadata.name", reason)


def _read_item(
    source: str, index: int, place: Place, item: Any, now: datetime
) -> tuple[Manifest | None, list[ManifestProblem]]:
    prefix, called = path_of(place), _called(item)
    problems: list[ManifestProblem] = []

    def tell(rule: str, path: str, reason: str) -> None:
        problems.append(
            ManifestProblem(
                rule=rule, source=source, reason=reason, object=called, document=index, prefix=prefix, path=path
            )
        )

    decoded, omitted = _decode(item, place, tell)
    if decoded is None:
        return None, problems
    for problem in decoded.problems:
        tell(f"{problem.kind}-field", below(problem.path, prefix), "")
    manifest = Manifest(
        source=source,
        index=index,
        prefix=prefix,
        kind=decoded.kind,
        version=decoded.version,
        document=item,
        object=set_defaults(_placed(decoded.object, decoded.kind), now),
        reported=tuple(each.path for each in problems),
        omitted=tuple(omitted),
    )
    return manifest, problems


def _decode(item: Any, place: Place, tell: Callable[[str, str, str], None]) -> tuple[Decoded | None, list[str]]:
    """The object without values of a wrong type, and the paths of those."""
    omitted: list[str] = []
    # Each round leaves one value out, so that every wrong type is reported and not only the first.
    while True:
        try:
            return decode_plain(item, place=place), omitted
        except WrongType as error:
            path = below(error.path, path_of(place))
            tell("wrong-type", path, error.reason)
            if path in omitted or not path:
                return None, omitted
            omitted.append(path)
            item = without(item, path)
        except NotAnObject as error:
            tell("unknown-kind", "kind" if isinstance(item, dict) else "", str(error))
            return None, omitted
        except DecodeError as error:
            tell("undecodable", "", str(error))
            return None, omitted


def _positioned(problem: ManifestProblem, positions: dict[tuple[int, str], tuple[int, int]]) -> ManifestProblem:
    line, column = positions.get((problem.document, problem.field), (0, 0))
    return replace(problem, line=line, column=column) if line else problem


def _called(item: Any) -> str:
    """Kind and name of an object that could not be read, as far as it has them."""
    kind = item.get("kind") if isinstance(item, dict) else None
    meta = item.get("metadata") if isinstance(item, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    return " ".join(part for part in (kind, name) if isinstance(part, str))


def _items(document: Any) -> Iterator[tuple[Any, Place]]:
    """The document itself, or what a list holds, with its place."""
    if is_snapshot(document):
        yield from ((item, _item_place(index)) for index, item in enumerate(snapshot_items(document)))
        return
    kind = document.get("kind") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield document, None
        return
    # Items of a typed list, such as PodList, come from a server without apiVersion and kind.
    types = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        yield ({**types, **item} if isinstance(item, dict) else item), _item_place(index)


def _item_place(index: int) -> Place:
    return ((None, "items", ""), index, "")


def _is_foreign(item: Any) -> bool:
    """Whether the item is of an unknown kind outside of our groups: it is skipped, and is no error."""
    if not isinstance(item, dict) or not item.get("kind") or not isinstance(item.get("apiVersion"), str):
        return False
    group = item["apiVersion"].rpartition("/")[0]
    if group in OWN_GROUPS or not item["apiVersion"]:
        return False
    return find_kind(item["apiVersion"], str(item["kind"])) is None


def _placed(value: Object, kind: Kind) -> Object:
    """The object in the namespace that kubectl would give it."""
    view: Any = value.view if isinstance(value, Partial) else value
    if not kind.namespaced or view.metadata.namespace:
        return value
    if not isinstance(value, Partial):
        moved: Model = replace(view, metadata=replace(view.metadata, namespace=DEFAULT_NAMESPACE))
        return moved
    meta = {**(value.document.get("metadata") or {}), "namespace": DEFAULT_NAMESPACE}
    return Partial.of(type(view), {**value.document, "metadata": meta})
