"""Corrects hypercorn where ASGI cannot: floods of HTTP/2, and clients that left.

What hypercorn 0.18 does, and what is done here instead:

* It works off all frames of HTTP/2 that were read before anybody else has a turn. Few are given to it at once, and a
  client that floods is stopped (see `FrameRateLimit`).
* Over HTTP/2 it waits for ever until a client that has left takes its response. Here the end of the connection ends
  the wait.

Drop this module when a release does all of it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.events import Closed, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h2 import H2Protocol

from invoker.transports.http.h1 import PREFACE
from invoker.transports.http.h2 import FloodError, FrameRateLimit, Http2

__all__ = ["PatientServer"]

log = logging.getLogger(__name__)

_FAREWELL_S: Final = 1.0
_FAREWELL_BYTES: Final = 4 << 20
"""When a connection is ended, this much is still read and for this long: a reset could overtake the GOAWAY."""


class PatientServer(TCPServer):
    """One connection, on which the client may not flood."""

    _rate_limit: FrameRateLimit | None = None

    @property
    def protocol(self) -> ProtocolWrapper:
        """The protocol of the connection, HTTP/1 or HTTP/2."""
        return self._wrapper

    @protocol.setter
    def protocol(self, wrapper: ProtocolWrapper) -> None:
        self._wrapper = wrapper
        if isinstance(wrapper.protocol, H2Protocol):
            self._speak_http2()

    def _speak_http2(self) -> None:
        one = self._wrapper
        about = (one.context, one.task_group, one.state, one.ssl, one.client, one.server, one.send)
        one.protocol = Http2(one.app, one.config, *about)
        self._rate_limit = FrameRateLimit()

    async def protocol_send(self, event: Any) -> None:
        """Send bytes of the protocol, or do what its event says."""
        if isinstance(event, RawData):
            if self.writer.is_closing():
                return  # asyncio would drop it, too, and write a warning each time
            if self._rate_limit is not None:
                self._rate_limit.sent(len(event.data))
        await super().protocol_send(event)

    async def _read_data(self) -> None:
        data = await self._read()
        if self._rate_limit is None and data.startswith(PREFACE):
            self._speak_http2()
            await self.protocol.initiate()
        try:
            while data and not self.writer.is_closing():
                await self._take(data)
                data = await self._read()
        except FloodError as flood:
            await self._end(str(flood))
        except Exception:  # a peer's frames may lead hypercorn astray, and only its own connection pays for that
            log.debug("an HTTP connection failed", exc_info=True)
            self.writer.transport.abort()
        await self.protocol.handle(Closed())
        protocol = self.protocol.protocol
        if isinstance(protocol, H2Protocol):
            for buffer in protocol.stream_buffers.values():  # a task that writes to one waits for a client that is gone
                await buffer.close()

    async def _read(self) -> bytes:
        """What has come; empty when nothing more will."""
        try:
            return await self.reader.read(MAX_RECV)
        except OSError:
            return b""

    async def _take(self, data: bytes) -> None:
        if self._rate_limit is None:
            await self.protocol.handle(RawData(data))
            return
        is_first = True
        for part in self._rate_limit.parts(data):
            if not is_first:
                await asyncio.sleep(0)  # other tasks that wait have a turn
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
            pass  # the client does not take it, or has left
