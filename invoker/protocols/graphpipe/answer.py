"""`Reply`: a response as bytes. `Answer`: the outputs of a function, from which the response is made.

An `Answer` only holds messages, so that a transport can make the response in a thread if the tensors are large (G-102).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from invoker.codecs.several import SEVERAL, several_in
from invoker.codecs.tensor import TENSOR, tensor_in
from invoker.errors import DecodeError
from invoker.message import Message
from invoker.protocols.graphpipe.binding import fitting
from invoker.protocols.graphpipe.layouts import AnswerPlans
from invoker.protocols.graphpipe.model import ModelPort
from invoker.protocols.graphpipe.plain import tensor_of
from invoker.protocols.graphpipe.rows import joined, no_rows, stacked
from invoker.tensors import (
    Code,
    GraphPipeError,
    Tensor,
    Written,
    write_error_response,
    write_infer_response,
)


class Reply(msgspec.Struct, frozen=True):
    """The bytes of one response.

    Attributes:
        pieces: The bytes of the response, in order; large pieces may be views.
        size: The size of all pieces, in bytes.
        error: Why the request failed; None if it succeeded.
    """

    pieces: Sequence[bytes | bytearray | memoryview]
    size: int
    error: GraphPipeError | None = None

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


class Answer(msgspec.Struct, frozen=True):
    """The outputs of a function.

    Attributes:
        ports: The wanted outputs, in the order of the request.
        messages: The message of each output.
        known: The values of named sizes, from the inputs.
        rows: How many rows each output must have; each row is a message (G-073). None: a message is a whole tensor.
        parts: Which parts of an undeclared output are wanted; None: all parts.
        plans: A cache of layouts of earlier answers to similar requests; None: layouts are not cached.
    """

    ports: tuple[ModelPort, ...]
    messages: tuple[tuple[Message[bytes], ...], ...]
    known: dict[str, int]
    rows: int | None = None
    parts: tuple[int, ...] | None = None
    plans: AnswerPlans | None = None

    @property
    def size(self) -> int:
        """The size of all outputs of the function, in bytes."""
        return sum(len(message.payload) for several in self.messages for message in several)

    def response(self) -> Reply:
        """Make the response with the tensors, or with an error if they do not match the declarations (G-064, G-066)."""
        plans = self.plans
        if plans is not None and (known := plans.response(self.messages)) is not None:
            return Reply((known,), len(known))
        try:
            written = write_infer_response([tensor for _, tensor in self.tensors()])
        except GraphPipeError as error:
            return refusal(error)
        if plans is not None:
            plans.learn(self.messages, written)
        return response_of(written)

    def tensors(self) -> list[tuple[ModelPort, Tensor]]:
        """Make the output tensors, in the order of the request.

        Raises:
            GraphPipeError: The tensors do not match the declarations of the outputs (E18).
        """
        known, made = dict(self.known), dict[str, Tensor]()
        outputs = list(zip(self.ports, self.messages, strict=True))
        if len(outputs) == 1 and outputs[0][0].is_undeclared:
            outputs = _apart(*outputs[0], self.parts)
        for port, messages in outputs:
            if port.own not in made:  # G-057: an output may be requested several times
                made[port.own] = _tensor(port, messages, known, self.rows)
        return [(port, made[port.own]) for port, _ in outputs]


def response_of(written: Written) -> Reply:
    """A reply whose buffer is already written."""
    return Reply(written.pieces, written.size)


def refusal(error: GraphPipeError) -> Reply:
    """An error response (G-082), with the error and the further errors in it (G-084)."""
    buffer = write_error_response((error, *error.further))
    return Reply((buffer,), len(buffer), error)


def _apart(
    port: ModelPort, messages: Sequence[Message[bytes]], wanted: tuple[int, ...] | None
) -> list[tuple[ModelPort, tuple[Message[bytes], ...]]]:
    """Split an undeclared output that consists of tuples into one output for each part.

    Raises:
        GraphPipeError: The values have different numbers of parts, or the output has a name and so cannot be split
            (E18); or a requested part does not exist (E5).
    """
    several = [several_in(one) if one.media_type == SEVERAL else [one] for one in messages]
    counts = {len(one) for one in several} or {1}
    count = counts.pop()
    if counts or not count or (port.own != "out" and count != 1):
        met = "tuples of different lengths" if counts else f"a tuple of {count}"
        detail = f"the function gave {met} for output '{port.name}'; name its outputs with @function(outputs=(...))"
        raise GraphPipeError(Code.BAD_OUTPUT, detail)
    if lost := [index for index in wanted or () if index >= count]:
        detail = f"there is no output 'output{lost[0]}'; the function gave {count}, output0 to output{count - 1}"
        raise GraphPipeError(Code.UNKNOWN_OUTPUT, detail)
    if count == 1 and wanted is None:
        return [(port, tuple(one for (one,) in several))]
    found = []
    for index in range(count) if wanted is None else wanted:
        name = f"output{index}"
        found.append((msgspec.structs.replace(port, name=name, own=name), tuple(one[index] for one in several)))
    return found


def _tensor(port: ModelPort, messages: Sequence[Message[bytes]], known: dict[str, int], rows: int | None) -> Tensor:
    where = f"output '{port.name}'"
    if rows is not None:
        if len(messages) != rows:
            raise GraphPipeError(Code.BAD_OUTPUT, f"{where} has {len(messages)} rows, and the inputs have {rows}")
        tensor = stacked([_read(message, where) for message in messages], where) if rows else no_rows(port)
        fitting(port, tensor, where, known, codes=(Code.BAD_OUTPUT, Code.BAD_OUTPUT))
        return tensor
    if not messages:
        raise GraphPipeError(Code.BAD_OUTPUT, f"the function gave nothing for {where}")
    tensors = [_read(message, where) for message in messages]
    if len(tensors) > 1 and not port.is_joined:
        detail = f"the function gave {len(tensors)} values for {where}, whose first size is not declared as any"
        raise GraphPipeError(Code.BAD_OUTPUT, detail)  # G-071, G-072
    tensor = joined(tensors, where) if len(tensors) > 1 else tensors[0]
    fitting(port, tensor, where, known, codes=(Code.BAD_OUTPUT, Code.BAD_OUTPUT))
    return tensor


def _read(message: Message[bytes], where: str) -> Tensor:
    try:
        if message.media_type.partition(";")[0] == TENSOR:
            return tensor_in(message)
        return tensor_of(message, where)
    except GraphPipeError as error:
        if error.code in (Code.BAD_OUTPUT, Code.TOO_LARGE):
            raise
        raise GraphPipeError(Code.BAD_OUTPUT, f"{where}: {error.detail}") from error
    except (msgspec.MsgspecError, DecodeError, ValueError) as error:
        raise GraphPipeError(Code.BAD_OUTPUT, f"{where}: {error}") from error
