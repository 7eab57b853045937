"""`AsgiSocket`: a WebSocket of an ASGI server; `serve_socket` answers its handshake.

The server implements WebSocket: the handshake, frames, pings and the closing. The rest is as in
`transports.http.socketconnection`: whether a client may connect, which handler serves a path, how long a message may
be, which messages are sent last, and how long a client may take no bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import MutableMapping
from functools import partial
from typing import Any, Final

from invoker.core.budget import STEP_BYTES, Unread
from invoker.core.http import LongMessage, RequestHead, Response
from invoker.core.peers import ABNORMAL, Client, peer_of
from invoker.core.steps import Close
from invoker.errors import InvocationError, LimitExceeded, ShuttingDown
from invoker.execution.bodies.runner import later
from invoker.transports.http.app import NOT_FOUND, Conversation, HttpApp, SocketSettings
from invoker.transports.http.asgiexchange import Receive, Scope, Send
from invoker.transports.http.exchange import Listener

log = logging.getLogger(__name__)

_ROOM_BYTES: Final = 64 * 1024
"""How many bytes may wait for the server to take them; code that writes more has to wait until half of them are
taken."""
_REASON_BYTES: Final = 123
_GOING_AWAY: Final = 1001
_TOO_BIG: Final = 1009
_TRY_AGAIN: Final = 1013


async def serve_socket(app: HttpApp, head: RequestHead, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one WebSocket, from its handshake on.

    Args:
        app: Decides whether the client may connect, and has the handlers of paths.
        head: The head of its handshake.
        scope: The scope of the connection, by ASGI.
        receive: The ASGI ``receive`` of the connection.
        send: The ASGI ``send`` of the connection.
    """
    verdict = app.judge(head, host="", is_local=False, is_socket=True)
    if verdict.response is not None:
        await refuse(scope, receive, send, app.judged(verdict.response, head))
        return
    handler = app.sockets(head.path)
    met = NOT_FOUND if handler is None else handler.meet(head)
    if isinstance(met, Response):
        told = {"status": met.status, "path": head.path, "detail": met.body.decode().rstrip()}
        log.info("a WebSocket was refused", extra=told)
        await refuse(scope, receive, send, met)
        return
    assert handler is not None  # `shake_hands` returns a response if it finds no handler
    wire = AsgiSocket(app, met, handler.settings, receive, send)
    wire.peer.address = peer_of(scope.get("client"))
    await wire.serve()


async def refuse(scope: Scope, receive: Receive, send: Send, response: Response) -> None:
    """Refuse a handshake with a response if the server supports that, otherwise by a close, sent as status 403."""
    await receive()  # websocket.connect
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": _TRY_AGAIN})
        return
    headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
    headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


