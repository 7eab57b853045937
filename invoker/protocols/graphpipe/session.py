"""One request of GraphPipe: an inference is one invocation, whose inputs are named tensors.

Theory. A conversation is one request and one response, over HTTP and over bare sockets alike::

    state    what comes        next     steps
    -------  ----------------  -------  -----------------------------------------------------------------------------
    FRESH    a request         RUNNING  Open (with the inputs that are given, in declared order), a Feed each, EndInput
    FRESH    one for metadata  CLOSED   Send(Reply), Close (G-092: nothing is invoked)
    FRESH    a wrong one       CLOSED   Send(Reply), Close
    FRESH    end               -        ProtocolViolation
    RUNNING  a Row             RUNNING  a Feed each; of functions that want rows, which are opened with no input (G-073)
    RUNNING  end               RUNNING  EndInput, of such functions
    RUNNING  Emitted           RUNNING  - (kept); Cancel when an output gives more than it may
    RUNNING  Finished          CLOSED   Send(Answer) or Send(Reply with the error), Close

What can be known before the function runs is settled by `prepare`, which is a function by itself so that a door may
call it elsewhere than on the loop if the buffer is large (G-102). The session is then given what it made.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias

import msgspec

from invoker.codecs.tensor import TENSOR, message_of
from invoker.core.steps import Cancel, Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step
from invoker.errors import EncodeError, ProtocolViolation
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.graphpipe.answer import Answer, Reply, refusal
from invoker.protocols.graphpipe.batch import alike, count_of_batch, merged
from invoker.protocols.graphpipe.binding import GivenInput, admit, fitting, given_inputs, wanted_outputs
from invoker.protocols.graphpipe.config import RequestConfig
from invoker.protocols.graphpipe.errors import Met, explained, translated
from invoker.protocols.graphpipe.model import Model, ModelPort
from invoker.protocols.graphpipe.plain import message_as
from invoker.protocols.graphpipe.rows import count_rows, row
from invoker.protocols.graphpipe.telling import tell_asked, tell_given
from invoker.tensors import (
    LIMIT_BYTES,
    Code,
    GraphPipeError,
    InferRequest,
    MetadataRequest,
    read_request,
)
from invoker.tensors.flat import Weigh

__all__ = ["CheckedRequest", "GraphPipeSession", "Row", "State", "joint", "prepare", "refused"]

Buffer: TypeAlias = bytes | bytearray | memoryview

_ID: Final = "infer"
_HELD_PER_LIMIT: Final = 4


class CheckedRequest(msgspec.Struct, frozen=True):
    """A request that was read and checked.

    Attributes:
        steps: To begin with; they may already answer it.
        wanted: Indexes of the outputs that are to be sent, in order; one may repeat.
        ports: The same outputs.
        known: Sizes by their declared names, as the inputs have them.
        most_bytes: That the function may give.
        given: Its inputs, where they are still needed: for rows and for batches.
        rows: How many they have; None: they are fed whole.
        about: What it asks for, for the log: names, types and shapes, never values (G-105, G-106).
        config: What it says beside its tensors.
        kind: What requests have in common that may be joined with it; None: none may.
        met: Types and shapes of its inputs, for errors.
        parts: Which parts of an output that is not declared are wanted; None: all that there are.
    """

    steps: tuple[Step, ...]
    wanted: tuple[int, ...] = ()
    ports: tuple[ModelPort, ...] = ()
    known: dict[str, int] = {}
    most_bytes: int = _HELD_PER_LIMIT * LIMIT_BYTES
    given: tuple[GivenInput, ...] = ()
    rows: int | None = None
    about: str = "nothing"
    config: bytes = b""
    kind: Hashable | None = None
    met: tuple[Met, ...] = ()
    parts: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Rows of a request that may be joined."""
        return count_of_batch(self.given)


class Resolved(msgspec.Struct, frozen=True):
    """What a request comes to: inputs, wanted outputs, config, sizes by their declared names, and wanted parts."""

    given: tuple[GivenInput, ...]
    wanted: tuple[int, ...]
    config: bytes
    known: dict[str, int]
    parts: tuple[int, ...] | None = None


class Row(msgspec.Struct, frozen=True):
    """A door says that the driver may have one more row."""

    index: int


class State(enum.Enum):
    """Where the conversation stands."""

    FRESH = "waiting for the request"
    RUNNING = "the function runs"
    CLOSED = "the response was given"


