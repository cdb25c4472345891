"""Manifests: the objects of files that a command works on.

In:  paths of YAML or JSON files or of folders, or `-` for standard input; lists as `kubectl get -o yaml` writes them.
Out: objects with defaults, in the order of the files; or every problem of every file, with its place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from drakit.api import ObjectMeta, ResourceClaim, ResourceClaimStatus
from drakit.api.codec.documents import Decoded, Object, decode_plain, parse_documents, read_text
from drakit.api.objects.partial import Partial
from drakit.api.registry import kind_of
from drakit.api.schemas.shapes import Place, path_of
from drakit.api.text.jsontext import key_positions as json_positions
from drakit.api.text.problems import Malformed, Problem, WrongType
from drakit.api.text.yamltext import key_positions as yaml_positions
from drakit.api.versions.defaults import set_defaults
from drakit.base.errors import DecodeError, DrakitError
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.cli.progress import tracked
from drakit.validation import Context, validate_create, validate_status_update

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
M = TypeVar("M", bound=Model)


class BadManifests(DrakitError):
    """Files that cannot be used; `problems` holds all that is wrong with them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and where it stands."""

    place: str
    object: Object

    @property
    def view(self) -> Model:
        return self.object.view if isinstance(self.object, Partial) else self.object

    @property
    def metadata(self) -> ObjectMeta:
        found: ObjectMeta = self.view.metadata  # type: ignore[attr-defined]
        return found


class Manifests:
    """All objects that were read."""

    def __init__(self, objects: Iterable[Manifest]) -> None:
        self.objects = tuple(objects)

    def of(self, model: type[M]) -> list[M]:
        """The objects of one kind, in the order of the files."""
        return [each.view for each in self.objects if isinstance(each.view, model)]

    def place(self, view: Model) -> str:
        return next((each.place for each in self.objects if each.view is view), "")


def read_manifests(paths: Iterable[str], *, gates: FeatureGates, now: datetime) -> Manifests:
    """Read everything; raise BadManifests with every problem found."""
    problems: list[str] = []
    found: list[Manifest] = []
    for name, data in _contents(paths, problems):
        found += _read_text(name, data, problems, gates=gates, now=now)
    problems += _repeated(found)
    if problems:
        raise BadManifests(problems)
    return Manifests(found)


def _contents(paths: Iterable[str], problems: list[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        if path == STDIN:
            yield "standard input", sys.stdin.buffer.read()
            continue
        files = _files(Path(path))
        if not files:
            problems.append(f"{path}: no {', '.join(SUFFIXES)} files in this folder")
        for file in files:
            try:
                yield str(file), file.read_bytes()
            except OSError as error:
                problems.append(f"{file}: {error.strerror or error}")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)


def _read_text(
    name: str, data: bytes, problems: list[str], *, gates: FeatureGates, now: datetime
) -> Iterator[Manifest]:
    try:
        text = read_text(data, name)
        documents = parse_documents(text, source=name)
    except Malformed as error:
        problems.append(str(error))
        return
    wrong: list[tuple[int, str, str]] = []
    items = [(index, item, place) for index, document in enumerate(documents) for item, place in _items(document)]
    for index, item, place in tracked(items, f"reading {name}"):
        known = len(wrong)
        decoded = _decode(item, place, index, wrong)
        if decoded is not None:
            where = f"{name}: {_title(decoded.object)}"
            ready = set_defaults(_placed(decoded.object, namespaced=decoded.kind.namespaced), now)
            told = [_below(path, place) for _, path, _ in wrong[known:]]
            broken = _broken_rules(ready, Context(gates=gates))
            problems += [f"{where}: {error}" for error in broken if not _follows(str(error.path), told)]
            yield Manifest(where, ready)
    problems += _located(name, text, wrong)


def _broken_rules(value: Object, context: Context) -> Iterator[FieldError]:
    """What a server would refuse of the kinds that matter here; the others are passed over, not judged."""
    if isinstance(value, Partial):
        return
    yield from validate_create(value, context)
    if isinstance(value, ResourceClaim) and value.status.allocation and not value.metadata.deletion_timestamp:
        unallocated = msgspec.structs.replace(value, status=ResourceClaimStatus())
        yield from validate_status_update(value, unallocated, context)


def _decode(item: Any, place: Place, index: int, wrong: list[tuple[int, str, str]]) -> Decoded | None:
    """The object; what is wrong goes to the list as index of the document, path, message.

    A value of a wrong type is left out after it was told, so that everything else is told too.
    """
    told: set[str] = set()
    while True:
        try:
            decoded = decode_plain(item, place=place)
        except WrongType as error:
            wrong.append((index, error.path, f"{error.path}: {error.reason}" if error.path else error.reason))
            path = _below(error.path, place)
            if path in told or not path:
                return None
            told.add(path)
            item = _without(item, path)
        except DecodeError as error:
            wrong.append((index, "", str(error)))
            return None
        else:
            wrong += [(index, problem.path, _message(problem)) for problem in decoded.problems]
            return decoded


def _below(path: str, place: Place) -> str:
    """The path inside the object that stands at the place."""
    return path.removeprefix(path_of(place)).removeprefix(".")


def _without(value: Any, path: str) -> Any:
    """The value with nothing at the path. Keys may have dots: the longest that fits is meant."""
    if not path:
        return None
    if isinstance(value, list) and (found := re.match(r"\[(\d+)\]\.?", path)):
        number, rest = int(found[1]), path[found.end() :]
        return [_without(each, rest) if position == number else each for position, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fitting = [key for key in value if path == key or path.startswith((f"{key}.", f"{key}["))]
    key = max(fitting, key=len, default=None)
    rest = path[len(key or "") :].removeprefix(".")
    return {each: _without(inner, rest) if each == key else inner for each, inner in value.items()}


def _follows(path: str, told: Iterable[str]) -> bool:
    """Whether a broken rule is about a place of which something else was told already."""
    return any(path.startswith(each) or each.startswith(path) for each in told)


def _message(problem: Problem) -> str:
    return f'{problem.kind} field "{problem.path}"'


def _items(document: Any) -> Iterator[tuple[Any, Place]]:
    """The document itself, or what a list of it holds."""
    kind = document.get("kind") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield document, None
        return
    types = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        place: Place = ((None, "items", ""), index, "")
        yield ({**types, **item} if isinstance(item, dict) else item), place


def _located(name: str, text: str, wrong: list[tuple[int, str, str]]) -> Iterator[str]:
    """The problems with line and column, where the place can be found."""
    paths = frozenset(path for _, path, _ in wrong if path)
    places = _positions(text, paths) if paths else {}
    for index, path, message in wrong:
        line, column = places.get((index, path), (0, 0))
        where = f"line {line}, column {column}: " if line else ""
        yield f"{name}: {where}{message}" if where or not index else f"{name}: document {index + 1}: {message}"


def _positions(text: str, paths: frozenset[str]) -> Mapping[tuple[int, str], tuple[int, int]]:
    try:
        found = list(json_positions(text, paths)) if text.lstrip().startswith("{") else []
        found = found or list(yaml_positions(text, paths))
    except Malformed:
        return {}
    return {(index, path): (line, column) for index, path, line, column in found}


def _placed(value: Object, *, namespaced: bool) -> Object:
    """The object with the namespace that kubectl would give it."""
    if isinstance(value, Partial) or not namespaced:
        return value
    meta: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    if meta.namespace:
        return value
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(meta, namespace="default"))


def _title(value: Object) -> str:
    kind = value.document["kind"] if isinstance(value, Partial) else kind_of(value).kind
    return f"{kind} {name_of(Manifest('', value).metadata)}"


def name_of(meta: ObjectMeta) -> str:
    """The name, or as much of it as is known before a server makes it up."""
    return meta.name or f"{meta.generate_name}…"


def _repeated(found: Iterable[Manifest]) -> Iterator[str]:
    seen: dict[object, str] = {}
    for each in found:
        key = (type(each.view), each.metadata.namespace, each.metadata.name)
        if not each.metadata.name:
            continue
        if key in seen:
            yield f"{each.place}: is there twice, first as {seen[key]}"
        seen.setdefault(key, each.place)
