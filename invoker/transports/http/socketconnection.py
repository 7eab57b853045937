"""`SocketConnection`: one WebSocket connection, which is the wire of one conversation.

Theory. The handshake is answered by `invoker.transports.http.handshake`; then::

    state    what comes                              next     what is done
    -------  --------------------------------------  -------  --------------------------------------------------------
    OPEN     a message                               OPEN     the conversation gets it; it may want no more for now
    OPEN     a ping                                  OPEN     the last one of a turn is answered
    OPEN     a close frame, or the end of the bytes  CLOSED   the conversation is notified that its peer is gone
    OPEN     what is no frame                        CLOSING  the conversation fails
    OPEN     the conversation closes                 CLOSING  its farewell and a close frame are sent
    CLOSING  messages                                CLOSING  they are dropped
    CLOSING  a close frame, or linger_s is over      CLOSED   the connection is closed once all of it is written
    CLOSED   -                                                a peer that does not take the rest is cut after write_s

Everything happens in callbacks of the loop, and nothing here is a task. Frames that are written within one turn are
sent together; of a long message one fragment is sent in each turn. While the conversation wants no more messages, or
the peer does not read, nothing is read from the peer: its bytes stay in the kernel. A peer that sends nothing while
three pings are sent is gone; so is one that takes nothing for write_s.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final

from invoker.core.budget import ProcessBudget
from invoker.core.http import LongMessage
from invoker.core.peers import ABNORMAL, Client, peer_of
from invoker.core.steps import Close
from invoker.errors import InvocationError, LimitExceeded, ProtocolViolation, ShuttingDown
from invoker.transports.http.alarm import Alarm
from invoker.transports.http.app import Conversation, SocketSettings
from invoker.transports.http.connections import Connections
from invoker.transports.http.exchange import Listener
from invoker.transports.http.frames import CLOSE, PING, PONG, Control, FrameError, FrameReader, closing, control, framed
from invoker.transports.http.outgoing import Outgoing
from invoker.transports.http.readcontrol import ReadControl

log = logging.getLogger(__name__)

_ROOM_BYTES: Final = 64 * 1024
"""Once this many bytes wait, they are sent without waiting for the end of the turn."""
_TURN: Final = 128
"""How many frames of one connection are handled before other tasks can run."""
_SILENCES: Final = 3
_DEAF_S: Final = 4.0
"""Seconds between pings while nothing is read from the peer: its end may be behind unread bytes, so only a failed write
shows that it has left."""
_TOO_BIG: Final = 1009
_GOING_AWAY: Final = 1001


class SocketConnection(asyncio.Protocol):
    """One WebSocket connection.

    Args:
        conversation: The conversation of the connection.
        settings: Limits.
        connections: The connections of the transport.
        memory: Counts the bytes of incomplete incoming messages, and of long outgoing ones.

    Attributes:
        is_gone: Whether the peer will get nothing any more.
        headers: Not used, since no headers are sent after the handshake.
    """

    has_unparsed = False
    _listener: Listener
    _read_control: ReadControl
    _transport: Any

    def __init__(
        self, conversation: Conversation, settings: SocketSettings, connections: Connections, memory: ProcessBudget
    ) -> None:
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self._conversation, self._settings, self._connections = conversation, settings, connections
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(settings.max_message_bytes)
        self._share = memory.share()
        self._code = self._out_bytes = 0  # `_code`: the close code of an error that this transport found
        self._farewell: tuple[int, str] | None = None  # sent after long messages
        self._is_over = False  # whether the conversation is over
        self._is_closing = self._is_broken = self._has_closed = self._is_lost = self._is_deaf = False
        self._is_held = self._will_take = False  # the conversation is paused; reading continues in a later turn
        self._out: list[bytes] = []
        self._long = Outgoing(memory, self.abort)  # later messages wait for these
        self._will_flush = self._is_full = False
        self._pong: bytes | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._has_heard, self._silences = True, 0
        self._pings, self._alarm = Alarm(), Alarm()

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation; asyncio calls it once."""
        self._transport = transport
        self.peer = Client(peer_of(transport.get_extra_info("peername")), field="")
        self._read_control = ReadControl(self._transport, self.abort, patience_s=0.0)  # a half-close is an end
        self._connections.enter(self)
        self._pings.set(self._settings.ping_s, self._ping)
        self._listener = self._conversation.begin(self)

    def data_received(self, data: bytes) -> None:
        """Read frames from the bytes that have come."""
        self._has_heard = True
        if self._is_broken or self.is_gone:
            return
        self._frames.feed(data)
        if not (self._is_held or self._will_take):
            self._take()
        if not self._will_flush:
            # Bodies that are already awake run first in the next turn, so their frames are sent in that turn.
            self._will_flush = True
            self._loop.call_soon(self._flush)

    def eof_received(self) -> bool:
        """Note that the peer sends no more: it has left. Frames that it does not take soon are dropped."""
        self._alarm.set(self._settings.write_s, self._not_taken)
        self._leave()
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Stop the timers of a connection that is over, and notify the conversation."""
        self._is_lost = True
        for timer in (self._pings, self._alarm, self._read_control):
            timer.close()
        self._connections.leave(self)
        self._leave()
        self._long.taken()
        self._share.close()
        self._conversation.over()

    def pause_writing(self) -> None:
        """Start the time within which a slow peer must take more bytes."""
        self._is_full = True
        self._alarm.set(self._settings.write_s, self._not_taken)

    def resume_writing(self) -> None:
        """Continue to write, since the peer has taken most of the written bytes."""
        self._is_full = False
        if self._is_closing or self.is_gone:
            self._alarm.set(self._settings.linger_s, self._end)
        else:
            self._alarm.unset()
        self._long.taken()
        if self._pong is not None or self._long:
            self._flush_soon()
        self._wake()

    # The transport calls these.

    def fileno(self) -> int:
        """The descriptor of the socket; negative once it is closed."""
        return -1 if self._is_lost else int(self._transport.get_extra_info("socket").fileno())

    def end_when_idle(self) -> None:
        """Fail the conversation: the process is shutting down and has waited long enough for it."""
        if not self._is_over:
            self._listener.fail(ShuttingDown("this invoker is shutting down; connect again elsewhere"))

    def abort(self) -> None:
        """End the connection now, without a close frame."""
        if self.fileno() >= 0:  # asyncio 3.11 fails if `abort` follows a `close` that waits for its last writes
            self._transport.abort()

    cut = abort

    # The wire of the conversation.

    def accepted(self) -> None:
        """Do nothing: no headers follow the handshake."""

    def ask(self) -> None:
        """Continue to give the conversation messages, since it wants more of them."""
        if self._is_held:
            self._is_held = False
            self._take_soon()

    def write(self, frame: str | bytes | LongMessage) -> bool:
        """Send one message; False when the next one should wait for `room`."""
        if self.is_gone or self._is_closing:
            return True
        if isinstance(frame, LongMessage) or self._long:
            self._long.put(frame)
            self._flush_soon()
            return False
        data = framed(frame)
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes >= _ROOM_BYTES:
            self._long.hand(len(data))
            self._flush()
        elif not self._will_flush:
            self._flush_soon()
        return not self._is_full

    async def room(self) -> None:
        """Wait until the peer has taken most of the written bytes, or is gone."""
        while (self._is_full or self._long) and not self.is_gone:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)

    def close(self, close: Close) -> None:
        """Send a close frame, since the conversation is over, and wait for the peer to close as well."""
        self._is_over = True
        if self.is_gone:
            return
        farewell = self._conversation.farewell(close.error)
        for one in farewell.messages:
            self.write(one)
        code = self._code or (_GOING_AWAY if isinstance(close.error, ShuttingDown) else farewell.code)
        self._farewell = code, farewell.reason
        self.peer.got(code)
        self._long.part()
        if not self._long or self._is_broken:
            self._bid_farewell(*self._farewell)

    def _bid_farewell(self, code: int, reason: str) -> None:
        self._say_close(code, reason)
        if self._is_broken and self._transport.can_write_eof():
            with suppress(OSError):  # the peer has reset the connection
                self._transport.write_eof()  # since it cannot be read any more, its close frame would not be noticed
        self._alarm.set(self._settings.write_s if self._is_full else self._settings.linger_s, self._end)
        self._is_held = False
        self._take_soon()

    # Reading.

    def _take(self) -> None:
        """Handle the frames that have come."""
        self._will_take = False
        frames, listener, taken = self._frames, self._listener, 0
        try:
            while not self._is_held and (frame := frames.next()) is not None:
                if type(frame) is Control:
                    self._control(frame)
                    if self._has_closed:
                        return
                elif not self._is_over:
                    self._is_held = not listener.arrived(frame)
                taken += 1
                if taken == _TURN:
                    self._will_take = True
                    break
        except FrameError as error:
            self._break(error)
            return
        held, share = frames.held, self._share
        if held > share.mark:
            try:
                share.grow(held)
            except InvocationError as error:
                self._fail(error)
        elif share.charged:
            share.shrink(held)
        self._listen()

    def _listen(self) -> None:
        """Continue or pause reading, as the conversation wants."""
        if self._will_take:
            self._loop.call_soon(self._take_again)
        if self._is_held and not self._is_deaf:
            self._pings.set(min(self._settings.ping_s, _DEAF_S), self._ping)
        self._is_deaf = self._is_held
        if self._is_held or self._will_take:
            self._read_control.shut()
        else:
            self._read_control.open()

    def _take_soon(self) -> None:
        if not self._will_take:
            self._will_take = True
            self._loop.call_soon(self._take_again)

    def _take_again(self) -> None:
        if self._is_broken or self._is_lost or self._has_closed:
            self._will_take = False
            return
        self._take()

    def _control(self, frame: Control) -> None:
        if frame.kind == PING:
            if not self._is_closing:
                self._pong = frame.payload
                self._flush_soon()
        elif frame.kind == CLOSE:
            self._has_closed = True
            self.peer.got(frame.code)
            if not self._is_closing:
                self._leave()  # set before anything is written, so that nothing follows our close frame
                self._say_close(frame.code, "")
            self._end()

    def _break(self, error: FrameError) -> None:
        """Refuse bytes that are not a valid frame; the bytes after them cannot be read."""
        self._is_broken = True
        self._frames = FrameReader(0)
        self._share.close()
        self._code = error.code
        kind = LimitExceeded if error.code == _TOO_BIG else ProtocolViolation
        self._fail(kind(str(error)))
        self._listen()

    def _fail(self, error: InvocationError) -> None:
        if not self._is_over:
            self._listener.fail(error)

    # Writing.

    def _flush_soon(self) -> None:
        if not self._will_flush:
            self._will_flush = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        if self._is_lost:
            return
        out = self._out
        if self._pong is not None and not self._is_full and not self._is_closing:
            out.append(control(PONG, self._pong))
            self._pong = None
        if out:
            data = out[0] if len(out) == 1 else b"".join(out)
            out.clear()
            self._out_bytes = 0
            self._transport.write(data)
        if self._is_full:
            return
        self._long.taken()
        if not self._long:
            return
        if (part := self._long.next()) is not None:  # other tasks have a turn before the next message
            self._transport.write(part)
            self._flush_soon()
            return
        self._wake()
        if self._farewell is not None:
            self._bid_farewell(*self._farewell)

    def _say_close(self, code: int, reason: str) -> None:
        self._out.append(closing(code, reason))
        self._is_closing = True
        self._long.clear()
        self._pong = None
        self._flush()

    def _wake(self) -> None:
        for one in self._waiters:
            if not one.done():
                one.set_result(None)

    # Time, and the end.

    def _ping(self) -> None:
        """Ping the peer. While reading is paused, only a failed write shows that the peer has left."""
        is_deaf = self._is_held or self._will_take
        self._silences = 0 if self._has_heard or is_deaf else self._silences + 1
        self._has_heard = False
        if self._is_closing:
            return
        if self._silences >= _SILENCES:
            log.info("a peer answered no ping; its connection is cut")
            self.abort()
            return
        if not self._is_full:
            self._out.append(control(PING))
            self._flush()
        self._pings.set(min(self._settings.ping_s, _DEAF_S) if is_deaf else self._settings.ping_s, self._ping)

    def _not_taken(self) -> None:
        log.warning("a peer read nothing within %s s; its connection is cut", self._settings.write_s)
        self.abort()

    def _leave(self) -> None:
        """End the conversation, since the peer is gone."""
        if not self.is_gone:
            self.is_gone = True
            self.peer.got(ABNORMAL)
            self._out.clear()
            self._out_bytes = 0
            self._long.clear()
            self._wake()
            if not self._is_over:
                self._listener.gone()

    def _end(self) -> None:
        """Close once everything is written. The peer may delay that, but not for ever."""
        if not self._is_lost:
            self._alarm.set(self._settings.write_s, self._not_taken)
            self._transport.close()