def prepare(
    model: Model,
    buffer: Buffer,
    *,
    limit_bytes: int = LIMIT_BYTES,
    metadata: Headers = EMPTY,
    weigh: Weigh | None = None,
) -> CheckedRequest:
    """Read and check a request, and say what is to be done.

    Args:
        model: What is asked.
        buffer: Exactly one Request; tensors become views on it, so it must not change until the response is there.
        limit_bytes: Larger ones are refused; as much may be fed to the function.
        metadata: Of the conversation, for the function's `Context`.
        weigh: Told of what elements will take, before they are made; raises Overloaded when that is too much.
    """
    request = None
    try:
        request = read_request(buffer, limit_bytes, weigh)
        if isinstance(request, MetadataRequest):
            response = Reply((model.metadata_buffer,), len(model.metadata_buffer))
            return CheckedRequest((Send(response), Close()), about=tell_asked(request, model))
        return _inference(model, request, limit_bytes, metadata)
    except GraphPipeError as error:
        return refused(explained(error, metadata), about=tell_asked(request, model))


def refused(error: GraphPipeError, *, about: str = "nothing") -> CheckedRequest:
    """A request that fails without the function; its traceback, which leads to the buffer, is not kept."""
    bare = error.bare
    return CheckedRequest((Send(refusal(bare)), Close(bare)), about=about)


