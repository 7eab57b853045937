"""`CheckedRequest`: a request that was read and found valid, and the messages for its function."""

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
"""The key of the only invocation of a conversation."""

_SMALL_BYTES: Final = 4096
HELD_PER_LIMIT: Final = 4
"""A function may give this many times the bytes that it may be given."""


class CheckedRequest(msgspec.Struct, frozen=True):
    """A request that was read and checked.

    Attributes:
        steps: The first steps of the session; they may already answer the request.
        wanted: Indexes of the outputs to send, in order; an index may repeat.
        ports: The same outputs.
        known: Sizes by their declared names, as found in the inputs.
        most_bytes: How many bytes the function may give.
        given: The inputs, if they are still needed: for rows and for batches.
        rows: How many rows the inputs have; None: they are fed as a whole.
        about: Names, types and shapes of its tensors, never values, for the log (G-105, G-106).
        config: The config of the request.
        kind: A key that is equal for requests that may be joined; None: this request cannot be joined.
        met: Types and shapes of its inputs, for errors.
        parts: Which parts of an undeclared output are wanted; None: all parts.
        answers: The layouts of earlier answers to such requests; None: the request is not remembered.
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
        """Whether its inputs are still needed, for rows or for a batch."""
        return self.rows is not None or self.kind is not None

    @property
    def count(self) -> int:
        """Rows of a request that may be joined."""
        return count_of_batch(self.given)


def messages_for(given: Sequence[GivenInput], limit_bytes: int, weigh: Weigh | None = None) -> list[Message[bytes]]:
    """The messages that the function is fed for its inputs, each in one piece.

    Args:
        given: The tensors and their inputs.
        limit_bytes: The most bytes of all messages together.
        weigh: Called with the bytes of all large copies so far, before each is made; it may raise. A tensor for a
            function that takes tensors is not copied.

    Raises:
        GraphPipeError: A tensor cannot be converted to its input's type (E8); or the tensors are too large together
            (E13), where tensors that share their data count each time.
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
    """The message that the function is fed for an input (G-074).

    Raises:
        GraphPipeError: The tensor cannot be converted to the input's type (E8).
    """
    port, tensor = given.port, given.tensor
    if port.media_type == TENSOR:
        return message_of(tensor)
    where = f"input '{port.name}'"
    return message_as(tensor, port.media_type, where, is_single=port.is_single, is_truth=port.is_truth)
