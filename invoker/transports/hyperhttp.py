"""What hypercorn does not leave to the application: when a client is told to go on, reason phrases, and lost clients.

hypercorn 0.18 answers 100 before the application has seen the request, so that a client sends all of a body that is
then refused for its head: too long, of no use, for nobody. Here 100 is sent when the body is first asked for (G-005).
It sends no reason phrases, and there are clients of GraphPipe that show nothing else of an error. And by HTTP/2 it goes
on waiting for a client that has left to take its response. Drop this module when a release does all of it.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.protocol.events import Response
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

__all__ = ["PatientServer", "Waiting", "waiting"]

_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}

_IMPATIENT_S: Final = 1.0
"""A client that was refused instead of told to go on may have begun all the same, if it begins within this."""


class PatientServer(TCPServer):
    """A connection whose clients are told to go on by `Waiting` only."""

    async def _read_data(self) -> None:
        protocol = self.protocol.protocol
        if isinstance(protocol, H11Protocol):
            most_bytes = self.config.h11_max_incomplete_size
            protocol.connection = _Connection(h11.SERVER, max_incomplete_event_size=most_bytes)
        await super()._read_data()
        protocol = self.protocol.protocol  # which may be another one by now
        if isinstance(protocol, H2Protocol):
            for buffer in protocol.stream_buffers.values():  # whoever writes to one waits for a client that is gone
                await buffer.close()


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
                return {"type": "http.disconnect"}  # it has understood: there is no body to wait for
        await asyncio.sleep(0)  # who reads ahead, and refuses for the head, gives up reading in this turn of the loop
        if _waits(self._protocol):
            await self._stream.send(Response(stream_id=self._stream.stream_id, headers=[], status_code=100))
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
    """One that does not tell hypercorn that its client waits, for it would answer; gives statuses their phrases."""

    @property
    def they_are_waiting_for_100_continue(self) -> bool:
        return False

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        if isinstance(event, h11.Response) and not event.reason:
            object.__setattr__(event, "reason", _PHRASES.get(event.status_code, b""))  # a frozen event that is ours
        return super().send_with_data_passthrough(event)


def _waits(protocol: H11Protocol) -> bool:
    connection = protocol.connection
    return isinstance(connection, _Connection) and connection.client_is_waiting_for_100_continue
