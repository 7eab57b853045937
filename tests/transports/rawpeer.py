"""A gRPC client on bare HTTP/2 frames, for what no gRPC library lets its user send."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from select import select
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

_MOST_BYTES = 16384
"""In a DATA frame, by the settings that HTTP/2 begins with."""


class RawPeer:
    """One connection.

    Args:
        port: On loopback.
        agent: What its calls say as their user-agent; empty: they have no such field, and so no metadata at all.
    """

    def __init__(self, port: int, *, agent: str = "raw/1.0") -> None:
        self._agent = agent
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._h2.initiate_connection()
        self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def call(self, path: str, *messages: bytes, metadata: Sequence[tuple[str, str]] = ()) -> int:
        """Begin a call with messages; its stream."""
        stream = self._begin(path, metadata)
        self.send(stream, *messages)
        return stream

    def whole(self, path: str, *messages: bytes, metadata: Sequence[tuple[str, str]] = ()) -> int:
        """Send a call from its headers to its half-close in one write; its stream. All must fit the windows."""
        stream = self._begin(path, metadata)
        body = b"".join(map(_prefixed, messages))
        for at in range(0, len(body), _MOST_BYTES):
            self._h2.send_data(stream, body[at : at + _MOST_BYTES])
        self.half_close(stream)
        return stream

    def dribbled(self, path: str, *messages: bytes, metadata: Sequence[tuple[str, str]] = (), pause_s: float) -> int:
        """Send the headers, each message in two halves, and the half-close apart from each other; its stream."""
        stream = self._begin(path, metadata)
        self._flush()
        for message in map(_prefixed, messages):
            half = len(message) // 2
            for part in (message[:half], message[half:]):
                time.sleep(pause_s)
                for at in range(0, len(part), _MOST_BYTES):
                    self._h2.send_data(stream, part[at : at + _MOST_BYTES])
                self._flush()
        time.sleep(pause_s)
        self.half_close(stream)
        return stream

    def _begin(self, path: str, metadata: Sequence[tuple[str, str]]) -> int:
        stream = self._h2.get_next_available_stream_id()
        head = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *([("user-agent", self._agent)] if self._agent else []),
            *metadata,
        ]
        self._h2.send_headers(stream, head)
        return stream

    def send(self, stream: int, *messages: bytes) -> None:
        """Send messages."""
        for message in map(_prefixed, messages):
            for at in range(0, len(message), _MOST_BYTES):
                self._h2.send_data(stream, message[at : at + _MOST_BYTES])
        self._flush()

    def fill(self, stream: int, message: bytes, most_bytes: int, still_s: float) -> int:
        """Send a message again and again, until the windows stay shut for so long or so much was sent; how much."""
        sent, rest = 0, memoryview(b"")
        while sent < most_bytes:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if room:
                rest = rest or memoryview(_prefixed(message))
                part, rest = rest[:room], rest[room:]
                self._h2.send_data(stream, bytes(part))
                self._flush()
                sent += len(part)
            if select([self._socket], [], [], 0 if room else still_s)[0]:
                self.receive()
            elif not room:
                break
        return sent

    def half_close(self, stream: int) -> None:
        """Send an empty DATA frame with END_STREAM."""
        self._h2.end_stream(stream)
        self._flush()

    def cancel(self, stream: int) -> None:
        """Send RST_STREAM(CANCEL)."""
        self._h2.reset_stream(stream, ErrorCodes.CANCEL)
        self._flush()

    def end_and_cancel(self, stream: int, after_s: float) -> None:
        """Half-close, and cancel so much later: the way in which @grpc/grpc-js cancels."""
        self.half_close(stream)
        time.sleep(after_s)
        self.cancel(stream)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._h2.ping(b"12345678")
        self._flush()

    def await_settings(self) -> dict[int, int]:
        """Wait for the server's settings."""
        while True:
            for one in self.receive():
                if isinstance(one, RemoteSettingsChanged):
                    return {code: changed.new_value for code, changed in one.changed_settings.items()}

    def await_headers(self, stream: int) -> None:
        """Wait for the response headers of a stream."""
        while not any(isinstance(one, ResponseReceived) and one.stream_id == stream for one in self.receive()):
            pass

    def await_message(self, stream: int) -> None:
        """Wait for data of a stream."""
        while not any(isinstance(one, DataReceived) and one.stream_id == stream for one in self.receive()):
            pass

    def await_end(self, stream: int) -> None:
        """Wait for the end of a stream."""
        ends = (StreamEnded, StreamReset)
        while not any(isinstance(one, ends) and one.stream_id == stream for one in self.receive()):
            pass

    def await_status(self, stream: int) -> str:
        """Wait for the status of a call: its number; "reset" when it has none."""
        while True:
            for one in self.receive():
                if getattr(one, "stream_id", None) != stream:
                    continue
                if isinstance(one, StreamReset):
                    return "reset"
                if isinstance(one, (ResponseReceived, TrailersReceived)) and "grpc-status" in (
                    said := dict(one.headers)
                ):
                    return str(said["grpc-status"])

    def await_reply(self, stream: int) -> tuple[list[bytes], str, str]:
        """Wait for the end of a call: its messages, the number of its status and the text of that."""
        return self.await_replies([stream])[stream]

    def await_replies(self, streams: Sequence[int]) -> dict[int, tuple[list[bytes], str, str]]:
        """Wait for the ends of some calls, as `await_reply`; the order of their keys is that of their ends."""
        bodies = {stream: bytearray() for stream in streams}
        said: dict[int, dict[str, str]] = {stream: {} for stream in streams}
        ended: dict[int, tuple[list[bytes], str, str]] = {}
        while len(ended) < len(bodies):
            for one in self.receive():
                stream = getattr(one, "stream_id", None)
                if stream not in bodies:
                    continue
                if isinstance(one, DataReceived):
                    bodies[stream] += one.data
                elif isinstance(one, (ResponseReceived, TrailersReceived)):
                    said[stream].update(one.headers)
                elif isinstance(one, StreamReset):
                    ended.setdefault(stream, (_messages(bodies[stream]), "reset", ""))
                elif isinstance(one, StreamEnded):
                    told = said[stream]
                    text = unquote(told.get("grpc-message", ""))
                    ended[stream] = _messages(bodies[stream]), told.get("grpc-status", "none"), text
        return ended

    def has_heard(self, stream: int, within_s: float) -> bool:
        """Whether headers, data or the end of a stream come within a time."""
        heard = (ResponseReceived, DataReceived, TrailersReceived, StreamEnded, StreamReset)
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0:
            if select([self._socket], [], [], left)[0] and any(
                isinstance(one, heard) and one.stream_id == stream for one in self.receive()
            ):
                return True
        return False

    def is_sent_away(self, within_s: float) -> bool:
        """Whether the server says within a time that it takes no more calls on this connection."""
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0:
            if not select([self._socket], [], [], left)[0]:
                continue
            try:
                if any(isinstance(one, ConnectionTerminated) for one in self.receive()):
                    return True
            except ProtocolError:  # h2 takes no frame behind the GOAWAY, and gRPC sends a PING at once
                return True
        return False

    def receive(self) -> list[Event]:
        """Wait for something, and answer what HTTP/2 itself must answer.

        Raises:
            ConnectionError: The server has closed the connection.
        """
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        events = self._h2.receive_data(data)
        for event in events:
            if isinstance(event, DataReceived):
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self._flush()
        return events

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data:
            self._socket.sendall(data)


def _prefixed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def _messages(body: bytes | bytearray) -> list[bytes]:
    """The messages of a reply, without their prefixes; what is left over is one more."""
    messages, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at + 1 : at + 5], "big")
        messages.append(bytes(body[at + 5 : at + 5 + size]))
        at += 5 + size
    return messages
