"""The riff streaming protocol: one gRPC call, one invocation.

Theory. The grammar of what a caller sends is ``StartFrame InputFrame*``, then a half-close::

    state      frame       next       steps
    ---------  ----------  ---------  -------------------------------------------
    FRESH      start       STREAMING  Open
    FRESH      data        -          ProtocolViolation (R-045)
    FRESH      (nothing)   -          ProtocolViolation (R-047)
    FRESH      half-close  -          ProtocolViolation (R-048)
    STREAMING  data        STREAMING  Feed
    STREAMING  start       -          ProtocolViolation (R-046)
    STREAMING  half-close  ENDED      EndInput(ALL)
    any        Emitted     same       Send(OutputSignal)
    any        Finished    CLOSED     Close

The invocation may finish at any time, also before the caller's frames ended (R-114): then frames still under way are
dropped without a word. Arity, media types and codecs are the machinery's business, not the grammar's.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError as WireError

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step
from invoker.errors import ProtocolViolation
from invoker.message import EMPTY, Message

__all__ = ["METHOD", "SERVICE", "RiffSession", "State"]

SERVICE = "streaming.Riff"
METHOD = "Invoke"

_ID = "riff"
_DEFAULT_TYPE = "application/octet-stream"


class State(enum.Enum):
    """Where the conversation stands."""

    FRESH = "waiting for the StartFrame"
    STREAMING = "taking InputFrames"
    ENDED = "the caller has half-closed"
    CLOSED = "the invocation has finished"


class RiffSession:
    """Translates the frames of one ``Invoke`` call; frames are serialised protobuf messages.

    Args:
        metadata: Of the call, given to the function's context.
        function: Which function of a catalogue is meant; empty for the only one.
    """

    __slots__ = ("_function", "_metadata", "_parse", "state")

    def __init__(self, metadata: Mapping[str, str] = EMPTY, *, function: str = "") -> None:
        self.state = State.FRESH
        self._metadata = metadata
        self._function = function
        self._parse = pb.InputSignal.FromString

    def receive(self, frame: bytes) -> Sequence[Step]:
        """Translate one serialised ``InputSignal``.

        Raises:
            ProtocolViolation: Not a protobuf message (R-120), or a signal the grammar forbids here.
        """
        try:
            signal = self._parse(frame)
        except WireError:
            if self.state is State.CLOSED:
                return ()
            raise ProtocolViolation(f"{len(frame)} bytes were received that are not an InputSignal") from None
        case = signal.WhichOneof("frame")
        if case == "data" and self.state is State.STREAMING:
            return self._feed(signal.data)
        if self.state is State.CLOSED:
            return ()  # the function ended first; the rest of the input is discarded
        if case == "start":
            return self._start(signal.start)
        if case is None:
            # neither oneof case is set.
            raise ProtocolViolation(f"a signal is neither a start nor a data signal, while {self.state.value}")
        if self.state is State.ENDED:
            raise ProtocolViolation("a data signal was received after the half-close")
        # R-045, riff "Input Signals": the first signal must be a StartFrame.
        raise ProtocolViolation("a data signal was received, but the start signal was not received or processed yet")

    def half_close(self) -> Sequence[Step]:
        """Translate the normal end of the caller's frames.

        Raises:
            ProtocolViolation: No StartFrame came (R-048).
        """
        if self.state is State.FRESH:
            raise ProtocolViolation("the call was half-closed without any signal; a start signal was expected")
        if self.state is not State.STREAMING:
            return ()
        self.state = State.ENDED
        return (EndInput(_ID),)

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of the invocation."""
        if self.state is State.CLOSED:
            return ()
        if type(event) is Emitted:
            message = event.message
            frame = pb.OutputFrame(
                payload=message.payload, contentType=message.media_type or _DEFAULT_TYPE, resultIndex=event.index
            )
            if message.headers:
                frame.headers.update(message.headers)
            return (Send(pb.OutputSignal(data=frame).SerializeToString()),)
        assert type(event) is Finished
        self.state = State.CLOSED
        return (Close(event.error),)

    def _start(self, start: pb.StartFrame) -> Sequence[Step]:
        if self.state is not State.FRESH:
            # R-046, riff "Input Signals": a later StartFrame fails this rpc only.
            raise ProtocolViolation(
                "a start signal may come only once; rejected: "
                f"expectedContentTypes {list(start.expectedContentTypes)}, inputNames {list(start.inputNames)}, "
                f"outputNames {list(start.outputNames)}"
            )
        accepts = tuple(start.expectedContentTypes)
        names = tuple(start.outputNames)
        if names and len(names) != len(accepts):
            # R-053, riff "StartFrame": both lists have one entry an output.
            raise ProtocolViolation(
                f"{len(names)} outputNames {list(names)} disagree with {len(accepts)} expectedContentTypes "
                f"{list(accepts)}"
            )
        self.state = State.STREAMING
        return (Open(_ID, self._function, accepts, tuple(start.inputNames), names, self._metadata),)

    def _feed(self, data: pb.InputFrame) -> Sequence[Step]:
        headers = dict(data.headers) if data.headers else EMPTY
        return (Feed(_ID, data.argIndex, Message(data.payload, headers, data.contentType)),)
