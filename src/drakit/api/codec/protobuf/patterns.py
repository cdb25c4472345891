"""Write the messages of objects that differ in a few texts only, as the pods of a list do, without reading their JSON.

In:  the JSON of an object as the server stores it, and the object as plain data if it is unlike all before.
Out: its message, the same bytes that `writers` makes.

A pattern is learned from two objects with the same keys, numbers and lengths of lists: the texts that differ are its
gaps. The JSON of a third object is compared with what is between the gaps, byte by byte, and gives their contents; the
message is what is between the gaps of the message, with the lengths around them. An object that does not fit is
written as usual, and widens the pattern or begins another one.

A pod of 5 KB takes a tenth of the time of reading and writing it. No pattern is trusted: one that does not make the
message of the object that it was learned from, byte by byte, is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from drakit.api.codec.protobuf.scalarreaders import read_varint
from drakit.api.codec.protobuf.scalarwriters import LENGTHS, WRITERS, encode_json, sized, varint
from drakit.api.codec.protobuf.table import INLINE, LIST, MAP, messages

_OPEN, _CLOSE = "\ue000", "\ue001"  # of private use: around the number of a gap in the outline of a pattern
_MARK = _OPEN.encode()
_GAP = re.compile(f"{_OPEN}([0-9]+){_CLOSE}".encode())
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MOST_PATTERNS = 8
_MOST_GAPS = 200
_MOST_LAYOUTS = 16
_LONGEST = 16 * 1024
"""Bytes of an object that is compared with patterns. Those of one kind take 5 MB at the very most."""
_OF_ONE_SIZE = frozenset({"time", "microtime"})
_MOST_WRITTEN, _LONGEST_WRITTEN = 4096, 40
_FIRST_LESSONS = 8
_MATCHED_PER_LESSON = 20
"""To learn a pattern takes the time that a dozen objects save which match it, so there is a lesson for every twenty."""


class _Unlike(Exception):
    """Two objects have no pattern in common."""


class _Gap(NamedTuple):
    """A text that differs, in a field of this type. Times take the same `size` in all objects; 0 if it may differ."""

    number: int
    type: str
    size: int = 0


class _Node(NamedTuple):
    """A message whose length differs, with that length before it."""

    parts: Sequence[Part]


Part = bytes | _Gap | _Node


class Pattern:
    """What objects that differ in some texts have in common. `outline` is such an object with gaps for the texts."""

    def __init__(self, message: str, outline: Mapping[str, Any], text: bytes, written: bytes) -> None:
        self.outline = outline
        self._first, *rest = _GAP.split(encode_json(outline))
        # A gap ends where the next byte of the outline comes for the first time: it has no quotes in it.
        self._between = [(literal[:1], literal, len(literal)) for literal in rest[1::2]]
        self._typed: list[tuple[int, Callable[[bytes], bytes], int]] = []
        """Gaps whose content does not stand in the message as it is, what makes the bytes of it, and their number."""
        self._steps: list[tuple[bytes, Callable[[list[bytes]], Any]]] = []
        """For each node, inner ones first: its bytes, and the values that belong into them."""
        self._layouts: dict[int, _Layout] = {}
        """By the length of the object's JSON, for lengths that came twice in a row."""
        self._last_length = 0
        _, start = read_varint(written, 0)
        self._root = _Node(list(_parts(message, written, start, len(written), outline)))
        used = self._add_steps(self._root)
        # A text that the message does not have, or has in a place that was not found, must not differ.
        if len(used) > _MOST_GAPS or sorted(used) != list(range(len(self._between))) or self.write(text) != written:
            raise _Unlike

    def write(self, text: bytes) -> bytes | None:
        """The message with its length before it; None if the object has another pattern."""
        layout = self._layouts.get(len(text))
        made = layout.write(text) if layout is not None else None
        return self._compare(text) if made is None else made

    def _compare(self, text: bytes) -> bytes | None:
        if not text.startswith(self._first):
            return None
        at, contents = len(self._first), []
        for end, literal, size in self._between:
            stop = text.find(end, at)
            if stop < 0 or not text.startswith(literal, stop):
                return None
            contents.append(text[at:stop])
            at = stop + size
        if at != len(text) or not _is_plain(contents):
            return None
        # The contents of the gaps, their lengths, and the messages made so far: steps choose from them.
        values = [*contents, *map(_length, map(len, contents))]
        for number, write, size in self._typed:
            # Nothing is not the same as an empty text in every place where such a value may stand.
            if not values[number]:
                return None
            made = values[number] = write(values[number])
            if size and len(made) != size:
                return None
        if len(text) == self._last_length:
            self._add_layout(text, contents, [len(each) for each in values[: len(contents)]])
        self._last_length = len(text)
        for template, chosen in self._steps:
            made = template % chosen(values)
            values.append(LENGTHS[len(made)] + made)
        return values[-1]

    def _add_layout(self, text: bytes, contents: Sequence[bytes], sizes: Sequence[int]) -> None:
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        literals = [literal for _, literal, _ in self._between]
        typed = [(number, write, sizes[number]) for number, write, _ in self._typed]
        self._layouts[len(text)] = _Layout(self._first, literals, contents, typed, _flat(self._root, sizes))

    def _add_steps(self, node: _Node) -> list[int]:
        """Returns the numbers of the gaps in a message."""
        count, used = len(self._between), []
        template: list[bytes] = []
        chosen: list[int] = []
        for part in node.parts:
            match part:
                case bytes():
                    template.append(_escaped(part))
                case _Node():
                    used += self._add_steps(part)
                    template.append(b"%b")
                    chosen.append(2 * count + len(self._steps) - 1)
                case _Gap(number, "string"):
                    used.append(number)
                    template.append(b"%b%b")
                    chosen += (count + number, number)
                case _Gap(number, type_, size):
                    used.append(number)
                    template.append(b"%b")
                    chosen.append(number)
                    if type_ != "raw":
                        self._typed.append((number, _written(type_).__getitem__, size))
        if not chosen:
            raise _Unlike
        self._steps.append((b"".join(template), itemgetter(*chosen)))
        return used


