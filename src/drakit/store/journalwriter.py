"""The process that writes the file of a server: `python -m drakit.store.journalwriter SOCKET PATH`.

In:  calls of the journal, from the socket that it inherits.
Out: an answer to each: empty, or the name and text of an error. Before the first, the last revision in the file.

It ends when the socket does, after all that it was sent.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from drakit.base.errors import DrakitError
from drakit.store.journal import Journal
from drakit.store.journalframes import frame, read_frame

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that are sent to all processes of a terminal or a service: the server decides when writing ends."""


def _told(error: BaseException) -> tuple[str, str]:
    return type(error).__name__, str(error)


def serve(connection: socket.socket, path: Path) -> None:
    """Open the file, tell the last revision, and do what is told until the socket ends."""
    with connection, connection.makefile("rb") as stream:
        try:
            journal = Journal.open(path)
            connection.sendall(frame(journal.last_revision()))
        except DrakitError as error:
            connection.sendall(frame(_told(error)))
            return
        methods: dict[str, Callable[..., None]] = {"append": journal.append_rows, "discard": journal.discard}
        while (call := read_frame(stream)) is not None:
            method, *arguments = call
            answer: tuple[str, ...] = ()
            try:
                methods[method](*arguments)
            except Exception as error:  # whatever it is: the writer is told, and the next one may succeed
                answer = _told(error)
            connection.sendall(frame(answer))
        journal.close()


def main() -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[1]))
    try:
        serve(connection, Path(sys.argv[2]))
    except (BrokenPipeError, ConnectionResetError):
        return  # the server was killed: nobody waits for an answer


if __name__ == "__main__":
    main()
