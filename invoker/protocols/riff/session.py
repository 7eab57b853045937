"""The riff streaming protocol: one gRPC call, one invocation.

Theory. The grammar of what a caller sends is ``StartFrame InputFrame*``, then a half-close::

    state      frame       next       steps
    ---------  ----------  ---------  -------------------------------------------
    FRESH      start       OPENING    Open
    FRESH      data        -          ProtocolViolation (R-045)
    FRESH      (nothing)   -          ProtocolViolation (R-047)
    FRESH      half-close  -          ProtocolViolation (R-048)
    OPENING    refused     REFUSED    Timer (R-170)
    OPENING    any other   STREAMING  as in STREAMING
    REFUSED    any, timer  CLOSED     Close
    STREAMING  data        STREAMING  Feed
    STREAMING  start       -          ProtocolViolation (R-046)
    STREAMING  half-close  ENDED      EndInput(ALL)
    any        Emitted     same       Send(OutputSignal)
    any        Finished    CLOSED     Close

Some callers, such as riff's HTTP adapter, send further frames after the StartFrame without waiting, and take a status
that comes meanwhile for a broken stream. So an invalid StartFrame (ProtocolViolation, NotAcceptable) is refused with
the next frame, with the half-close, or after a second (R-170). An overloaded process, or one that drains, refuses at
once.

The invocation may finish before the caller's frames have ended (R-114); frames that come later are then dropped without
an error. The engine, and not this session, checks the number of inputs and outputs, media types and codecs.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError as WireError

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.cache import Cache
from invoker.core.steps import (
    CallStep,
    Close,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Timer,
)
from invoker.errors import InvocationError, NotAcceptable, ProtocolViolation
from invoker.message import EMPTY, Message
from invoker.protocols.riff.wire import output_signal, output_tail, output_with_headers

_ID = "riff"

_PATIENCE_S = 1.0
"""How long a refusal waits for the caller's next frame."""

_TAILS: Cache[tuple[str, int], bytes] = Cache(64, 64 * 1024)
"""The bytes that follow the payload of a frame without headers, by media type and index; most frames share them
(R-011)."""

