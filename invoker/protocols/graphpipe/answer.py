"""What a request is answered with: `Response`, and `Answer`, which makes one of what the function gave.

The two are apart because making one takes time for large tensors, so a door may do it elsewhere than on the loop
(G-102); an `Answer` holds nothing but messages until then.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from invoker.codecs.tensor import TENSOR, tensor_in
from invoker.errors import DecodeError
from invoker.message import Message
from invoker.protocols.graphpipe.binding import fitting
from invoker.protocols.graphpipe.model import Port
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

__all__ = ["Answer", "Response", "refusal"]


class Response(msgspec.Struct, frozen=True):
    """One buffer for the peer.

    Attributes:
        pieces: Its bytes, in order; large ones may be views.
        size: Of all pieces, in bytes.
        error: Why the request failed; None if it did not.
    """

    pieces: Sequence[bytes | bytearray | memoryview]
    size: int
    error: GraphPipeError | None = None

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


class Answer(msgspec.Struct, frozen=True):
    """What a function gave.

    Attributes:
        ports: The wanted outputs, in the order of the request.
        messages: Of each of them.
        known: Sizes by their declared names, as the inputs have them.
        rows: How many each output has to have, one a message (G-073); None: a message is a whole tensor.
    """

    ports: tuple[Port, ...]
    messages: tuple[tuple[Message[bytes], ...], ...]
    known: dict[str, int]
    rows: int | None = None

    @property
    def size(self) -> int:
        """Of what was given, in bytes."""
        return sum(len(message.payload) for several in self.messages for message in several)

    def response(self) -> Response:
        """The tensors, or the error that they are not those which were promised (G-064, G-066)."""
        try:
            return response_of(write_infer_response(self.tensors()))
        except GraphPipeError as error:
            return refusal(error)

    def tensors(self) -> list[Tensor]:
        """The outputs in the order of the request.

        Raises:
            GraphPipeError: They are not those which were promised (E18).
        """
        known, made = dict(self.known), dict[str, Tensor]()
        for port, messages in zip(self.ports, self.messages, strict=True):
            if port.own not in made:  # G-057: a name may repeat
                made[port.own] = _tensor(port, messages, known, self.rows)
        return [made[port.own] for port in self.ports]


def response_of(written: Written) -> Response:
    """A buffer that was written, as it is."""
    return Response(written.pieces, written.size)


def refusal(error: GraphPipeError) -> Response:
    """The buffer that tells an error (G-082), and what else is wrong behind it (G-084)."""
    buffer = write_error_response((error, *error.further))
    return Response((buffer,), len(buffer), error)


def _tensor(port: Port, messages: Sequence[Message[bytes]], known: dict[str, int], rows: int | None) -> Tensor:
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
