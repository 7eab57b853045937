"""`Invocation`: one run of a function, as pure state.

Theory. An invocation is *open* until its first ending and *finished* ever after:

1. every output has ended: ``Finished(None)``;
2. anything fails (the body, an input's decoding, a limit, the peer): ``Finished(error)``.

The first ending wins; later ones are only counted (RM-6). Inputs may end or fail long before that: a function may go on
producing after its inputs ended. Feeding a finished invocation is legal and does nothing (R-076, R-114), because frames
may be under way while the function returns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from invoker.context import Context
from invoker.core.steps import ALL, EndInput, FailInputs, Feed
from invoker.core.streams import Budget, InputStream, OutputStream
from invoker.errors import EncodeError, InvocationError, ProtocolViolation
from invoker.lift import Function
from invoker.message import Message, Output

__all__ = ["Invocation"]


class Invocation:
    """N input streams, M output streams, one ending.

    Attributes:
        id: Unique in the process; stands in every log line about this invocation.
        key: What its session calls it; stands in every command and event.
        function: What runs.
        context: What the function sees of its invocation.
        error: Why it finished; None while open and after a normal end.
        is_finished: Whether the ending has come.
        bytes_in: Payload bytes fed so far.
        bytes_out: Payload bytes emitted so far.
    """

    __slots__ = (
        "budget",
        "bytes_in",
        "bytes_out",
        "context",
        "error",
        "function",
        "id",
        "inputs",
        "is_finished",
        "key",
        "outputs",
        "started_s",
    )

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is
        key: str,
        function: Function,
        context: Context,
        *,
        inputs: Sequence[InputStream],
        outputs: Sequence[OutputStream],
        budget: Budget,
    ) -> None:
        self.id = id
        self.key = key
        self.function = function
        self.context = context
        self.inputs = inputs
        self.outputs = outputs
        self.budget = budget
        self.error: InvocationError | None = None
        self.is_finished = False
        self.bytes_in = 0
        self.bytes_out = 0
        self.started_s = time.monotonic()
        context._is_cancelled = self._is_over  # noqa: SLF001 - the context is this invocation's window

    def _is_over(self) -> bool:
        return self.is_finished

    @property
    def is_starving(self) -> bool:
        """Whether a reader waits on an empty input that is still open."""
        return any(stream.waiters and not stream.queue and not stream.is_ended for stream in self.inputs)

    @property
    def wants_input(self) -> bool:
        """Whether its driver should go on reading: below the mark, starving, or finished (R-128, R-129)."""
        return self.is_finished or not self.budget.is_high or self.is_starving

    def feed(self, command: Feed) -> None:
        """Give one message to an input.

        Raises:
            ProtocolViolation: No such input (R-064).
            UnsupportedMediaType: No codec decodes its media type (R-065).
            LimitExceeded: The hard cap is reached (R-130).
        """
        if self.is_finished:
            return
        index = command.index
        if not 0 <= index < len(self.inputs):
            raise ProtocolViolation(f"argIndex {index} out of range for {len(self.inputs)} input(s)")
        stream = self.inputs[index]
        if stream.is_ended:
            if stream.error is None:
                raise ProtocolViolation(f"input #{index} has ended and cannot take another message")
            return
        self.bytes_in += len(command.message.payload)
        stream.feed(command.message)

    def end_inputs(self, command: EndInput) -> None:
        """End one input or all of them; idempotent (R-109, RM-3).

        Raises:
            ProtocolViolation: No such input.
        """
        if command.index == ALL:
            for stream in self.inputs:
                stream.end()
        elif 0 <= command.index < len(self.inputs):
            self.inputs[command.index].end()
        else:
            raise ProtocolViolation(f"input {command.index} out of range for {len(self.inputs)} input(s)")

    def fail_inputs(self, command: FailInputs) -> None:
        """Every open input ends with an error that its reader sees (R-110)."""
        for stream in self.inputs:
            stream.fail(command.error)

    def encode(self, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Serialise a value that the body produced on output ``index``; an `Output` goes where it is addressed.

        Returns:
            The output's number and the message, ready for `emit` and `Emitted`.

        Raises:
            EncodeError: Unknown output, or a value that no accepted codec takes.
        """
        if type(value) is Output:
            index = self._target(value.target)
            value = value.value
        if index >= len(self.outputs):
            # callers index a list with it, so it must never leave the house.
            raise EncodeError(f"the function produced for output #{index}, but has {len(self.outputs)} output(s)")
        return index, self.outputs[index].encode(value)

    def emit(self, index: int, message: Message[bytes]) -> None:
        """Count one message that leaves on output ``index``."""
        self.outputs[index].emitted += 1
        self.bytes_out += len(message.payload)

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only. What is still unread is released."""
        if self.is_finished:
            return False
        self.is_finished = True
        self.error = error
        for stream in self.inputs:
            if error is not None:
                stream.fail(error)
            else:
                stream.end()
                stream.drop()
        for output in self.outputs:
            output.is_ended = True
        return True

    def end_output(self, index: int) -> bool:
        """Output ``index`` ended normally; True when it was the last one (R-111)."""
        if index < len(self.outputs):
            self.outputs[index].is_ended = True
        return all(output.is_ended for output in self.outputs)

    def _target(self, target: int | str) -> int:
        if not isinstance(target, str):
            if 0 <= target < len(self.outputs):
                return int(target)
        else:
            for names in (self.context.output_names, [output.name for output in self.outputs]):
                if target in names:
                    return list(names).index(target)  # the first of equal names
        known = ", ".join(f"{output.index} {output.name!r}" for output in self.outputs) or "none"
        raise EncodeError(f"the function produced for output {target!r}; outputs are: {known}")
