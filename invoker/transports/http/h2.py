"""`Http2`: one connection of HTTP/2, whose frames the sans-IO library h2 reads and writes (ADR 65).

Theory. Requests run concurrently, each as an `Http2Stream`, which gives its request to the same `Exchange` as a
connection of HTTP/1.1. No request slows down another one:

* The window of the connection is opened for all bytes that come, that of a stream only for those that its request has
  taken. So a request that takes nothing blocks only its own stream.
* Streams send in turn, a frame each, as far as the client's windows allow. Their bytes wait in the stream, so that
  little waits in the transport.
* A few frames are read in one turn of the loop, and `FrameRateLimit` counts frames that are not part of a request.
* While the client does not read, nothing is read from it either, so answers to its frames cannot pile up.

A connection ends when it had no request for ``idle_s``; after the last response, if either side is closing; when its
client breaks a rule, or does not read. Then GOAWAY says which requests were not begun. GOAWAY is not sent while
requests are under way, because clients that use h2 read nothing after it. A request that begins meanwhile is refused,
so that it can be sent again elsewhere. WebSocket (RFC 8441) is not offered, nor is push. Priorities are ignored (RFC
9113, 5.3.2).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from invoker.core.peers import peer_of
from invoker.transports.http.alarm import Alarm, Soon
from invoker.transports.http.app import HttpApp
from invoker.transports.http.cachedhead import SharedHeads
from invoker.transports.http.connections import CLOSE_S, FAREWELL_BYTES, FAREWELL_S, Connections
from invoker.transports.http.h2limits import FloodError, FrameRateLimit, bound_table, server_side
from invoker.transports.http.h2stream import Http2Stream
from invoker.transports.http.heads import RefusedError, head_of_fields
from invoker.transports.http.readcontrol import ReadControl

log = logging.getLogger(__name__)
logging.getLogger("hpack").setLevel(logging.INFO)  # at DEBUG it logs every header, credentials included

_STEP_BYTES: Final = 16 * 1024
"""The window of the connection is opened again in steps of this many bytes."""
_FRAME_BYTES: Final = 16 * 1024
_TURN_BYTES: Final = 64 * 1024
"""How many bytes are sent in one turn of the loop."""
_READ_AHEAD_BYTES: Final = 64 * 1024


class Http2(asyncio.Protocol):
    """One connection of HTTP/2.

    Args:
        app: Answers the requests.
        connections: The connections of the transport.
        heads: Reads the heads of all connections.

    Attributes:
        app: Answers the requests.
        peer: The address of the client.
    """

    _transport: Any
    _read_control: ReadControl

    def __init__(self, app: HttpApp, connections: Connections, heads: SharedHeads) -> None:
        self.app = app
        self.peer = ""
        self._connections = connections
        self._heads = heads
        self._is_full = self._is_lost = self._is_ending = self._is_leaving = self._is_handling = self._is_local = False
        self._streams: dict[int, Http2Stream] = {}
        self._slow = 0  # streams that wait for the rest of their bodies, while no function runs for them
        self._sending: dict[Http2Stream, None] = {}  # streams with something to send, in the order of their turns
        self._frames = FrameRateLimit()  # received bytes that are not handled yet
        self._unreturned = 0  # bytes of the connection's window that are not yet returned
        self._dropped = 0  # how many bytes were dropped after the end
        self._alarm = Alarm()
        self._handling, self._flushing = Soon(), Soon()
        self._h2 = server_side()

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the connection."""
        self._transport = transport
        self.peer = peer_of(transport.get_extra_info("peername"))
        self._is_local = transport.get_extra_info("socket").family == socket.AF_UNIX
        self._read_control = ReadControl(transport, self.abort, patience_s=self.app.settings.write_s)
        self._connections.meet(self, is_new=True)
        self._alarm.set(self.app.settings.idle_s, self._end)
        self._h2.initiate_connection()
        self._write()

    def data_received(self, data: bytes) -> None:
        """Handle the frames that have come."""
        if self._is_ending:
            self._dropped += len(data)
            if self._dropped > FAREWELL_BYTES:
                self.abort()
            return
        is_waiting = self._frames.waiting > 0
        self._frames.put(data)
        if not is_waiting:
            self._handle()
        elif self._frames.waiting > _READ_AHEAD_BYTES:
            self._read_control.shut()

    def eof_received(self) -> bool:
        """End the connection, since a client that sends no more can send no WINDOW_UPDATE either."""
        self._lose()
        self._alarm.set(CLOSE_S, self.abort)  # asyncio closes when the written bytes are taken
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Notify all requests that the client is gone."""
        self._is_lost = True
        self._read_control.close()
        self._lose()
        self._alarm.close()
        self._connections.idle.pop(self, None)
        if not self._streams:
            self._connections.leave(self)

    def pause_writing(self) -> None:
        """Stop sending and reading, since the client does not read."""
        self._is_full = True
        self._read_control.shut()
        if self._streams:  # otherwise the connection is idle, and the alarm is set already
            self._alarm.set(self.app.settings.write_s, self._not_taken)

    def resume_writing(self) -> None:
        """Continue, since the client has taken most of the written bytes."""
        self._is_full = False
        if self._streams and not self._is_ending:
            self._alarm.unset()
        self._read_control.open()
        self._handling.do(self._handle)  # handles the bytes that have come meanwhile, then calls `_flush`

    # The transport calls these.

    @property
    def has_unparsed(self) -> bool:
        """Whether frames were read that wait for the next turn."""
        return self._frames.waiting > 0

    def fileno(self) -> int:
        """The descriptor of the socket; negative once it is closed."""
        return -1 if self._is_lost else int(self._transport.get_extra_info("socket").fileno())

    def end_when_idle(self) -> None:
        """End the connection now, or after the last response."""
        self._is_leaving = True
        if not self._streams:
            self._end()

    def abort(self) -> None:
        """End the connection now, without a last message to the client."""
        if self.fileno() >= 0:  # asyncio 3.11 fails if `abort` follows a `close` that waits for its last writes
            self._transport.abort()

    cut = abort

    # Streams call these.

    def send_soon(self, stream: Http2Stream) -> None:
        """Send what waits in a stream, in this turn of the loop or the next."""
        self._sending[stream] = None
        self._flush_soon()

    def send(self, stream: Http2Stream) -> None:
        """Send what waits in a stream at once, as far as the client's windows allow."""
        while self._send(stream):
            pass

    def send_head(self, number: int, fields: Sequence[tuple[bytes, bytes]]) -> None:
        """Send a head, unless the client has reset the stream."""
        with suppress(ProtocolError):
            self._h2.send_headers(number, fields)
        self._flush_soon()

    def reset(self, number: int, code: ErrorCodes) -> None:
        """Reset a stream, unless the client has reset it."""
        with suppress(ProtocolError):
            self._h2.reset_stream(number, code)
        self._flush_soon()

    def open_window(self, size: int, number: int | None = None) -> None:
        """Let the client send more on one stream, or on all streams together."""
        with suppress(ProtocolError):  # the stream is over
            self._h2.increment_flow_control_window(size, number)
        self._flush_soon()

    def wait(self, change: int) -> None:
        """Note that ``change`` more streams wait for their bodies; while all do, the connection may be ended."""
        self._slow += change
        if 0 < self._slow == len(self._streams):
            self._connections.waiting[self] = None
        else:
            self._connections.waiting.pop(self, None)

    def leave(self, stream: Http2Stream) -> None:
        """Forget a stream that is over; after the last one the connection is idle, or ends."""
        self._sending.pop(stream, None)
        known = self._streams.pop(stream.number, None)
        if known is not None and self._slow:
            self.wait(-known.is_slow)
        if known is None or self._streams:
            return
        if self._is_lost:
            self._connections.leave(self)
        elif self._is_leaving or self.app.is_closing:
            self._end()
        elif not self._is_ending:
            self._connections.idle[self] = None
            self._alarm.set(self.app.settings.idle_s, self._end)

    # Frames that come.

    def _handle(self) -> None:
        """Handle a few frames; the others wait for the next turn."""
        if self._is_ending or self._is_lost or self._is_full:
            return
        self._is_handling = True
        try:
            self._receive(self._h2.receive_data(self._frames.take()))
        except FloodError as flood:
            log.info("an HTTP/2 connection was ended: %s", flood)
            self._end(flood.code, str(flood).encode())
            return
        except ProtocolError as error:  # h2 has made its GOAWAY
            log.debug("an HTTP/2 connection was ended: %s", error)
            self._end(None)
            return
        except Exception:  # frames of the peer may make h2 fail; only this connection ends then
            log.debug("an HTTP/2 connection failed", exc_info=True)
            self.abort()
            return
        finally:
            self._is_handling = False
        if self._frames.has_goaway:
            self.end_when_idle()
        if self._frames.waiting:
            self._handling.do(self._handle)
        elif not self._is_full:
            self._read_control.open()
        self._flush()

    def _receive(self, events: Sequence[Event]) -> None:
        begun: list[Http2Stream] = []
        for event in events:
            if isinstance(event, RequestReceived):
                begun += self._begun(event)
            elif isinstance(event, DataReceived):
                self._received(event)
            elif isinstance(event, (StreamEnded, StreamReset)):
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.whole() if isinstance(event, StreamEnded) else stream.lose()
                if isinstance(event, StreamReset) and not event.remote_reset:
                    self._frames.fault()
            elif isinstance(event, WindowUpdated):
                self._unblock(event.stream_id)
            elif isinstance(event, RemoteSettingsChanged):
                self._unblock()
                bound_table(self._h2)
        for stream in begun:
            stream.meet()

    def _begun(self, event: RequestReceived) -> list[Http2Stream]:
        number = event.stream_id
        try:
            known = self._heads.get(tuple(event.headers), head_of_fields, is_local=self._is_local)
        except RefusedError as refused:
            log.debug("a stream is reset: %s", refused)
            self.reset(number, ErrorCodes.PROTOCOL_ERROR)
            return []
        if self._is_leaving:
            self.reset(number, ErrorCodes.REFUSED_STREAM)
            return []
        if not self._streams:
            self._connections.idle.pop(self, None)
            self._alarm.unset()
        self._connections.waiting.pop(self, None)
        stream = self._streams[number] = Http2Stream(self, number, known)
        return [stream]

    def _unblock(self, number: int = 0) -> None:
        """Let one stream or all streams send again, because their windows have changed."""
        for one in (number,) if number else tuple(self._streams):
            stream = self._streams.get(one)
            if stream is not None and stream.waiting:
                self._sending[stream] = None

    def _received(self, event: DataReceived) -> None:
        size = event.flow_controlled_length
        self._unreturned += size
        if self._unreturned >= _STEP_BYTES:  # a slow stream blocks only itself
            self.open_window(self._unreturned)
            self._unreturned = 0
        stream = self._streams.get(event.stream_id)
        if stream is not None:  # otherwise the request is answered already
            stream.received(event.data, size)

    # Frames that are sent.

    def _flush_soon(self) -> None:
        if not self._is_handling:  # otherwise `_flush` follows at once
            self._flushing.do(self._flush)

    def _flush(self) -> None:
        """Send a frame of each stream in turn, as long as the client takes them; the others wait for the next turn."""
        sent = 0
        while self._sending and not self._is_full and sent < _TURN_BYTES:
            stream = next(iter(self._sending))
            del self._sending[stream]
            sent += self._send(stream)
        self._write()
        if self._sending and not self._is_full:
            self._flushing.do(self._flush)

    def _send(self, stream: Http2Stream) -> int:
        """Send a frame of a stream, and queue it again if it has more; returns the size of the frame."""
        h2, number, waiting = self._h2, stream.number, stream.waiting
        try:
            window = max(0, h2.local_flow_control_window(number))  # a client may make the window negative
            size = min(window, h2.max_outbound_frame_size, _FRAME_BYTES, len(waiting))
            is_last = stream.is_complete and size == len(waiting)
            if size or is_last:
                h2.send_data(number, bytes(waiting[:size]), end_stream=is_last)
            if is_last and not stream.is_whole:
                # RFC 9113, 8.1: the response is complete, and the client need not send the rest of its body.
                h2.reset_stream(number, ErrorCodes.NO_ERROR)
        except ProtocolError:  # the client has reset the stream, or has left
            return 0
        if is_last:
            stream.sent()
        elif size:
            stream.taken(size)
            if waiting:
                self._sending[stream] = None
        else:
            stream.blocked()
        return size

    def _write(self) -> None:
        """Write the frames that h2 has made."""
        data = self._h2.data_to_send()
        if data and not self._transport.is_closing():
            self._frames.sent(len(data))
            self._transport.write(data)

    # The end.

    def _not_taken(self) -> None:
        log.warning("a client did not read its response within %s s", self.app.settings.write_s)
        self.abort()

    def _lose(self) -> None:
        """Notify all requests that the client is gone."""
        self._is_ending = True
        self._sending.clear()
        for stream in list(self._streams.values()):
            stream.lose()

    def _end(self, code: ErrorCodes | None = ErrorCodes.NO_ERROR, why: bytes = b"") -> None:
        """Send GOAWAY, and close. Later bytes are read for a moment, since unread ones would reset the connection.

        Args:
            code: The reason for the end of the connection; None: h2 has sent the GOAWAY.
            why: The reason in words.
        """
        if self._is_ending or self._is_lost:
            return
        if code is not None:
            with suppress(ProtocolError):
                self._h2.close_connection(code, additional_data=why)
        self._write()
        self._lose()
        transport = self._transport
        self._connections.idle[self] = None
        if transport.can_write_eof():
            with suppress(OSError):  # the client has reset the connection
                transport.write_eof()
            self._read_control.open()
        elif code is ErrorCodes.NO_ERROR:
            transport.close()  # TLS reads and drops what comes until the client has closed, too
        self._alarm.set(CLOSE_S if transport.get_write_buffer_size() else FAREWELL_S, self.abort)