_STARTS: Cache[bytes, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = Cache(128, 1024 * 1024)
"""Maps a serialised StartFrame to its content: accepted media types, names of inputs, names of outputs."""

_ENTRY_BYTES = 256
"""Bytes that an entry of the cache takes in addition to the frame itself."""


class State(enum.Enum):
    """The states of a conversation; the module's docstring explains them."""

    FRESH = "waiting for the StartFrame"
    OPENING = "waiting for the first InputFrame"
    REFUSED = "about to refuse the StartFrame"
    STREAMING = "taking InputFrames"
    ENDED = "the caller has half-closed"
    CLOSED = "the invocation has finished"


class RiffSession:
    """Translates the frames of one ``Invoke`` call; frames are serialised protobuf messages.

    Args:
        metadata: The metadata of the call, given to the function's context.
        function: The name of the function in a catalogue; empty for the only one.
    """

    __slots__ = ("_function", "_metadata", "_parse", "_refusal", "state")

    def __init__(self, metadata: Mapping[str, str] = EMPTY, *, function: str = "") -> None:
        self.state = State.FRESH
        self._metadata = metadata
        self._function = function
        self._parse = pb.InputSignal.FromString
        self._refusal: InvocationError | None = None

    def receive(self, frame: bytes) -> Sequence[CallStep]:
        """Translate one serialised ``InputSignal``.

        Raises:
            ProtocolViolation: The frame is not a protobuf message (R-120), or a signal that the grammar forbids here.
        """
        if self.state is State.FRESH and (known := _STARTS.find(frame)) is not None:
            self.state = State.OPENING
            return (Open(_ID, self._function, *known, self._metadata, protocol=_ID),)
        try:
            signal = self._parse(frame)
        except WireError:
            if self.state is State.CLOSED:
                return ()
            if self.state is State.REFUSED:
                return self._refused()
            raise self._violation(f"{len(frame)} bytes were received that are not a valid InputSignal") from None
        case = signal.WhichOneof("frame")
        if case == "data" and (self.state is State.STREAMING or self.state is State.OPENING):
            self.state = State.STREAMING
            data = signal.data
            headers = dict(data.headers) if data.headers else EMPTY
            return (Feed(_ID, data.argIndex, Message(data.payload, headers, data.contentType)),)
        if self.state is State.REFUSED:
            return self._refused()
        if self.state is State.CLOSED:
            return ()  # the function ended first; the rest of the input is discarded
        if case == "start":
            return self._start(signal.start, frame)
        if case is None:
            # neither oneof case is set
            raise self._violation(f"a signal is neither a start nor a data signal, while {self.state.value}")
        if self.state is State.ENDED:
            raise ProtocolViolation("a data signal was received after the half-close")
        # R-045, riff "Input Signals": the first signal must be a StartFrame.
        raise ProtocolViolation("a data signal was received, but the start signal was not received or processed yet")

    def half_close(self) -> Sequence[CallStep]:
        """Translate the normal end of the caller's frames.

        Raises:
            ProtocolViolation: No StartFrame came (R-048).
        """
        if self.state is State.FRESH:
            raise ProtocolViolation("the call was half-closed without any signal; a start signal was expected")
        if self.state is State.REFUSED:
            return self._refused()
        if self.state not in (State.OPENING, State.STREAMING):
            return ()
        self.state = State.ENDED
        return (EndInput(_ID),)

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation."""
        if self.state is State.CLOSED:
            return ()
        if type(event) is Emitted:
            message = event.message
            if message.headers:
                return (Send(output_with_headers(message, event.index)),)
            tail = _TAILS.find((message.media_type, event.index)) or _tail(message.media_type, event.index)
            return (Send(output_signal(message.payload, tail)),)
        if type(event) is OutputEnded:
            return ()  # only the end of all outputs is sent to the peer
        if type(event) is Elapsed:
            return self._refused()
        assert type(event) is Finished
        if self.state is State.OPENING and isinstance(event.error, (ProtocolViolation, NotAcceptable)):
            return self._refuse(event.error)
        self.state = State.CLOSED
        return (Close(event.error),)

    def _violation(self, text: str) -> ProtocolViolation:
        """Make the error for a frame; one directly after the StartFrame ends the wait for the next frame (R-170)."""
        if self.state is State.OPENING:
            self.state = State.STREAMING
        return ProtocolViolation(text)

    def _refuse(self, error: InvocationError) -> Sequence[CallStep]:
        """Refuse an invalid StartFrame with the next frame, with the half-close, or after a while (R-170)."""
        self.state = State.REFUSED
        self._refusal = error
        return (Timer(_PATIENCE_S),)

    def _refused(self) -> Sequence[CallStep]:
        self.state = State.CLOSED
        return (Close(self._refusal),)

    def _start(self, start: pb.StartFrame, frame: bytes) -> Sequence[CallStep]:
        if self.state is not State.FRESH:
            # R-046, riff "Input Signals": a later StartFrame fails this rpc only.
            raise self._violation(
                "a start signal may come only once; rejected: "
                f"expectedContentTypes {list(start.expectedContentTypes)}, inputNames {list(start.inputNames)}, "
                f"outputNames {list(start.outputNames)}"
            )
        accepts = tuple(start.expectedContentTypes)
        names = tuple(start.outputNames)
        if names and len(names) != len(accepts):
            # R-053, riff "StartFrame": both lists have one entry per output.
            return self._refuse(
                ProtocolViolation(
                    f"{len(names)} outputNames {list(names)} disagree with {len(accepts)} expectedContentTypes "
                    f"{list(accepts)}"
                )
            )
        self.state = State.OPENING
        inputs = tuple(start.inputNames)
        _STARTS.keep(frame, (accepts, inputs, names), _ENTRY_BYTES + 8 * len(frame))
        return (Open(_ID, self._function, accepts, inputs, names, self._metadata, protocol=_ID),)


def _tail(media_type: str, index: int) -> bytes:
    tail = output_tail(media_type, index)
    _TAILS.keep((media_type, index), tail, _ENTRY_BYTES + 2 * len(tail))
    return tail
