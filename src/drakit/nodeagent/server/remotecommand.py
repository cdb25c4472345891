"""exec and attach: a process and a client, joined by channels.

In:  a running exec or attach of the runtime, and a WebSocket of a client.
Out: stdin one way; stdout, stderr and, last of all, how it ended the other way.

The exit code is in a Status on channel 3. Whoever ends first ends the other: a client that goes takes its command with
it, and the end of a container ends the connection of its client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from drakit.api.podstreams import PodStreamOptions
from drakit.base.errors import DrakitError
from drakit.nodeagent.runtimes.contract import ByteReader, ExecStreams
from drakit.nodeagent.server.channels import V1, V1_BASE64, V4, V4_BASE64, V5, ChannelError, ChannelMessage

log = logging.getLogger("drakit.nodeagent.server")

STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
PROTOCOLS = (V5, V4, V4_BASE64, V1, V1_BASE64)

SPDY_PROTOCOLS = (V4, "v3.channel.k8s.io", "v2.channel.k8s.io", V1)

Start = Callable[[], Awaitable[ExecStreams]]


class CommandChannels(Protocol):
    """The five streams of a command, by number, however they travel."""

    greets: bool
    """Whether the client waits for an empty message, which says that the connection stands."""

    async def send(self, channel: int, data: bytes) -> None: ...

    async def receive(self) -> ChannelMessage | None:
        """None once the client has gone. Raise ChannelError."""
        ...

    async def close(self, error: str = "") -> None:
        """Say goodbye: normally, or with what the client did wrong."""
        ...


class TerminalSize(msgspec.Struct, frozen=True):
    width: int = msgspec.field(name="Width", default=0)
    height: int = msgspec.field(name="Height", default=0)


def exit_status(code: int) -> dict[str, object]:
    """How a command ended, in the form that kubectl takes its own exit code from."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failure_status(message: str) -> dict[str, object]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


class RemoteCommand:
    """One conversation. `attached` ones end well whatever the container's exit code is, as with a kubelet."""

    def __init__(
        self, channels: CommandChannels, options: PodStreamOptions, *, protocol: str, attached: bool = False
    ) -> None:
        self._channels = channels
        self._options = options
        self._structured = protocol in (V5, V4, V4_BASE64)
        self._attached = attached

    async def run(self, start: Start) -> None:
        """Until the command or the client ends; both have ended then."""
        if self._channels.greets:
            await self._channels.send(self._first_channel(), b"")
        try:
            streams = await start()
        except DrakitError as error:
            await self._tell(failure_status(f"{self._failing()}: {error}"))
            await self._channels.close()
            return
        try:
            problem = await self._converse(streams)
        finally:
            await streams.close()
        await self._channels.close(problem)

    async def _converse(self, streams: ExecStreams) -> str:
        """What the client did wrong, if anything."""
        listening = asyncio.create_task(self._listen(streams))
        running = asyncio.create_task(self._run(streams))
        problem = ""
        try:
            await asyncio.wait((listening, running), return_when=asyncio.FIRST_COMPLETED)
            # Both may be done: the exit code of the command is worth more than the fact that the client left.
            if running.done():
                await self._tell(running.result())
            else:
                listening.result()
        except* ChannelError as errors:
            problem = str(errors.exceptions[0])
        except* DrakitError as errors:
            await self._tell(failure_status(f"{self._failing()}: {errors.exceptions[0]}"))
        finally:
            for task in (listening, running):
                task.cancel()
            await asyncio.gather(listening, running, return_exceptions=True)
        return problem

    async def _run(self, streams: ExecStreams) -> dict[str, object]:
        """Send all output, then return the exit status. The status must be last: a client leaves once it has it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(streams.stdout, STDOUT, wanted=self._options.stdout))
            group.create_task(self._pump(streams.stderr, STDERR, wanted=self._options.stderr))
            ending = group.create_task(streams.wait())
        return exit_status(0 if self._attached else ending.result())

    async def _pump(self, source: ByteReader, channel: int, *, wanted: bool) -> None:
        """Copy one output stream. An unwanted stream is read and dropped; otherwise the process would block on it."""
        while piece := await source.read():
            if wanted:
                await self._channels.send(channel, piece)

    async def _listen(self, streams: ExecStreams) -> None:
        """Until the client goes."""
        while (message := await self._channels.receive()) is not None:
            if message.channel == STDIN and self._options.stdin:
                await (streams.close_stdin() if message.closed else streams.write_stdin(message.data))
            elif message.channel == RESIZE and not message.closed:
                await _resize(streams, message.data)

    def _first_channel(self) -> int:
        return STDOUT if self._options.stdout else STDERR if self._options.stderr else STATUS

    def _failing(self) -> str:
        return "error attaching to container" if self._attached else "error executing command in container"

    async def _tell(self, status: dict[str, object]) -> None:
        if self._structured:
            await self._channels.send(STATUS, msgspec.json.encode(status))
        elif status["status"] == "Failure":
            await self._channels.send(STATUS, str(status["message"]).encode())


async def _resize(streams: ExecStreams, data: bytes) -> None:
    """A size that cannot be read is no reason to end the command."""
    try:
        size = msgspec.json.decode(data, type=TerminalSize)
    except msgspec.DecodeError:
        return
    if 0 < size.width < 65536 and 0 < size.height < 65536:
        await streams.resize(size.width, size.height)
