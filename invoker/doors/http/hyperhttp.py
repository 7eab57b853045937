"""Corrects hypercorn where ASGI cannot: heads that are refused, floods, 100, reason phrases, clients that left.

What hypercorn 0.18 does, and what is done here instead:

* It accepts heads with two lengths and methods in lower case, which a proxy before it may read differently. Both are
  refused.
* It works off all frames of HTTP/2 that were read before anybody else has a turn. Few are given to it at once, and a
  client that floods is stopped (see `Calm`).
* It follows `Upgrade: h2c`, which RFC 9113 gave up. Here HTTP/2 begins by prior knowledge or ALPN only.
* It answers 100 before the application has seen the request, so a client sends the whole of a body although its head
  is then refused. Here 100 is sent when the body is first asked for (G-005).
* It sends no reason phrases, and some clients show nothing else of an error. Here each status has its phrase.
* Over HTTP/2 it waits for ever until a client that has left takes its response. Here the end of the connection ends
  the wait.

Drop this module when a release does all of it.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

import h11
from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.events import Closed, RawData
from hypercorn.protocol import ProtocolWrapper, events
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

from invoker.doors.http.h2 import PREFACE, Calm, FloodError, Http2

__all__ = ["PatientServer", "Waiting", "waiting"]

log = logging.getLogger(__name__)

_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}

_IMPATIENT_S: Final = 1.0
"""A client that is refused before it was told to send its body may send it nevertheless; it has this long to begin."""


_FAREWELL_S: Final = 1.0
_FAREWELL_BYTES: Final = 4 << 20
"""When a connection is ended, this much is still read and for this long: a reset could overtake the GOAWAY."""


class PatientServer(TCPServer):
    """One connection. Only `Waiting` tells the client to send its body, and the client may not flood."""

    _calm: Calm | None = None

    @property
    def protocol(self) -> ProtocolWrapper:
        """What speaks HTTP on it."""
        return self._wrapper

    @protocol.setter
    def protocol(self, wrapper: ProtocolWrapper) -> None:
        self._wrapper = wrapper
        if isinstance(wrapper.protocol, H11Protocol):
            most_bytes = self.config.h11_max_incomplete_size
            wrapper.protocol.connection = _Connection(h11.SERVER, max_incomplete_event_size=most_bytes)
        else:
            self._speak_http2()

    def _speak_http2(self) -> None:
        one = self._wrapper
        about = (one.context, one.task_group, one.state, one.ssl, one.client, one.server, one.send)
        one.protocol = Http2(one.app, one.config, *about)
        self._calm = Calm()

    async def protocol_send(self, event: Any) -> None:
        """Send something of the protocol."""
        if isinstance(event, RawData):
            if self.writer.is_closing():
                return  # asyncio would drop it, too, and write a warning each time
            if self._calm is not None:
                self._calm.sent(len(event.data))
        await super().protocol_send(event)

    async def _read_data(self) -> None:
        data = await self._read()
        while self._calm is None and data and len(data) < len(PREFACE) and PREFACE.startswith(data):
            if not (more := await self._read()):
                break
            data += more
        if self._calm is None and data.startswith(PREFACE):
            self._speak_http2()
            await self.protocol.initiate()
        try:
            while data and not self.writer.is_closing():
                await self._take(data)
                data = await self._read()
        except FloodError as flood:
            await self._end(str(flood))
        await self.protocol.handle(Closed())
        protocol = self.protocol.protocol
        if isinstance(protocol, H2Protocol):
            for buffer in protocol.stream_buffers.values():  # whoever writes to one waits for a client that is gone
                await buffer.close()

    async def _read(self) -> bytes:
        """What has come; empty when nothing more will."""
        try:
            return await self.reader.read(MAX_RECV)
        except OSError:
            return b""

    async def _take(self, data: bytes) -> None:
        if self._calm is None:
            await self.protocol.handle(RawData(data))
            return
        is_first = True
        for part in self._calm.parts(data):
            if not is_first:
                await asyncio.sleep(0)  # whoever else waits has a turn
            is_first = False
            await self.protocol.handle(RawData(part))

    async def _end(self, why: str) -> None:
        log.info("an HTTP/2 connection was ended: %s", why)
        protocol = self.protocol.protocol
        assert isinstance(protocol, Http2)  # nobody else is watched
        await protocol.say_calm(why)
        left = _FAREWELL_BYTES
        try:
            async with asyncio.timeout(_FAREWELL_S):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while left > 0 and (data := await self._read()):
                    left -= len(data)
        except (TimeoutError, OSError):
            pass  # it does not take it, or has left


class Waiting:
    """A request whose client waits for the word before it sends the body.

    Args:
        stream: Of the request.
        protocol: Of its connection.
        receive: As the application was given it.
        send: Likewise.
    """

    def __init__(self, stream: HTTPStream, protocol: H11Protocol, receive: Any, send: Any) -> None:
        self._stream = stream
        self._protocol = protocol
        self._receive = receive
        self._send = send
        self._is_refused = False

    async def receive(self) -> Any:
        """What comes of the body, for which the client is now asked."""
        if self._is_refused:
            try:
                async with asyncio.timeout(_IMPATIENT_S):
                    return await self._receive()
            except TimeoutError:
                return {"type": "http.disconnect"}  # the client has seen the refusal and sends no body
        await asyncio.sleep(0)  # an application that refuses the head may stop reading in this turn of the loop
        if _waits(self._protocol):
            await self._stream.send(events.Response(stream_id=self._stream.stream_id, headers=[], status_code=100))
        return await self._receive()

    async def send(self, message: Any) -> None:
        """Send a part of the response; before the body was asked for, it says that the connection ends with it."""
        if message["type"] == "http.response.start" and _waits(self._protocol):
            self._is_refused = True
            headers = [one for one in message["headers"] if one[0] != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        await self._send(message)


def waiting(receive: Any, send: Any) -> Waiting | None:
    """The request that these belong to, if its client waits; else None."""
    stream = getattr(send, "__self__", None)
    if not isinstance(stream, HTTPStream):
        return None
    protocol = getattr(stream.send, "__self__", None)
    if not (isinstance(protocol, H11Protocol) and _waits(protocol)):
        return None
    return Waiting(stream, protocol, receive, send)


class _Connection(h11.Connection):
    """Hides from hypercorn that its client waits for 100, which hypercorn would send; adds reason phrases.

    It refuses heads that another program on the way may have understood otherwise.
    """

    _refusal: h11.RemoteProtocolError | None = None

    def next_event(self) -> Any:
        """What came, or that it is refused; nothing comes behind a refusal."""
        if self._refusal is None:
            event = super().next_event()
            if not isinstance(event, h11.Request):
                return event
            self._refusal = _refusal(event)
            if self._refusal is None:
                return _without_upgrade(event)
        raise self._refusal

    @property
    def they_are_waiting_for_100_continue(self) -> bool:
        return False

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        if isinstance(event, h11.Response) and not event.reason:
            object.__setattr__(event, "reason", _PHRASES.get(event.status_code, b""))  # a frozen event that is ours
        return super().send_with_data_passthrough(event)


def _refusal(request: h11.Request) -> h11.RemoteProtocolError | None:
    """Why a head is refused."""
    names = {name for name, _ in request.headers}
    if b"content-length" in names and b"transfer-encoding" in names:
        # RFC 9112, 6.1: somebody on the way may have taken the body's end to be elsewhere (request smuggling).
        return h11.RemoteProtocolError("a head has both Content-Length and Transfer-Encoding", error_status_hint=400)
    if request.method != request.method.upper():
        return h11.RemoteProtocolError("the method is not in capitals", error_status_hint=400)
    if request.method == b"PRI":  # RFC 9113, 3.4: the preface is the first that comes, or nothing
        return h11.RemoteProtocolError("HTTP/2 is begun in the middle of a connection", error_status_hint=400)
    return None


def _without_upgrade(request: h11.Request) -> h11.Request:
    """The request; without `Upgrade: h2c`, which hypercorn would follow."""
    if not any(name == b"upgrade" and b"h2c" in value.lower() for name, value in request.headers):
        return request
    headers = [(name, value) for name, value in request.headers if name not in (b"upgrade", b"http2-settings")]
    return h11.Request(method=request.method, headers=headers, target=request.target, http_version=request.http_version)


def _waits(protocol: H11Protocol) -> bool:
    connection = protocol.connection
    return isinstance(connection, _Connection) and connection.client_is_waiting_for_100_continue
