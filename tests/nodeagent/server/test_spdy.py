"""SPDY frames and sessions, byte for byte and piece by piece."""

from __future__ import annotations

import asyncio
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.nodeagent.server.spdy import ProtocolError, Session, SpdyStream, StreamRefused, frames
from drakit.nodeagent.server.spdy.headers import (
    DICTIONARY,
    MOST_HEADER_BYTES,
    HeaderError,
    HeaderPacker,
    HeaderUnpacker,
)
from tests.client.servers import on_loop, turns


class Peer:
    """The calling side: makes frames, and takes apart what the session sends."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.streams: list[SpdyStream] = []
        self.refuse = False
        self.packer = HeaderPacker()
        self.session = Session(self._send, self._opened)

    async def _send(self, data: bytes) -> None:
        self.sent += data

    def _opened(self, stream: SpdyStream) -> None:
        if self.refuse:
            raise StreamRefused
        self.streams.append(stream)

    async def open(self, number: int, **headers: str) -> None:
        await self.session.receive(frames.syn_stream(number, self.packer.pack(headers)))

    def frames(self) -> list[frames.Frame]:
        got = list(frames.FrameReader().feed(bytes(self.sent)))
        self.sent.clear()
        return got


def test_the_dictionary_is_that_of_the_specification() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_headers_of_several_blocks_share_one_compression() -> None:
    packer, unpacker = HeaderPacker(), HeaderUnpacker()
    blocks = [packer.pack({"streamType": "data", "port": str(port)}) for port in (80, 8080)]
    assert [unpacker.unpack(block) for block in blocks] == [
        {"streamtype": "data", "port": "80"},
        {"streamtype": "data", "port": "8080"},
    ]
    assert len(blocks[1]) < len(blocks[0])


def test_a_small_block_that_becomes_a_large_one_is_refused() -> None:
    with pytest.raises(HeaderError, match="more than"):
        HeaderUnpacker().unpack(HeaderPacker().pack({"port": "0" * (2 * MOST_HEADER_BYTES)}))


@pytest.mark.parametrize(
    "plain", [b"", b"\x00\x00\x00\x01", struct.pack(">II", 1, 99) + b"port", struct.pack(">II", 1, 2) + b"\xff\xfe"]
)
def test_a_block_that_is_no_list_of_headers_is_refused(plain: bytes) -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = deflate.compress(plain) + deflate.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(HeaderError):
        HeaderUnpacker().unpack(block)


def test_a_block_that_is_not_compressed_is_refused() -> None:
    with pytest.raises(HeaderError, match="decompressed"):
        HeaderUnpacker().unpack(b"plain text")


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_frames_come_out_whole_however_the_bytes_are_cut(cuts: list[int]) -> None:
    whole = frames.data_frame(3, b"some bytes", fin=True) + frames.ping(7) + frames.rst_stream(3, 5) + frames.goaway(3)
    reader, got, offset = frames.FrameReader(), list[frames.Frame](), 0
    for size in [*cuts, len(whole)]:
        got += reader.feed(whole[offset : offset + size])
        offset += size
    assert got == list(frames.FrameReader().feed(whole))
    assert got[0] == frames.DataFrame(3, b"some bytes", fin=True)
    assert isinstance(got[2], frames.ControlFrame)
    assert (got[2].stream, got[2].word(1)) == (3, 5)


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    try:
        for frame in frames.FrameReader().feed(data):
            assert isinstance(frame, frames.DataFrame | frames.ControlFrame)
    except ProtocolError:
        pass


def test_a_frame_that_is_too_large_is_refused_before_it_has_come() -> None:
    with pytest.raises(ProtocolError, match="at most"):
        list(frames.FrameReader().feed(b"\x00\x00\x00\x01\x00\xff\xff\xff"))


def test_another_version_of_spdy_is_refused() -> None:
    with pytest.raises(ProtocolError, match="version 2"):
        list(frames.FrameReader().feed(b"\x80\x02\x00\x01\x00\x00\x00\x00"))


def test_a_syn_stream_has_the_layout_of_the_specification() -> None:
    assert frames.syn_stream(1, b"BLOCK", fin=True) == (
        b"\x80\x03\x00\x01"  # control, version 3, SYN_STREAM
        b"\x01\x00\x00\x0f"  # FIN, fifteen bytes
        b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"  # stream 1, of no other, no priority, no slot
        b"BLOCK"
    )


@on_loop
async def test_a_stream_is_replied_to_and_carries_data_both_ways() -> None:
    peer = Peer()
    await peer.open(1, streamType="data", port="80")
    (reply,) = peer.frames()
    assert isinstance(reply, frames.ControlFrame)
    assert (reply.kind, reply.stream) == (frames.SYN_REPLY, 1)
    (stream,) = peer.streams
    assert stream.headers == {"streamtype": "data", "port": "80"}
    await peer.session.receive(frames.data_frame(1, b"ask", fin=True))
    assert [await stream.read(), await stream.read(), await stream.read()] == [b"ask", b"", b""]
    await stream.write(b"answer")
    await stream.finish()
    await stream.write(b"too late")
    assert peer.frames() == [frames.DataFrame(1, b"answer"), frames.DataFrame(1, b"", fin=True)]


@on_loop
async def test_a_reader_waits_for_what_comes() -> None:
    peer = Peer()
    await peer.open(1)
    reading = asyncio.ensure_future(peer.streams[0].read())
    await turns()
    assert not reading.done()
    await peer.session.receive(frames.data_frame(1, b"late"))
    assert await reading == b"late"


@on_loop
async def test_a_stream_that_nobody_reads_holds_up_the_connection_and_a_cut_frees_it() -> None:
    peer = Peer()
    await peer.open(1)
    flood = asyncio.ensure_future(peer.session.receive(frames.data_frame(1, b"x") * 100))
    await turns()
    assert not flood.done()
    await peer.streams[0].read()
    await turns()
    assert not flood.done()
    peer.session.cut()
    await flood
    assert await peer.streams[0].read() == b""


@on_loop
async def test_a_ping_comes_back_and_an_answer_to_none_of_ours_does_not() -> None:
    peer = Peer()
    await peer.session.receive(frames.ping(1) + frames.ping(2))
    assert bytes(peer.sent) == frames.ping(1)


@on_loop
async def test_a_stream_that_is_not_wanted_is_reset_and_the_next_one_is_read_all_the_same() -> None:
    peer = Peer()
    peer.refuse = True
    await peer.open(1, port="80")
    assert bytes(peer.sent) == frames.rst_stream(1, frames.RST_REFUSED)
    peer.refuse = False
    await peer.open(3, port="81")
    assert [stream.headers["port"] for stream in peer.streams] == ["81"]


@pytest.mark.parametrize("numbers", [(2,), (0,), (3, 3), (3, 1)])
@on_loop
async def test_ids_of_a_caller_are_odd_and_grow(numbers: tuple[int, ...]) -> None:
    peer, (*good, bad) = Peer(), numbers
    for number in good:
        await peer.open(number)
    with pytest.raises(ProtocolError, match="odd and grow"):
        await peer.open(bad)


@on_loop
async def test_a_reset_ends_reading_and_writing() -> None:
    peer = Peer()
    await peer.open(1)
    peer.frames()
    (stream,) = peer.streams
    reading = asyncio.ensure_future(stream.read())
    await turns()
    await peer.session.receive(frames.rst_stream(1, frames.RST_CANCEL))
    assert await reading == b""
    await stream.write(b"to nobody")
    await stream.finish()
    await peer.session.receive(frames.data_frame(1, b"from nobody"))
    assert not peer.sent


@on_loop
async def test_a_frame_that_is_too_short_is_an_error_of_the_peer() -> None:
    with pytest.raises(ProtocolError, match="too short"):
        await Peer().session.receive(frames.control_frame(frames.RST_STREAM, b""))


@on_loop
async def test_a_goodbye_ends_every_stream() -> None:
    peer = Peer()
    await peer.open(1)
    await peer.session.receive(frames.goaway(1))
    assert await peer.streams[0].read() == b""


@on_loop
async def test_settings_and_windows_change_nothing() -> None:
    peer = Peer()
    await peer.session.receive(frames.control_frame(4, bytes(12)) + frames.control_frame(9, bytes(8)))
    assert not peer.sent
