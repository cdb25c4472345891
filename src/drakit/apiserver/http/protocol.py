"""HTTP/1.1 on one connection: what uvicorn's protocol lacks.

In:  bytes of a client, a piece at a time, when it is the client's turn.
Out: requests for the application; its answers. A client that is slow, large or does not read is cut off in time.

A client may send a request at the moment at which the server stops. Closing the connection would leave it in doubt
whether the request was handled. So a connection that waits for a request is told 408 first: that is the answer to a
request which crosses it, and says that nothing was done.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from drakit.apiserver.failures import head_too_large, url_too_long
from drakit.apiserver.http.asgi import (
    CERTIFICATE,
    IDENTIFIED,
    LAST,
    PATIENT,
    REFUSAL,
    TAKE_OVER,
    TURN,
    WRITE_ANSWER,
    Headers,
)
from drakit.apiserver.http.connections import Connections
from drakit.apiserver.http.turns import Turns
from drakit.apiserver.requests.bodies import MAX_BODY
from drakit.base.status import Status

HEADER_SECONDS = 30.0
HEADER_BYTES = 256 * 1024
HEADERS = 1000
URL_BYTES = 64 * 1024 - 1
"""The parser reads no longer ones."""
BODY_FRAMING = 1024 * 1024
"""Bytes of a body's chunk sizes, chunk extensions and trailers, beyond the bytes of the body itself."""
STALL_SECONDS = 20.0
LINGER_SECONDS = 1.0
TURNED_AWAY_SECONDS = 0.25
"""For how long a connection that was told 408 is read: closed with something unread, TCP would drop the answer."""
PIECE = 16 * 1024
"""Bytes that are read of a connection at a time: so many may wait for their turn, and so many of a head are parsed
before its size is looked at again."""
_STEP = 1024
"""Bytes that are parsed at a time where it cannot be told beforehand at which of them a request ends."""
_END_OF_HEAD = b"\r\n\r\n"
_TUNNEL_BUFFER = 64 * 1024
_TURNED_AWAY = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 with the client's certificate, and with limits for slow and large clients.

    uvicorn limits neither the time nor the size of a request's head, nor the rest of a body after the response to it.
    It also buffers for ever what a client does not read.
    """

    _in_head = False
    """Whether a request has begun, or may begin, and its head has not come whole."""
    _waiting: asyncio.TimerHandle | None = None
    """Fires when the head of a request takes too long."""
    _stalling: asyncio.TimerHandle | None = None
    """Fires when the client has not read for too long."""
    _unread = 0
    _lingering: asyncio.TimerHandle | None = None
    """Fires when the client has had time to read the last answer."""
    _asked = False
    """Whether a turn was asked for, and has not come."""
    _paused = False
    """Whether the client sends faster than its turns come."""
    _body_left = 0
    """Bytes of a body with a length that have not come."""
    _surplus = 0
    _chunked = False
    """Whether a body comes in chunks."""
    _framing = 0
    """Bytes of it so far that are no part of the body."""
    _patient = False
    _refused = False
    _leaving = False
    """Whether the connection ends after the response that has begun."""
    made = False
    open_connections: Connections | None = None
    """Who counts the connections, if anybody does; `address` is what this one counts for."""
    address = ""
    turns: Turns | None = None
    """Who says when this connection is read, if anybody does."""
    _sender = ""
    """The flow that the connection belongs to: its address, until the server knows the user."""

    def connection_made(self, transport: Any) -> None:
        self.made = True
        self._held: list[bytes] = []
        self._sender = self.address
        super().connection_made(transport)
        self._answers = _Answers(transport, self.loop)
        self._note_idle()
        connection = transport.get_extra_info("ssl_object")
        self.app_state = {**self.app_state, TAKE_OVER: self.take_over, PATIENT: self.be_patient}
        self.app_state |= {IDENTIFIED: self.identify, LAST: self.make_last, TURN: self.turn}
        if connection is not None and (certificate := connection.getpeercert(binary_form=True)):
            self.app_state[CERTIFICATE] = certificate
        self._begin_head()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._held.append(data)
        if not self._asked and not self._is_answering():
            self._ask()
        elif len(self._held) > 1:
            # It sends faster than its turns come: what it sends waits in the kernel, and then with the client.
            self._paused = True
            self.transport.pause_reading()

    def identify(self, user: str) -> None:
        """From now on the connection has the turns of this user."""
        self._sender = f"user {user}"

    async def turn(self) -> None:
        """Wait until this connection may have the loop for a moment."""
        await (self.turns.wait(self._sender) if self.turns is not None else asyncio.sleep(0))

    def _is_answering(self) -> bool:
        """Whether a whole request has come, and its answer is not whole. What comes behind it is not looked at.

        Otherwise hundreds of requests that come together would all be parsed in the turn of the first.
        """
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _ask(self) -> None:
        if self._asked:
            return
        self._asked = True
        if self.turns is None:
            self._read_held()
        else:
            self.turns.take(self._sender, self._read_held)

    def _read_held(self) -> None:
        self._asked = False
        data = b"".join(self._held)
        self._held.clear()
        if data and not self.transport.is_closing():
            self._read(data)
        if self._paused and not self._held and not self.flow.read_paused:
            self._paused = False
            self.transport.resume_reading()

    def _read(self, data: bytes) -> None:
        """Parse up to the end of a request. The rest is held until it has been answered."""
        at = 0
        while at < len(data) and not self._refused and not self.transport.is_closing():
            if self._is_answering():
                self._held.append(data[at:])
                return
            end = self._end_of_step(data, at)
            self._parse(data[at:end])
            at = end

    def _end_of_step(self, data: bytes, at: int) -> int:
        """Where to stop parsing for a look at what came of it: no later than at the end of a request."""
        if self._body_left:
            return min(at + self._body_left, len(data))
        end = -1 if self._chunked else data.find(_END_OF_HEAD, at, at + _STEP)
        return min(at + _STEP, len(data)) if end < 0 else end + len(_END_OF_HEAD)

    def _parse(self, data: bytes) -> None:
        if self._in_head:
            self._head += len(data)
        elif self._chunked:
            self._framing += len(data)
        super().data_received(data)
        if self._in_head and self.headers is not None:
            self._await_head()
            self._check_head()
        elif self._framing > BODY_FRAMING:
            self._hang_up()

    def _check_head(self) -> None:
        """Refuse a head that is too large as soon as it is: the rest of it is not read."""
        if len(self.url) > URL_BYTES:
            self._refuse(url_too_long(URL_BYTES).status)
        elif len(self.headers) > HEADERS:
            self._refuse(head_too_large(f"more than {HEADERS} fields").status)
        elif self._head > HEADER_BYTES:
            self._refuse(head_too_large(f"more than {HEADER_BYTES} bytes").status)

    def _refuse(self, answer: Status) -> None:
        """Let the application give this answer, so that it is counted and logged as every other."""
        self._refused = True
        self.flow.pause_reading()
        del self.headers[:]
        self.url = self.url[:PIECE]
        self.scope["state"][REFUSAL] = answer
        try:
            self.on_headers_complete()
        except HttpParserError:
            self._hang_up()
            return
        self.cycle.keep_alive = False

    def write_answer(self, cycle: RequestResponseCycle, code: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer; whether that could be done: not while the client does not read.

        uvicorn does the same in two steps, and looks at each character of each header: here nothing comes from
        outside.
        """
        if self.flow.write_paused or cycle.disconnected or cycle.response_started:
            return False
        head = [STATUS_LINE[code]]
        for name, value in (*self.server_state.default_headers, *headers):
            head += (name, b": ", value, b"\r\n")
        head.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        cycle.response_started = cycle.response_complete = True
        if len(body) < PIECE:
            self.transport.write(b"".join((*head, body)))
        else:
            self.transport.writelines((*head, body))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection, for a protocol that is not HTTP. Whoever takes it closes it; uvicorn forgets it.

        Raise ConnectionResetError when the client has gone meanwhile: nobody would tell the new protocol.
        """
        if self.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._end_head()
        self._end_stall()
        self._unset_keepalive_if_required()
        self.cycle.response_started = self.cycle.response_complete = True
        self.connections.discard(self)
        # A client whose machine is gone says nothing: the kernel finds out.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        reader = asyncio.StreamReader(limit=_TUNNEL_BUFFER, loop=self.loop)
        protocol = _Tunnelled(reader, self._leave)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        if self._held:
            reader.feed_data(b"".join(self._held))
            self._held.clear()
        if self._paused:
            self.transport.resume_reading()
        self.flow.resume_reading()
        return reader, asyncio.StreamWriter(self.transport, protocol, reader, self.loop)

    def be_patient(self) -> None:
        """Do not disconnect a client that reads this response slowly: a log that somebody reads in a pager."""
        self._patient = True
        self._end_stall()

    def make_last(self) -> None:
        """Close the connection after this response, unless the whole body has come: the rest of it is not read."""
        if not self.cycle.more_body:
            return
        self.cycle.keep_alive = False
        self.cycle.transport = _Lingering(self.transport, self._linger)

    def _linger(self) -> None:
        """End this direction, and close a little later: closing with data unread would take the answer away."""
        if self._lingering is None and not self.transport.is_closing():
            self.flow.pause_reading()
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self._lingering = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the application decides about upgrades, and answers other requests as if none was asked for."""

    def on_message_begin(self) -> None:
        self._surplus = self._framing = self._body_left = 0
        self._chunked = False
        self._patient = False
        self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_head()
        if not self._refused and (len(self.headers) > HEADERS or len(self.url) > URL_BYTES):
            self._check_head()
            return
        for name, value in self.headers:
            if name == b"transfer-encoding":
                self._chunked = True
            elif name == b"content-length":
                self._body_left = int(value)
        if self.open_connections is not None:
            self.open_connections.busy(self.address, self)
        super().on_headers_complete()
        self._answers.begin()
        self.cycle.transport = self._answers
        # Of this request: one that came right behind it may be parsed before it is answered.
        self.scope["state"][WRITE_ANSWER] = partial(self.write_answer, self.cycle)

    def on_response_complete(self) -> None:
        if self._lingering is not None:
            return
        super().on_response_complete()
        self._note_idle()
        if self._leaving:
            self.shutdown()
        if self._held:
            self._ask()

    def shutdown(self) -> None:
        """End the connection after the request that it has, if it has one."""
        if self.cycle is None or self.cycle.response_complete:
            self._turn_away()
        elif self.cycle.response_started:
            self._leaving = True  # it is too late to say in its head that the connection ends
        else:
            self.cycle.keep_alive = False

    def _turn_away(self) -> None:
        """Answer a request that may be on its way with 408, and close once nothing more can come."""
        if self.transport.is_closing() or self._refused or self._lingering is not None:
            return
        self._refused = True
        self.transport.write(_TURNED_AWAY)
        self._lingering = self.loop.call_later(TURNED_AWAY_SECONDS, self._hang_up)

    def drop(self) -> None:
        """Close the connection: another one needs its place."""
        self.transport.abort()

    def _note_idle(self) -> None:
        if self.open_connections is not None and not self._held and not self.transport.is_closing():
            self.open_connections.idle(self.address, self)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come after the head. Nobody reads them, so they are not kept.
        if not self._chunked:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        self._chunked = False
        super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._framing -= len(body)
        self._body_left = max(self._body_left - len(body), 0)
        if self.cycle.response_complete:
            self._surplus += len(body)
            # The client ignores the 413 and goes on sending.
            if self._surplus > MAX_BODY:
                self.transport.abort()
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._patient:
            self._await_reader()

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        # `close` would wait until the client has read the rest.
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.clear()
        if self._lingering is not None:
            self._lingering.cancel()
        self._end_head()
        self._end_stall()
        self._leave()  # at once: another connection may have the place
        end = super().connection_lost
        if self.turns is None:
            end(exc)
        else:
            # Thousands of watches may end at the same moment: what that costs takes turns as well.
            self.turns.take(self._sender, lambda: end(exc))

    def _leave(self) -> None:
        """Remove the connection from the count of open ones. Idempotent."""
        counted, self.open_connections = self.open_connections, None
        if counted is not None:
            counted.busy(self.address, self)
            counted.leave(self.address)

    def _await_reader(self) -> None:
        """Look again later. A client that has read nothing until then is disconnected."""
        self._unread = self.transport.get_write_buffer_size()
        self._stalling = self.loop.call_later(STALL_SECONDS, self._check_reader)

    def _check_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._unread:
            self._await_reader()
        else:
            self.transport.abort()

    def _end_stall(self) -> None:
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None

    def _begin_head(self) -> None:
        if not self._in_head:
            self._in_head = True
            self._head = 0

    def _await_head(self) -> None:
        """Start the clock. Mostly a head comes in one piece, and needs none."""
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEADER_SECONDS, self._hang_up)

    def _end_head(self) -> None:
        self._in_head = False
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class _Tunnelled(asyncio.StreamReaderProtocol):
    """The protocol of a connection that was taken over. It counts as a connection until it ends."""

    def __init__(self, reader: asyncio.StreamReader, ended: Callable[[], None]) -> None:
        super().__init__(reader)
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()
        super().connection_lost(exc)


