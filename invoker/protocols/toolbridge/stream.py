"""`StreamTool`: one tool call, whose values are sent as they are made (T-076 to T-087).

Theory. Chunks are numbered from 0. The table shows the chunks for the values of the function. The last chunk is a
``complete`` or an ``error``; after it the rpc ends with OK::

    given                        chunks
    ---------------------------  ---------------------------------------------------------------
    a value                      data
    bytes above ``chunk_size``   metadata ``bytes_total``, then several data
    `invoker.Metadata`           metadata
    a value of another output    metadata ``resultIndex``, if the tool has several outputs, then as above

Frames are assembled byte for byte, since the data of most frames is the ``Any`` that the codec made.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack, unpack
from invoker.codecs.varint import varint
from invoker.core.steps import Answered, Ask, Cancel, Close, Emitted, Event, Finished, Send, Step
from invoker.message import EMPTY, METADATA, Headers
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, Kind, close_with, no_request, translated
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions
from invoker.protocols.toolbridge.reply import field, metrics_of
from invoker.protocols.toolbridge.sessions import found_session, question_about
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from invoker.protocols.toolbridge.unary import parsed
from invoker.protocols.toolbridge.wire import StreamRequest

_TIMEOUT_MS: Final = 300_000
_CHUNK_BYTES: Final = 64 * 1024
_AHEAD_BYTES: Final = 10 * 1024 * 1024
_AROUND: Final = 128
"""The largest size of a frame without the id of the stream and the chunk."""
_BYTES: Final = pack(b"")[:-2]
"""The beginning of every packed value of bytes, up to the length of the value."""


class StreamTool:
    """Translates one ``StreamTool`` rpc.

    Args:
        host_sessions: The host sessions.
        metadata: The metadata of the rpc.

    Attributes:
        ahead_bytes: How many unsent bytes there may be while the function continues; 0: the function waits for the
            caller (T-081, T-082).
    """

    __slots__ = (
        *(
            "_asked",
            "_call",
            "_chunk_bytes",
            "_data",
            "_host_sessions",
            "_index",
            "_is_asked",
            "_is_closed",
            "_metadata",
            "_number",
        ),
        *("_session", "_size", "_stream_id", "_tag", "ahead_bytes"),
    )

    def __init__(self, host_sessions: HostSessions, metadata: Headers = EMPTY) -> None:
        self.ahead_bytes = 0
        self._host_sessions = host_sessions
        self._metadata = metadata
        self._asked: Asked | None = None
        self._call: ToolCall | None = None
        self._session: HostSession | None = None
        self._size = 0
        self._is_asked = self._is_closed = False
        self._stream_id = ""
        self._tag = b""
        self._chunk_bytes = _CHUNK_BYTES
        self._number = self._data = 0
        self._index = 0

    def receive(self, frame: bytes) -> Sequence[Step]:
        """Translate the request; later frames are dropped."""
        if self._is_asked:
            return ()
        self._is_asked = True
        host_sessions = self._host_sessions
        try:
            request = parsed(host_sessions, StreamRequest, frame)
        except BridgeError as error:
            self._is_closed = True
            return (close_with(error),)
        self._size = len(frame)
        self._stream_id = request.stream_id or uuid.uuid4().hex
        self._tag = field(b"\x0a", self._stream_id.encode())
        self._asked = Asked(request.session_id, request.tool_id, request.args, request.kwargs, metadata=self._metadata)
        try:
            self._configure(request.config)
            session = host_sessions.find(request.session_id)
            if session is None:
                return (Ask("session", question_about(host_sessions, request.session_id)),)
        except BridgeError as error:
            return self._refuse(error)
        return self._begin(session)

    def half_close(self) -> Sequence[Step]:
        """Translate the half-close of the caller; an rpc without a request is refused."""
        if self._is_asked:
            return ()
        self._is_asked = self._is_closed = True
        return (Close(no_request()),)

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of the invocation, or the store's answer."""
        if self._is_closed:
            return ()
        if type(event) is Answered:
            assert self._asked is not None
            if event.key == "bound":
                assert self._session is not None
                assert self._call is not None
                return self._run(self._session, self._call)
            try:
                session = found_session(self._host_sessions, self._asked.session_id, event.value)
            except BridgeError as error:
                return self._refuse(error)
            return self._begin(session)
        call = self._call
        assert call is not None
        if type(event) is Emitted:
            return self._chunks(call, event)
        if type(event) is Finished:
            call.finish(event.error)
            return self._end(call)
        return ()

    # Private helpers.

    def _configure(self, config: Any) -> None:
        for name in ("chunk_size", "buffer_size"):
            if getattr(config, name) < 0:
                raise BridgeError(
                    Kind.VALIDATION,
                    f"config.{name} is {getattr(config, name)}; expected a number that is not negative",
                    code="range", field=f"config.{name}",
                )  # fmt: skip
        room = max(1, self._host_sessions.settings.message_bytes - len(self._tag) - _AROUND)
        self._chunk_bytes = min(config.chunk_size or _CHUNK_BYTES, room)
        self.ahead_bytes = 0 if config.backpressure_enabled else _AHEAD_BYTES

    def _begin(self, session: HostSession) -> Sequence[Step]:
        assert self._asked is not None
        call = self._call = ToolCall(self._host_sessions, self._asked, "stream")
        call.default_ms = _TIMEOUT_MS
        aside = call.aside(self._size)
        if aside is not None:
            self._session = session
            return (aside,)
        return self._run(session, call)

    def _run(self, session: HostSession, call: ToolCall) -> Sequence[Step]:
        steps = call.begin(session)
        if not steps:
            return self._end(call)
        self._asked = call.asked  # for observers; large arguments are dropped, since the function has them
        return steps

    def _refuse(self, error: BridgeError) -> Sequence[Step]:
        assert self._asked is not None
        call = self._call = ToolCall(self._host_sessions, self._asked, "stream")
        call.finish(error)
        return self._end(call)

    def _chunks(self, call: ToolCall, event: Emitted) -> Sequence[Step]:
        message = event.message
        payload = message.payload
        if message.headers and METADATA in message.headers:
            return (self._told(message.headers[METADATA], payload),)
        is_split = len(payload) > self._chunk_bytes and payload.startswith(_BYTES)
        try:
            call.check(payload, self._chunk_bytes if is_split else 0)
        except BridgeError as error:
            return (Cancel(call.key, error),)
        if event.index == self._index and not is_split:
            self._data += 1
            self._host_sessions.chunks += 1
            return (self._frame(b"\x1a", payload),)
        return tuple(self._more(event.index, payload, is_split=is_split))

    def _more(self, index: int, payload: bytes, *, is_split: bool) -> Iterator[Step]:
        """The chunks of a value that needs several."""
        if index != self._index:
            self._index = index
            yield self._told("resultIndex", pack(index))
        value = unpack(payload) if is_split else b""
        most = self._chunk_bytes
        if len(value) <= most:
            self._data += 1
            self._host_sessions.chunks += 1
            yield self._frame(b"\x1a", payload)
            return
        yield self._told("bytes_total", pack(len(value)))
        for start in range(0, len(value), most):
            self._data += 1
            self._host_sessions.chunks += 1
            yield self._frame(b"\x1a", pack(value[start : start + most]))

    def _told(self, key: str, value: bytes) -> Send:
        """The frame of a chunk of metadata, which has one key and its serialised value."""
        return self._frame(b"\x22", field(b"\x0a", key.encode()) + field(b"\x12", value))

    def _frame(self, tag: bytes, content: bytes) -> Send:
        number = self._number
        self._number += 1
        sequence = b"\x10" + varint(number) if number else b""
        return Send(b"".join((self._tag, sequence, tag, varint(len(content)), content)))

    def _end(self, call: ToolCall) -> Sequence[Step]:
        self._is_closed = True
        self._call = self._asked = None
        error = call.error
        if isinstance(error, ENDS_RPC):
            return (close_with(error),)
        if error is None:
            complete = pb.CompleteSignal(total_chunks=self._data, metrics=metrics_of(call))
            return (self._frame(b"\x2a", complete.SerializeToString()), Close())
        return (self._frame(b"\x32", translated(error).info().SerializeToString()), Close())
