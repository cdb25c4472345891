"""How answers go out: a head together with what is written right behind it, and never held back for longer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from drakit.apiserver.http.protocol import PIECE, _Answers
from tests.apiserver.calls import on_loop

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Wire(asyncio.Transport):
    """Keeps what each write sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.sent.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def answering() -> tuple[Wire, _Answers]:
    wire = Wire()
    answers = _Answers(wire, asyncio.get_running_loop())
    answers.begin()
    return wire, answers


@on_loop
async def test_a_head_and_its_body_go_in_one_piece() -> None:
    wire, answers = answering()
    for body in (b"short", b"x" * PIECE * 2, b""):
        answers.begin()
        answers.write(HEAD)
        answers.write(body)
        assert wire.sent.pop() == HEAD + body
    await asyncio.sleep(0)
    assert wire.sent == []


@on_loop
async def test_the_next_pieces_of_a_body_are_not_held_back() -> None:
    wire, answers = answering()
    answers.write(HEAD)
    answers.write(b"1")
    answers.write(b"2")
    answers.write(b"3")
    assert wire.sent == [HEAD + b"1", b"2", b"3"]


@on_loop
async def test_a_head_without_a_body_goes_at_the_end_of_the_turn() -> None:
    wire, answers = answering()
    answers.write(HEAD)
    assert wire.sent == []
    await asyncio.sleep(0)
    assert wire.sent == [HEAD]


@on_loop
async def test_a_head_goes_before_the_connection_is_closed() -> None:
    wire, answers = answering()
    answers.write(HEAD)
    answers.close()
    assert (wire.sent, wire.closed) == ([HEAD], True)


@on_loop
async def test_a_head_for_a_client_that_has_gone_is_dropped() -> None:
    wire, answers = answering()
    answers.write(HEAD)
    wire.closed = True
    await asyncio.sleep(0)
    assert wire.sent == []