_length = LENGTHS.__getitem__


class _Layout:
    """A pattern whose gaps have certain lengths, as in most objects that follow each other in a list.

    Everything has its place then: one call cuts the contents out of the JSON, one puts them back to compare all that
    is between them, one puts them into the message. That takes a third of the time of going from gap to gap.
    """

    def __init__(
        self,
        first: bytes,
        literals: Sequence[bytes],
        contents: Sequence[bytes],
        typed: Sequence[tuple[int, Callable[[bytes], bytes], int]],
        message: _Flat,
    ) -> None:
        pieces = zip(contents, literals, strict=True)
        places = "".join(f"{len(content)}s{len(literal)}x" for content, literal in pieces)
        self._cut = Struct(f"{len(first)}x{places}").unpack
        self._text = b"%b".join(map(_escaped, (first, *literals)))
        self._typed = typed
        self._message = message.template
        self._chosen: Callable[[list[bytes]], object] = itemgetter(*message.chosen)

    def write(self, text: bytes) -> bytes | None:
        """The message of a JSON of this length; None if the gaps have other lengths or it has another pattern."""
        contents = self._cut(text)
        if self._text % contents != text or not _is_plain(contents):
            return None
        values = list(contents)
        for number, write, size in self._typed:
            made = values[number] = write(values[number])
            if len(made) != size:
                return None
        return self._message % self._chosen(values)


class _Flat(NamedTuple):
    """A message whose parts have known sizes: its bytes, the values that belong into them, and its size."""

    template: bytes
    chosen: list[int]
    size: int


def _flat(node: _Node, sizes: Sequence[int]) -> _Flat:
    """With its length before it."""
    template, chosen, size = [], [], 0
    for part in node.parts:
        match part:
            case bytes():
                template.append(_escaped(part))
                size += len(part)
            case _Node():
                inner = _flat(part, sizes)
                template.append(inner.template)
                chosen += inner.chosen
                size += inner.size
            case _Gap(number, type_):
                length = LENGTHS[sizes[number]] if type_ == "string" else b""
                template += (_escaped(length), b"%b")
                chosen.append(number)
                size += len(length) + sizes[number]
    length = LENGTHS[size]
    return _Flat(_escaped(length) + b"".join(template), chosen, len(length) + size)


def _escaped(literal: bytes) -> bytes:
    return literal.replace(b"%", b"%%")


def _is_plain(contents: Sequence[bytes]) -> bool:
    """A text with escapes is not what it stands for, and one with quotes has ended before."""
    joined = b"".join(contents)
    return b"\\" not in joined and b'"' not in joined


class _Written(dict[bytes, bytes]):
    """Values of one type as they were written. The same times come again and again; what is long does not."""

    def __init__(self, write: Callable[[Any], bytes]) -> None:
        self._write = write

    def __missing__(self, content: bytes) -> bytes:
        made = self._write(content.decode())
        if len(content) <= _LONGEST_WRITTEN:
            if len(self) >= _MOST_WRITTEN:
                self.clear()
            self[content] = made
        return made


@cache
def _written(type_: str) -> _Written:
    return _Written(WRITERS[type_])


def _parts(message: str, data: bytes, at: int, end: int, outline: Mapping[str, Any]) -> Iterator[Part]:
    """Go through a message and the outline of its object together, to find where the gaps stand in the message."""
    fields = {field.number: field for field in messages()[message]}
    seen: dict[int, int] = {}
    while at < end:
        start = at
        tag, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if not tag & 7:  # a number, and there are no gaps in numbers
            yield data[start:at]
            continue
        field, stop = fields[tag >> 3], at + size
        value: Any = outline if field.form == INLINE else outline.get(field.name)
        if field.form == LIST:
            index = seen[tag] = seen.get(tag, -1) + 1
            value = value[index] if value else None
        yield varint(tag)
        yield from (_entry if field.form == MAP else _value)(field.type, data, at, stop, value)
        at = stop


