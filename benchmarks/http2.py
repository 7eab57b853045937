"""A small HTTP/2 client for measurements: one thread, one socket, many gRPC streams.

It has little overhead (one ``recv`` and one ``send`` a turn, no event loop, no locks), and can behave badly on purpose:
it can withhold windows and leave streams idle. It has no TLS, no padding and no priorities.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from select import select

from hpack import Decoder

MOST = 2**31 - 1
SILENCE_S = 10.0
DEFAULT_WINDOW = 65535
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 1, 1, 4, 8
_HEAD = struct.Struct(">HBBBL")
_SETTING = struct.Struct(">HL")
AGENT = "invoker-bench grpc-c/58.0.0"
"""The user-agent of a client library whose half-close invoker does not have to wait for (R-109)."""
_TABLE_SIZE, _PUSH, _STREAMS, _INITIAL_WINDOW, _FRAME_SIZE = 1, 2, 3, 4, 5


class WireError(Exception):
    """The server broke the connection, or sent nothing for too long."""


@dataclass(slots=True, eq=False)
class Stream:
    """One call: its pending parts and the number of bytes received; ``kept`` gets these bytes if it is a bytearray."""

    id: int
    window: int
    pending: deque[memoryview] = field(default_factory=deque)
    half_closes: bool = False
    half_closed: bool = False
    received: int = 0
    ended: bool = False
    status: str = ""
    kept: bytearray | None = None


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Make one HTTP/2 frame."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 255, kind, flags, stream) + payload


def literal(name: str, value: str) -> bytes:
    """Encode one header field by HPACK, without index and without Huffman code."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Connection:
    """A connection; each ``turn`` sends and receives for all its streams.

    ``stream_window`` and ``window`` are the bytes that the server may send before ``grant``; ``path`` is the path of
    the gRPC method; ``metadata`` is sent with every call.
    """

    def __init__(
        self,
        address: str,
        *,
        stream_window: int = MOST,
        window: int = MOST,
        path: str = "/streaming.Riff/Invoke",
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.streams: dict[int, Stream] = {}
        self.most_streams = MOST
        self._next_id = 1
        self._window = DEFAULT_WINDOW
        self._initial_window = DEFAULT_WINDOW
        self._frame_size = 16384
        self._settled = False
        self._taken = 0
        self._refills = window == MOST
        self._sending: deque[Stream] = deque()
        self._rest = b""
        self._block = b""
        self._decoder = Decoder()
        self._statuses: dict[bytes, str] = {}
        self._headers = _request_headers(address, path) + b"".join(literal(*one) for one in metadata)
        settings = ((_TABLE_SIZE, 0), (_PUSH, 0), (_INITIAL_WINDOW, stream_window))
        self._out = bytearray(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._out += frame(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*one) for one in settings))
        if window > DEFAULT_WINDOW:
            self.grant(window - DEFAULT_WINDOW)

    def open(self, data: bytes = b"", *, half_close: bool = False) -> Stream:
        """Open a call with the first bytes of its body; the next ``turn`` or ``flush`` sends them."""
        stream = Stream(self._next_id, self._initial_window)
        self._next_id += 2
        self.streams[stream.id] = stream
        self._out += frame(_HEADERS, _END_HEADERS, stream.id, self._headers)
        self.send(stream, data, half_close=half_close)
        return stream

    def send(self, stream: Stream, data: bytes = b"", *, half_close: bool = False) -> None:
        """Queue bytes of a call's body; ``half_close`` ends the body."""
        if data:
            stream.pending.append(memoryview(data))
        stream.half_closes = stream.half_closes or half_close
        self._sending.append(stream)

    def grant(self, size: int, stream: int = 0) -> None:
        """Let the server send ``size`` more bytes on a stream, or on the connection if ``stream`` is 0."""
        self._out += frame(_WINDOW, 0, stream, size.to_bytes(4, "big"))

    def turn(self, timeout_s: float = SILENCE_S) -> list[Stream]:
        """Send as much as possible, wait for frames, and return the streams that got data or ended.

        Raises:
            WireError: Nothing could be sent or received for ``timeout_s``, or the connection broke.
        """
        self.flush()
        readable, writable, _ = select([self._socket], [self._socket] if self._out else [], [], timeout_s)
        if writable:
            self.flush()
        if not readable:
            if not writable:
                raise WireError(f"nothing could be sent or received for {timeout_s} s")
            return []
        data = self._socket.recv(1 << 18)
        if not data:
            raise WireError("the server closed the connection")
        return self._parse(self._rest + data if self._rest else data)

    def flush(self) -> None:
        """Send as much as the windows and the socket allow."""
        while self._sending and self._window > 0:
            if not self._frames(self._sending.popleft()):
                break
        if self._out:
            try:
                sent = self._socket.send(self._out, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            del self._out[:sent]

    def settle(self) -> None:
        """Wait for the server's SETTINGS, which have its limits."""
        while not self._settled:
            self.turn()

    def drain(self) -> None:
        """Handle the bytes that the socket has now, without waiting."""
        while select([self._socket], [], [], 0)[0]:
            self.turn(0)

    def close(self) -> None:
        """Close the socket, which cancels every open call."""
        self._socket.close()

    def _frames(self, stream: Stream) -> bool:
        """Move a stream's pending bytes into DATA frames; return False when the connection's window is used up."""
        while stream.pending and not stream.ended:
            size = min(len(stream.pending[0]), self._frame_size, self._window, stream.window)
            if size <= 0:
                if self._window <= 0:
                    self._sending.appendleft(stream)
                return self._window > 0  # otherwise the stream's next WINDOW_UPDATE queues the stream again
            part = stream.pending[0][:size]
            rest = stream.pending[0][size:]
            if rest:
                stream.pending[0] = rest
            else:
                stream.pending.popleft()
            last = stream.half_closes and not stream.pending
            stream.half_closed = last
            self._out += _HEAD.pack(size >> 8, size & 255, _DATA, _END_STREAM if last else 0, stream.id)
            self._out += part
            self._window -= size
            stream.window -= size
        if stream.half_closes and not stream.half_closed:
            stream.half_closed = True
            self._out += frame(_DATA, _END_STREAM, stream.id)
        return True

    def _parse(self, data: bytes) -> list[Stream]:
        touched: list[Stream] = []
        at, end = 0, len(data)
        while end - at >= 9:
            high, low, kind, flags, number = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if end - at < 9 + length:
                break
            if kind == _DATA:
                stream = self.streams.get(number)
                self._taken += length
                if stream is not None:
                    stream.received += length
                    if stream.kept is not None:
                        stream.kept += data[at + 9 : at + 9 + length]
                    stream.ended = stream.ended or bool(flags & _END_STREAM)
                    touched.append(stream)
            else:
                self._control(kind, flags, number, data[at + 9 : at + 9 + length], touched)
            at += 9 + length
        self._rest = data[at:]
        if self._refills and self._taken > 1 << 29:
            self.grant(self._taken)
            self._taken = 0
        return touched

    def _control(self, kind: int, flags: int, number: int, payload: bytes, touched: list[Stream]) -> None:
        stream = self.streams.get(number)
        if kind in {_HEADERS, _CONTINUATION}:
            self._block += payload
            if kind == _HEADERS and stream is not None:
                stream.ended = bool(flags & _END_STREAM)
            if flags & _END_HEADERS:
                status = self._status()
                if stream is not None and stream.ended:
                    stream.status = status
                    touched.append(stream)
        elif kind == _RST and stream is not None and not stream.ended:
            stream.ended = True
            stream.status = f"reset {int.from_bytes(payload, 'big')}"
            touched.append(stream)
        elif kind == _SETTINGS and not flags & _ACK:
            self._settings(payload)
        elif kind == _PING and not flags & _ACK:
            self._out += frame(_PING, _ACK, 0, payload)
        elif kind == _WINDOW:
            self._widen(stream, int.from_bytes(payload, "big"), of_connection=number == 0)
        elif kind == _GOAWAY and payload[4:8] != b"\0\0\0\0":
            raise WireError(f"GOAWAY: {payload[8:]!r}")

    def _status(self) -> str:
        """Return ``grpc-status`` of the finished header block; blocks can be cached, since HPACK's table has size 0."""
        block, self._block = self._block, b""
        if block not in self._statuses:
            fields = {str(name): str(value) for name, value in self._decoder.decode(block, raw=False)}
            self._statuses[block] = fields.get("grpc-status", "")
        return self._statuses[block]

    def _settings(self, payload: bytes) -> None:
        self._settled = True
        for name, value in _SETTING.iter_unpack(payload):
            if name == _INITIAL_WINDOW:
                for stream in self.streams.values():
                    stream.window += value - self._initial_window
                    self._sending.append(stream)
                self._initial_window = value
            elif name == _FRAME_SIZE:
                self._frame_size = value
            elif name == _STREAMS:
                self.most_streams = value
        self._out += frame(_SETTINGS, _ACK, 0)

    def _widen(self, stream: Stream | None, size: int, *, of_connection: bool) -> None:
        if of_connection:
            self._window += size
        elif stream is not None:
            stream.window += size
            if stream.pending:
                self._sending.append(stream)


def _request_headers(address: str, path: str) -> bytes:
    fields = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", address))
    more = (("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", AGENT))
    return b"".join(literal(*one) for one in (*fields, *more))