class _Answers(asyncio.Transport):
    """A connection to write answers to. A head goes out together with the body that is written right behind it.

    uvicorn writes both apart, and each write is encrypted and sent by itself. Together, a get takes 0.9 of the CPU time
    (0.75 to 0.94, four rounds).
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._head = b""
        """What was written, and waits for more in this turn of the loop."""
        self._begins = False
        """Whether the next that is written is a head."""
        self.is_closing = transport.is_closing  # type: ignore[method-assign]

    def begin(self) -> None:
        """A request has come: its answer is next."""
        self._begins = True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._head:
            head, self._head = self._head, b""
            if len(data) < PIECE:
                self._transport.write(head + bytes(data))
            else:
                self._transport.writelines((head, data))
        elif self._begins:
            self._begins = False
            self._head = bytes(data)
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        """The turn is over: the head goes alone."""
        if self._head:
            head, self._head = self._head, b""
            if not self._transport.is_closing():
                self._transport.write(head)


class _Lingering(asyncio.Transport):
    """A connection to write to, whose end somebody else arranges."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self.write = transport.write  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.close = close  # type: ignore[method-assign]


class Intake(asyncio.BufferedProtocol):
    """What the loop tells about a connection, for its protocol. It reads a piece at a time.

    The loop would otherwise read a quarter of a megabyte of each connection at once. `buffer` may be shared by all
    connections of a loop: what is in it is copied before the loop goes on.
    """

    def __init__(self, protocol: Protocol, buffer: memoryview) -> None:
        self._protocol = protocol
        self._buffer = buffer

    @property
    def made(self) -> bool:
        """Whether there is a connection."""
        return self._protocol.made

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.data_received(bytes(self._buffer[:nbytes]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def eof_received(self) -> None:
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