def _entry(type_: str, data: bytes, at: int, end: int, outline: Any) -> Sequence[Part]:
    """Key and value of a map. A key that is a gap is not found: it would change the order of the map."""
    _, at = read_varint(data, at)
    size, at = read_varint(data, at)
    key = data[at : at + size]
    parts: list[Part] = [b"\x0a" + sized(key)]
    value = outline[key.decode()]
    if at + size < end:
        tag, at = read_varint(data, at + size)
        _, at = read_varint(data, at)
        parts += (varint(tag), *_value(type_, data, at, end, value))
    return _with_length(parts)


def _value(type_: str, data: bytes, at: int, end: int, value: Any) -> Sequence[Part]:
    if type_ == "raw" and value is not None:
        return _with_length([b"\x0a", *_with_length(list(_raw(encode_json(value))))])
    if isinstance(value, str) and value.startswith(_OPEN):
        return [_Gap(int(value[1:-1]), type_, len(sized(data[at:end])) if type_ in _OF_ONE_SIZE else 0)]
    if type_ in WRITERS or value is None or _MARK not in encode_json(value):
        return [sized(data[at:end])]
    return _with_length(list(_parts(type_, data, at, end, value)))


def _raw(text: bytes) -> Iterator[Part]:
    """JSON that stands in the message as it is."""
    for index, part in enumerate(_GAP.split(text)):
        yield _Gap(int(part), "raw") if index % 2 else part


def _with_length(parts: Sequence[Part]) -> Sequence[Part]:
    """A message with its length before it. If that is the same in all objects, it is part of what is around it."""
    sizes = [len(part) if isinstance(part, bytes) else part.size if isinstance(part, _Gap) else 0 for part in parts]
    return [varint(sum(sizes)), *parts] if all(sizes) else [_Node(parts)]


class Patterns:
    """The patterns of one kind of objects. Threads may share them: tuples of patterns are replaced, never changed."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._patterns: tuple[Pattern, ...] = ()
        """The one that matched last is the first."""
        self._unlike: Mapping[str, Any] | None = None
        """The last object that had no pattern."""
        self._matched = 0
        self._lessons = 0

    def write(self, text: bytes) -> bytes | None:
        """The message with its length before it; None if the object has no pattern yet."""
        if len(text) > _LONGEST:
            return None
        patterns = self._patterns
        for pattern in patterns:
            made = pattern.write(text)
            if made is not None:
                if pattern is not patterns[0]:
                    self._patterns = (pattern, *(each for each in patterns if each is not pattern))
                self._matched += 1
                return made
        return None

    def learn(self, text: bytes, written: bytes) -> None:
        """Remember an object without a pattern, and its message."""
        if len(text) > _LONGEST or self._lessons >= _FIRST_LESSONS + self._matched // _MATCHED_PER_LESSON:
            return
        self._lessons += 1
        if _MARK in text:
            return
        document, patterns = msgspec.json.decode(text), self._patterns
        for pattern in patterns:
            wider = self._pattern(pattern.outline, text, document, written)
            if wider is not None:
                self._patterns = (wider, *(each for each in patterns if each is not pattern))
                return
        made = self._pattern(self._unlike, text, document, written) if self._unlike is not None else None
        if made is not None:
            self._patterns = (made, *patterns[: _MOST_PATTERNS - 1])
        self._unlike = document

    def _pattern(
        self, outline: Mapping[str, Any], text: bytes, document: Mapping[str, Any], written: bytes
    ) -> Pattern | None:
        try:
            return Pattern(self._message, _Gaps().between(outline, document), text, written)
        except (_Unlike, LookupError):
            return None


class _Gaps:
    """Numbers the gaps of an outline, in the order of the text."""

    def __init__(self) -> None:
        self._count = 0

    def between(self, one: Any, other: Any) -> Any:
        """What two objects have in common, with gaps for texts that differ, and for times, which soon will."""
        if one.__class__ is not other.__class__:
            raise _Unlike
        if isinstance(one, str):
            return one if one == other and not _TIME.fullmatch(one) else self._gap()
        if isinstance(one, dict):
            if len(one) != len(other):
                raise _Unlike
            pairs = zip(one.items(), other.items(), strict=True)
            return {self._key(key, name): self.between(value, its) for (key, value), (name, its) in pairs}
        if isinstance(one, list):
            if len(one) != len(other):
                raise _Unlike
            return [self.between(value, its) for value, its in zip(one, other, strict=True)]
        if one != other:
            raise _Unlike
        return one

    def _key(self, one: str, other: str) -> str:
        """Keys of managed fields have values in them: the gap is in the middle of such a key."""
        if one == other:
            return one
        before = _common(one, other)
        after = _common(one[len(before) :][::-1], other[len(before) :][::-1])[::-1]
        # The whole value is a gap, from quote to quote: the next one may differ in another part of it.
        return before[: before.rfind('"') + 1] + self._gap() + after[after.find('"') :] * ('"' in after)

    def _gap(self) -> str:
        self._count += 1
        return f"{_OPEN}{self._count - 1}{_CLOSE}"


def _common(one: str, other: str) -> str:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:index]
    return min(one, other, key=len)
