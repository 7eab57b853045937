"""`CheckedRequest`: a request that was parsed and checked, with the messages for its function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from invoker.codecs.tensor import TENSOR, message_of
from invoker.core.steps import CallStep
from invoker.message import Message
from invoker.protocols.graphpipe.batch import count_of_batch
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.errors import Met
from invoker.protocols.graphpipe.layouts import AnswerPlans
from invoker.protocols.graphpipe.model import ModelPort
from invoker.protocols.graphpipe.plain import message_as
from invoker.tensors import LIMIT_BYTES, too_large
from invoker.tensors.flat import Weigh

ID: Final = "infer"
"""The id of the only invocation of a conversation."""

_SMALL_BYTES: Final = 4096
HELD_PER_LIMIT: Final = 4
"""The outputs of a function may be this many times larger than its inputs may be."""


class CheckedRequest(msgspec.Struct, frozen=True):
    """A request that was parsed and checked.

    Attributes:
        steps: The first steps of the session, which may already contain the response.
        wanted: The indexes of the requested outputs, in order; an index may repeat.
        ports: The requested outputs.
        known: The values of named sizes, from the inputs.
        most_bytes: The largest total size of the outputs, in bytes.
        given: The inputs, if they are still needed for rows or for batches.
        rows: How many rows the inputs have; None: they are fed as a whole.
        about: Names, types and shapes of the tensors for the log, never values (G-105, G-106).
        config: The config of the request.
        kind: A key that is equal for compatible requests; None: the request cannot be joined.
        met: The types and shapes of the inputs, for error texts.
        parts: The requested parts of an undeclared output; None: all parts.
        answers: A cache of layouts of earlier answers to similar requests; None: the request has no plan.
    """

    steps: tuple[CallStep, ...]
    wanted: tuple[int, ...] = ()
    ports: tuple[ModelPort, ...] = ()
    known: dict[str, int] = {}
    most_bytes: int = HELD_PER_LIMIT * LIMIT_BYTES
    given: tuple[GivenInput, ...] = ()
    rows: int | None = None
    about: str = "nothing"
    config: bytes = b""
    kind: Hashable | None = None
    met: tuple[Met, ...] = ()
    parts: tuple[int, ...] | None = None
    answers: AnswerPlans | None = None

    @property
    def keeps_given(self) -> bool:
        """Whether the inputs are kept after the check, since they may be cut into rows or joined into a batch."""
        return self.rows is not None or self.kind is not None

    @property
    def count(self) -> int:
        """The number of rows of a request that can be joined."""
        return count_of_batch(self.given)


def messages_for(given: Sequence[GivenInput], limit_bytes: int, weigh: Weigh | None = None) -> list[Message[bytes]]:
    """Make the messages for the inputs of the function, one for each tensor.

    Args:
        given: The tensors with their inputs.
        limit_bytes: The limit of all messages together, in bytes.
        weigh: Called before each large copy with the bytes of all large copies so far; it may raise. A tensor for a
            function that takes tensors is not copied.

    Raises:
        GraphPipeError: A tensor cannot be converted to the type of its input (E8), or the tensors are too large in
            total (E13); tensors that share their data are counted each time.
    """
    messages, copied = [], 0
    for one in given:
        if weigh is not None and one.port.media_type != TENSOR and (size := one.tensor.size) > _SMALL_BYTES:
            copied += size
            weigh(copied)
        messages.append(message_for(one))
    total = sum(len(one.payload) for one in messages)
    if total > limit_bytes:
        raise too_large("the inputs have", total, limit_bytes)
    return messages


def message_for(given: GivenInput) -> Message[bytes]:
    """Make the message for an input (G-074).

    Raises:
        GraphPipeError: The tensor cannot be converted to the input's type (E8).
    """
    port, tensor = given.port, given.tensor
    if port.media_type == TENSOR:
        return message_of(tensor)
    where = f"input '{port.name}'"
    return message_as(tensor, port.media_type, where, is_single=port.is_single, is_truth=port.is_truth)