class AsgiSocket:
    """One connection, which is the wire of one conversation. One task writes, and another one reads.

    Args:
        app: The app of the transport.
        conversation: The conversation of the socket.
        settings: Limits.
        receive: The ASGI ``receive`` of the connection.
        send: The ASGI ``send`` of the connection.

    Attributes:
        is_gone: Whether the peer will get nothing any more.
        headers: Not used, since no headers are sent after the handshake.
        peer: The caller, and how the conversation ended.
    """

    has_unparsed = False
    _listener: Listener

    def __init__(
        self, app: HttpApp, conversation: Conversation, settings: SocketSettings, receive: Receive, send: Send
    ) -> None:
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self.peer = Client("", field="")
        self._app = app
        self._conversation = conversation
        self._settings = settings
        self._receive = receive
        self._send = send
        self._unread: Unread | None = None  # the unsent messages, once these are large
        self._loop = asyncio.get_running_loop()
        self._out: deque[str | bytes] = deque()
        self._size = 0
        self._code = 0  # a close code that this transport has set, not the conversation
        self._end: dict[str, Any] | None = None
        self._changed = asyncio.Event()  # set when there are messages to write, or at the end
        self._wants = asyncio.Event()
        self._has_room = asyncio.Event()
        self._wants.set()
        self._has_room.set()

    async def serve(self) -> None:
        """Run the conversation to its end."""
        reading: asyncio.Task[None] | None = None
        try:
            await self._receive()  # websocket.connect
            await self._send({"type": "websocket.accept", "subprotocol": self._conversation.subprotocol or None})
            self._app.connections.enter(self)
            self._listener = self._conversation.begin(self)
            reading = asyncio.create_task(self._read(), name="socket")
            await self._write_out()
        except TimeoutError:
            log.warning("a peer read nothing within %s s", self._settings.write_s)
        except OSError:
            pass  # some servers raise this when the peer is gone
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.wait([reading])
                self._leave()
            self._app.connections.leave(self)
            self._conversation.over()

    # These methods are called by the transport.

    def fileno(self) -> int:
        """-1, since only the server knows the descriptor."""
        return -1

    def end_when_idle(self) -> None:
        """Fail the conversation: the process is shutting down and has waited long enough for it."""
        if self._end is None:
            self._listener.fail(ShuttingDown("this invoker is shutting down; connect again elsewhere"))

    def abort(self) -> None:
        """End the conversation now; the server closes the socket."""
        self._leave()

    cut = abort

    # The wire of the conversation.

    def accepted(self) -> None:
        """Do nothing: no headers follow the handshake."""

    def ask(self) -> None:
        """Continue to read messages, by the next ``receive``."""
        self._wants.set()

    def write(self, frame: str | bytes | LongMessage) -> bool:
        """Send one message; False when the next one should wait for `room`."""
        if isinstance(frame, LongMessage):
            frame = frame.joined()
        if not (self.is_gone or self._end is not None):
            self._out.append(frame)
            self._size += len(frame)
            self._count()
            if self._size >= _ROOM_BYTES:
                self._has_room.clear()
            self._changed.set()
        return self._has_room.is_set()

    async def room(self) -> None:
        """Wait until the peer has taken most of the written messages, or is gone."""
        await self._has_room.wait()

    def close(self, close: Close) -> None:
        """Send the peer the ending of the conversation."""
        error = close.error
        farewell = self._conversation.farewell(error)
        for one in farewell.messages:
            self.write(one)
        code = self._code or (_GOING_AWAY if isinstance(error, ShuttingDown) else farewell.code)
        self.peer.got(code)
        reason = farewell.reason.encode("utf-8", "backslashreplace")[:_REASON_BYTES].decode("utf-8", "ignore")
        self._end = {"type": "websocket.close", "code": code, "reason": reason}
        if self._unread is not None and self._size:
            self._unread.part()
        self._wants.set()
        self._changed.set()

    # The tasks.

    async def _read(self) -> None:
        """Give the conversation the messages, at the pace that it wants, until the peer leaves."""
        try:
            while (message := await self._next())["type"] != "websocket.disconnect":
                if self._end is None and not self._code:
                    self._take(message)
        except OSError:
            pass  # some servers raise this when the peer is gone
        except Exception:  # a bug in a service; the peer must not see its text
            log.exception("a WebSocket failed")
        self._leave()

    async def _next(self) -> MutableMapping[str, Any]:
        await self._wants.wait()
        return await self._receive()

    def _take(self, message: MutableMapping[str, Any]) -> None:
        text, most = message.get("text"), self._settings.max_message_bytes
        frame = message.get("bytes") or b"" if text is None else text
        if len(frame) > most or (text is not None and len(text) * 4 > most and len(text.encode()) > most):
            self._code = _TOO_BIG
            self._listener.fail(LimitExceeded(f"a message exceeds the limit of {most} bytes"))
        elif not self._listener.arrived(frame):
            self._wants.clear()

    async def _write_out(self) -> None:
        """Write until the conversation is over and all is written, or the peer is gone."""
        out, write_s = self._out, self._settings.write_s
        while not self.is_gone:
            if out:
                frame = out.popleft()
                kind = "text" if isinstance(frame, str) else "bytes"
                async with asyncio.timeout(write_s):
                    await self._send({"type": "websocket.send", kind: frame})
                self._size -= len(frame)
                self._count()
                if self._size <= _ROOM_BYTES // 2:
                    self._has_room.set()
            elif self._end is not None:
                async with asyncio.timeout(write_s):
                    await self._send(self._end)
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _count(self) -> None:
        """Count the waiting messages, if they are large, also in the server."""
        if self._unread is None:
            if self._size <= STEP_BYTES:
                return
            self._unread = Unread(self._app.driver.engine.memory)
        if self._size:
            self._unread.hold(self._size, partial(later, self._loop, self._drop))
        else:
            self._unread.take()

    def _drop(self, error: InvocationError) -> None:
        log.info("a connection is ended, because its peer reads nothing", extra={"detail": str(error)})
        self.abort()

    def _leave(self) -> None:
        """End the conversation, since the peer is gone."""
        if self.is_gone:
            return
        self.is_gone = True
        self.peer.got(ABNORMAL)
        self._out.clear()
        self._size = 0
        self._count()
        self._changed.set()
        self._has_room.set()
        if self._end is None:
            self._listener.gone()