class GraphPipeSession:
    """Translates one request into one invocation, and its outputs into the response.

    Args:
        model: What is asked.
        limit_bytes: Of a request.
        metadata: Of the conversation.
    """

    __slots__ = ("_limit_bytes", "_messages", "_metadata", "_model", "_prepared", "_size", "state")

    def __init__(self, model: Model, *, limit_bytes: int = LIMIT_BYTES, metadata: Headers = EMPTY) -> None:
        self.state = State.FRESH
        self._model = model
        self._limit_bytes = limit_bytes
        self._metadata = metadata
        self._prepared = CheckedRequest(())
        self._messages: dict[int, list[Message[bytes]]] = {}
        self._size = 0

    def receive(self, frame: Buffer | CheckedRequest | Row) -> Sequence[Step]:
        """Translate the request, a buffer or what `prepare` made of it; or feed one of its rows.

        Raises:
            ProtocolViolation: There was one already.
        """
        if isinstance(frame, Row):
            return self._row(frame.index) if self.state is State.RUNNING else ()
        if self.state is not State.FRESH:
            raise ProtocolViolation(f"a request came while {self.state.value}")
        if not isinstance(frame, CheckedRequest):
            frame = prepare(self._model, frame, limit_bytes=self._limit_bytes, metadata=self._metadata)
        self._prepared = frame
        self._messages = {index: [] for index in frame.wanted}
        self.state = State.CLOSED if isinstance(frame.steps[-1], Close) else State.RUNNING
        return frame.steps

    def half_close(self) -> Sequence[Step]:
        """Translate the end of what the peer sends.

        Raises:
            ProtocolViolation: No request came.
        """
        if self.state is State.FRESH:
            raise ProtocolViolation("the conversation ended without a request")
        return (EndInput(_ID),) if self.state is State.RUNNING and self._prepared.rows is not None else ()

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of the invocation; the response comes with its end."""
        if self.state is not State.RUNNING:
            return ()
        if type(event) is Emitted:
            return self._emitted(event)
        if type(event) is not Finished:
            return ()
        prepared, given = self._prepared, self._messages
        self.release()
        if event.error is not None:
            error = translated(event.error, self._model, prepared.met)
            if error.code is Code.BAD_OUTPUT and isinstance(event.error, EncodeError):
                error = GraphPipeError(error.code, error.detail + self._model.hint)
            return (Send(refusal(error)), Close(error))
        messages = tuple(tuple(given[index]) for index in prepared.wanted)
        return (Send(Answer(prepared.ports, messages, prepared.known, prepared.rows, prepared.parts)), Close())

    def release(self) -> None:
        """The conversation is over, however it ended: drop the tensors, which who converses may outlive for a while."""
        self.state = State.CLOSED
        self._prepared = CheckedRequest(())
        self._messages = {}

    def _row(self, index: int) -> Sequence[Step]:
        several = ((at, GivenInput(one.port, row(one.tensor, index))) for at, one in enumerate(self._prepared.given))
        try:
            return tuple(Feed(_ID, at, _message(one)) for at, one in several)
        except GraphPipeError as error:
            return (Cancel(_ID, error),)

    def _emitted(self, event: Emitted) -> Sequence[Step]:
        messages = self._messages.get(event.index)
        if messages is None:
            return ()
        port = self._model.outputs[event.index]
        rows = self._prepared.rows
        is_full = bool(messages) and not port.is_joined if rows is None else len(messages) >= rows
        if is_full:  # G-071, G-072, G-073
            detail = f"the function gave value {len(messages) + 1} for output '{port.name}', which is one too many"
            return (Cancel(_ID, GraphPipeError(Code.BAD_OUTPUT, detail)),)
        self._size += len(event.message.payload)
        if self._size > self._prepared.most_bytes:
            detail = f"the function gave more than {self._prepared.most_bytes} bytes"
            return (Cancel(_ID, GraphPipeError(Code.BAD_OUTPUT, detail)),)
        messages.append(event.message)
        return ()


def joint(model: Model, several: Sequence[CheckedRequest], *, limit_bytes: int = LIMIT_BYTES) -> CheckedRequest:
    """Requests that are alike as one (G-076).

    Raises:
        GraphPipeError: They are too large together (E13), or do not fit what is declared.
    """
    first = several[0]
    total = sum(given.tensor.size for one in several for given in one.given)
    if total > limit_bytes:  # refuse before the tensors are copied
        raise GraphPipeError(Code.TOO_LARGE, f"together the inputs have {total} bytes, the limit is {limit_bytes}")
    known: dict[str, int] = {}
    given = merged([one.given for one in several])
    for one in given:
        fitting(one.port, one.tensor, f"input '{one.port.name}'", known)
    return _planned(model, Resolved(given, first.wanted, first.config, known, first.parts), limit_bytes, EMPTY)


def _inference(model: Model, request: InferRequest, limit_bytes: int, metadata: Headers) -> CheckedRequest:
    known: dict[str, int] = {}
    given = given_inputs(model, request, known)
    wanted, parts = wanted_outputs(model, request), None
    if model.is_undeclared:  # its one output may turn out to be several
        wanted, parts = (0,), wanted if request.output_names else None
    return _planned(model, Resolved(given, wanted, request.config, known, parts), limit_bytes, metadata)


def _planned(model: Model, resolved: Resolved, limit_bytes: int, metadata: Headers) -> CheckedRequest:
    given, wanted = resolved.given, resolved.wanted
    rows = count_rows(given) if model.traits.rows else None
    if rows is None:
        admit(given, limit_bytes)
    messages = [_message(one) for one in given] if rows is None else []
    total = sum(len(one.payload) for one in messages)
    if total > limit_bytes:  # tensors that share their data count each time
        raise GraphPipeError(Code.TOO_LARGE, f"the inputs have {total} bytes, the limit is {limit_bytes}")
    names = tuple(one.port.own for one in given)
    is_open = model.spec.open_inputs
    opened = Open(
        _ID,
        model.spec.name,
        tuple(one.media_type for one in model.outputs),
        input_names=names if is_open else (),
        output_names=(model.outputs[0].own,) if len(model.spec.call.parts) == 1 else (),
        metadata=metadata,
        bound=None if is_open else names,
        unwanted=tuple(index for index in range(len(model.outputs)) if index not in wanted),
        configs=(RequestConfig(resolved.config),) if resolved.config else (),
    )
    feeds = (Feed(_ID, index, message) for index, message in enumerate(messages))
    steps: tuple[Step, ...] = (opened, *feeds, EndInput(_ID)) if rows is None else (opened,)
    kind = (
        alike(given, wanted if resolved.parts is None else resolved.parts, resolved.config)
        if model.traits.batch_max > 1
        else None
    )
    return CheckedRequest(
        steps,
        wanted,
        tuple(model.outputs[index] for index in wanted),
        resolved.known,
        max(_HELD_PER_LIMIT * limit_bytes, LIMIT_BYTES),
        given if rows is not None or kind is not None else (),
        rows,
        tell_given(given),
        resolved.config,
        kind,
        tuple((one.port, one.tensor.type, one.tensor.shape) for one in given),
        resolved.parts,
    )


def _message(given: GivenInput) -> Message[bytes]:
    port, tensor = given.port, given.tensor
    if port.media_type == TENSOR:
        return message_of(tensor)
    where = f"input '{port.name}'"
    return message_as(tensor, port.media_type, where, is_single=port.is_single, is_truth=port.is_truth)
