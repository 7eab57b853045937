"""The simplest possible server of streams, on uvloop: it writes prepared bytes. Its figures are the client's limit.

Usage: ``python -m benchmarks.bare_http items|lines``; prints ``http=HOST:PORT`` and serves until it is killed. A stream
has a chunk for each item, as with the other servers; an echo counts messages by their length and does not read them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import suppress
from functools import cache
from typing import cast

from benchmarks import items
from benchmarks.wire import GUID, chunk, masked, unmasked

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
_LAST = b"0\r\n\r\n"
_FRAME, _REPLY = masked(items.SAID), unmasked(items.TOLD)
_END, _END_REPLY = masked(items.END_SAID), unmasked(items.END_TOLD) + b"\x88\x02\x03\xe8"
_LINE = chunk(items.LINE)


@cache
def _stream(form: str, count: int) -> bytes:
    parts = items.streamed(form, count).splitlines(keepends=True)
    if form == items.SSE:
        parts = [b"".join(parts[at : at + 3]) for at in range(0, len(parts), 3)]
    return _HEAD % form.encode() + b"".join(chunk(part) for part in parts) + _LAST


class _Bare(asyncio.Protocol):
    """One connection; ``_data`` has the bytes received and not answered yet."""

    def __init__(self) -> None:
        self._data = b""
        self._is_socket = self._is_echo = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_socket and not self._is_echo:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            self._begin(head, rest)
        if self._is_socket:
            self._answer(_FRAME, _REPLY, _END, _END_REPLY)
        elif self._is_echo:
            self._answer(_LINE, _LINE, _LAST, _LAST)

    def _begin(self, head: bytes, rest: bytes) -> None:
        lower = head.lower()
        if b"upgrade: websocket" in lower:
            at = lower.index(b"sec-websocket-key:")
            key = head[at:].split(b"\r\n")[0].partition(b":")[2].strip()
            accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
            self._transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
            )
            self._data, self._is_socket = rest, True
        elif b"transfer-encoding: chunked" in lower:
            self._transport.write(_HEAD % b"application/x-ndjson")
            self._data, self._is_echo = rest, True
        elif rest:
            form = items.SSE if items.SSE.encode() in lower else items.NDJSON
            self._transport.write(_stream(form, int(rest)))
            self._data = b""

    def _answer(self, said: bytes, reply: bytes, end: bytes, end_reply: bytes) -> None:
        is_over = self._data.endswith(end)
        count, left = divmod(len(self._data) - (len(end) if is_over else 0), len(said))
        self._transport.write(reply * count + (end_reply if is_over else b""))
        self._data = self._data[len(self._data) - left :] if left else b""
        if is_over:
            self._data, self._is_echo = b"", False


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Bare, "127.0.0.1", 0, backlog=1024)
    print(f"ready: http=127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve on uvloop if it is installed, or else on asyncio's loop."""
    factory = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve())


if __name__ == "__main__":
    main()
