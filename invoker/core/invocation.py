"""`Invocation`: one run of a function by a `Plan`, as pure state.

Theory. An invocation is *open* until its first ending and *finished* ever after:

1. every output has ended: ``Finished(None)``;
2. anything fails (the body, an input's decoding, a limit, the peer): ``Finished(error)``.

The first ending wins; later ones are only counted (RM-6). Inputs may end or fail long before that: a function may
continue to produce after its inputs ended. Feeding a finished invocation is legal and does nothing (R-076, R-114),
because frames may be in transit while the function returns.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from invoker.author.spec import Style
from invoker.context import Context
from invoker.core.closed import ClosedOutput, EndedOutput, MutedOutput, UnwantedOutput
from invoker.core.coding import Encoders
from invoker.core.limits import TimeLimit
from invoker.core.peers import Client
from invoker.core.plan import Plan
from invoker.core.policy import ErrorPolicy
from invoker.core.steps import ALL, EndInput, Feed, Open
from invoker.core.streams import Budget, InputStream, OutputStream, SingleInput
from invoker.errors import (
    Discarded,
    EncodeError,
    InvocationError,
    LimitExceeded,
    ProtocolViolation,
    StopInvocation,
)
from invoker.errors.wording import too_late
from invoker.message import Message, Output, find_output


class Awaits(enum.Enum):
    """The reasons for which an invocation waits before its body is opened."""

    NOTHING = "nothing"
    VALUE = "an option, or the value of an input that is one value"
    OPTIONS = "options that a caller without names may send"
    END = "the end of inputs that have their one value"


_PATIENCE_S: Final = {Awaits.OPTIONS: 1.0, Awaits.END: 0.01}
"""How many seconds to wait for an input that may never come."""


class Invocation:
    """N input streams, M output streams, one ending.

    Attributes:
        id: Unique in the process; stands in every log line about this invocation.
        key: The session's key for it, which is in every command and event.
        limit: The time limit of the invocation; None: it has none.
        has_place: Whether it takes one of its function's places; its driver frees the place by `Engine.left`.
        function: The function that runs.
        context: The `Context` that the function receives.
        awaits: The reason for which the opening of the body waits.
        error: The error with which it finished; None while open and after a normal end.
        is_finished: Whether the ending has come.
        is_settled: Whether the time that `patience_s` gives it is over.
        drops_unlisted: Whether values for outputs that the caller did not name are dropped; else they are an error.
        order: The step that opened it; kept if another process runs the invocation.
        policy: Decides which status and text the peer gets for the error that it ends with.
        protocol: The protocol that its peer speaks; ``peer`` is the peer's address, or a `Client` if it came over HTTP.
        generators: How many iterators the body gave; 0 until it has given them.
        blocked: How many of its outputs wait until the peer takes more, where a loop or the HTTP transport writes.
        bytes_in: Payload bytes that were fed until it finished.
        cpu_ns: Processor time of its user code, 0 where it is unknown.
        memory_bytes: The most memory that its process took; 0 where other invocations run in that process.
        frames_in: Messages that were fed until it finished.
        frames_out: Messages that were emitted until it finished.
        run: How its function runs, see `invoker.execution.placement`; empty until it is about to begin.
        took_s: Seconds until it finished.
    """

    __slots__ = (
        *("awaits", "blocked", "budget", "bytes_in", "context", "cpu_ns", "drops_unlisted", "error", "frames_in"),
        *("frames_out", "function", "generators", "has_place", "id", "inputs", "is_finished", "is_settled"),
        *("key", "limit", "memory_bytes", "order", "outputs", "peer", "policy", "protocol", "run"),
        *("started_s", "took_s"),
    )

    def __init__(self, plan: Plan, key: str, context: Context, budget: Budget, policy: ErrorPolicy) -> None:
        self.id = context.invocation_id
        self.key = key
        self.function = plan.function
        self.context = context
        inputs: list[InputStream] = []
        for decoders in plan.inputs:  # loops cost less than comprehensions here
            inputs.append((SingleInput if decoders.spec.single else InputStream)(decoders, budget))  # noqa: PERF401
        self.inputs: Sequence[InputStream] = inputs
        self.outputs: list[OutputStream | UnwantedOutput] = []
        for one in plan.outputs:
            if isinstance(one, Encoders):
                self.outputs.append(OutputStream(one))
            else:
                self.outputs.append(UnwantedOutput(one.index, one.name))
        self.budget = budget
        self.limit: TimeLimit | None = None
        self.protocol = self.run = ""
        self.peer: str | Client = ""
        self.order: Open | None = None
        self.has_place = False
        self.drops_unlisted = plan.drops_unlisted
        self.policy = policy
        self.error: InvocationError | None = None
        self.is_finished = False
        self.awaits = Awaits.NOTHING
        self.is_settled = False
        self.generators = 0
        self.cpu_ns = self.memory_bytes = self.blocked = self.bytes_in = self.frames_in = self.frames_out = 0
        self.took_s = 0.0
        self.started_s = time.monotonic()

    @property
    def bytes_out(self) -> int:
        """Payload bytes that all outputs have emitted so far."""
        outputs = self.outputs
        return outputs[0].emitted_bytes if len(outputs) == 1 else sum([one.emitted_bytes for one in outputs])

    @property
    def is_starving(self) -> bool:
        """Whether a reader, or the beginning of the body, waits on an empty input that is still open."""
        return self.awaits is not Awaits.NOTHING or any(
            stream.waiters and not stream.queue and not stream.is_ended for stream in self.inputs
        )

    @property
    def wants_input(self) -> bool:
        """Whether its driver should continue to read (R-128, R-129).

        It should if less is unread than the mark, if a reader starves, or if the invocation is finished.
        """
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
            self.check_index(index)
        stream = self.inputs[index]
        if stream.is_ended and not (stream.fed and stream.spec.single):
            raise ProtocolViolation(self._too_late(stream), place=stream.place)
        try:
            stream.feed(command.message)
        except LimitExceeded as error:
            error.add_hint(self._most_unread(stream))
            raise

    def check_index(self, index: int) -> None:
        """Raise ProtocolViolation if there is no such input (R-064)."""
        if not 0 <= index < len(self.inputs):
            raise ProtocolViolation(f"argIndex {index} out of range for {len(self.inputs)} input(s)")

    def may_begin(self) -> bool:
        """Whether the body may be opened now; called after each step until it returns True, and not again.

        An input of one value, and an option that the caller announced by its name, must have their value. If the caller
        sent no names, options may come until the first frame of another input; options that are missing then are closed
        (R-166). A streaming function waits for options for a second at most. A body that is called with single values
        waits a moment for the end of their inputs, so that a second value can be refused (R-168).
        """
        if not self.function.awaits_values:
            return True
        if all(one.is_ended for one in self.inputs):
            self.awaits = Awaits.NOTHING
            return True
        self.awaits = self._lacks()
        return self.awaits is Awaits.NOTHING

    @property
    def patience_s(self) -> float | None:
        """How many seconds to wait for missing inputs before `is_settled` is set; None waits until they come."""
        return _PATIENCE_S.get(self.awaits)

    def _lacks(self) -> Awaits:
        options = [one for one in self.inputs if one.spec.is_option]
        required = [one for one in self.inputs if not one.spec.is_option]
        waited = [one for one in self.inputs if one.spec.single or one.spec.is_option]
        if options and not self.context.input_names:
            if not self.is_settled and not any(one.fed for one in required or options[:1]):
                if all(one.fed or one.is_ended for one in self.inputs):
                    return Awaits.NOTHING
                # A streaming function may give values before it reads any, and its caller may wait for these values.
                greets = self.function.spec.style is Style.STREAMING and not any(one.spec.single for one in required)
                return Awaits.OPTIONS if greets and required else Awaits.VALUE
            for one in options:
                if not one.fed:
                    one.end()
        if not all(one.fed or one.is_ended for one in waited):
            return Awaits.VALUE
        has_streams = any(not one.spec.single for one in self.inputs)
        is_sure = self.is_settled or has_streams or all(one.is_ended for one in self.inputs)
        return Awaits.NOTHING if is_sure else Awaits.END

    @property
    def heeds_end(self) -> bool:
        """Whether the author's code may run because the inputs ended normally (R-109); after a failure it may not."""
        return self.function.spec.style is Style.STREAMING or self.awaits is not Awaits.NOTHING

    @property
    def got_nothing(self) -> bool:
        """Whether the body needs a value and every input ended without one, so that the body is not called."""
        if not self.function.awaits_values or (self.inputs and self.inputs[0].fed):
            return False
        needs_one = any(one.spec.single and not one.spec.is_option for one in self.inputs)
        return needs_one and all(one.is_ended and one.error is None and not one.fed for one in self.inputs)

    def _most_unread(self, fed: InputStream) -> str:
        """Name the input with the most unread frames, for the text of an error."""
        most = max(self.inputs, key=lambda one: len(one.queue))
        if not most.queue:
            return f"; this one frame is of {fed.place}"
        return (
            f"; {len(most.queue)} of them are of {most.place}, which "
            f"'{self.function.spec.name}' reads more slowly than they come, or not at all"
        )

    def _too_late(self, stream: InputStream) -> str:
        if not stream.spec.is_option:
            return " has ended and cannot take another message"
        said = too_late(self.function.spec.name)
        return f" {said}; send it before the first frame of another input, or name it in inputNames"

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

    def encode(self, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Serialise a value that the body produced on output ``index``; an `Output` goes to the output that it names.

        Returns:
            The output's number and the message, ready for `emit` and `Emitted`.

        Raises:
            EncodeError: Unknown output, one that has ended, or a value that no accepted codec takes.
            Discarded: The output has no reader; the body continues.
            StopInvocation: Nobody reads what this generator gives any more.
        """
        if type(value) is Output:
            return self._encode_addressed(index, value)
        if index >= len(self.outputs):
            if self.drops_unlisted:
                raise Discarded
            # Clients index a list with this number, so an invalid one is never sent.
            raise EncodeError(f"the function produced for output #{index}, but has {len(self.outputs)} output(s)")
        return index, self.outputs[index].encode(value)

    def _encode_addressed(self, index: int, value: Output) -> tuple[int, Message[bytes]]:
        try:
            target = self.find_output(value.target)
        except EncodeError:
            if self.drops_unlisted and isinstance(value.target, str):
                raise Discarded from None  # E-086: the function may name outputs that this caller did not list
            raise
        try:
            return target, self.outputs[target].encode(value.value)
        except StopInvocation:
            if target == index or not self._is_read:
                raise
            raise Discarded from None  # this value is for a closed output; others are still read

    def encode_sent(self, index: int, value: Any) -> Message[bytes] | None:
        """Serialise a value that the body sends by its context; None when the output has no reader.

        Raises:
            EncodeError: As `encode`.
            StopInvocation: Nobody reads anything any more.
        """
        try:
            return self.outputs[index].encode(value)
        except StopInvocation as stop:
            if isinstance(stop, Discarded) or self._is_read:
                return None
            raise

    @property
    def _is_read(self) -> bool:
        return any(one.is_wanted and not one.is_ended for one in self.outputs)

    def emit(self, index: int, message: Message[bytes]) -> None:
        """Count one message that leaves on output ``index``."""
        output = self.outputs[index]
        output.emitted += 1
        output.emitted_bytes += len(message.payload)

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only. Unread messages are released."""
        if self.is_finished:
            return False
        self.is_finished = True
        self.error = error
        self.took_s = time.monotonic() - self.started_s
        if error is not None:
            self.policy.apply(error, self.protocol)
        for stream in self.inputs:
            self.frames_in += stream.fed
            self.bytes_in += stream.fed_bytes
            if error is not None:
                stream.fail(error)
            else:
                stream.is_ended = True
                if stream.queue:
                    stream.drop()
        self.budget.close()
        for output in self.outputs:
            self.frames_out += output.emitted
            output.is_ended = True
        return True

    def may_be_ended(self, end: Callable[[InvocationError], None]) -> None:
        """Set how any thread ends this invocation: `stop`, or the budget when memory runs out."""
        budget = self.budget
        budget.end = end
        if budget.share is not None:
            budget.share.end = end

    def stop(self, error: InvocationError) -> None:
        """End the invocation, from any thread. Its session is notified if it has a `limit`, or if a loop runs it.

        Otherwise its conversation is cut off with the error.
        """
        end = self.budget.end
        if end is not None:
            end(error)

    def end_output(self, index: int) -> bool:
        """Note that generator ``index`` ended normally; True if the reader of its own output has to be notified."""
        if self.generators < 2 or index >= len(self.outputs):
            return False
        output = self.outputs[index]
        is_news = output.is_wanted and not output.is_ended
        output.is_ended = True
        return is_news

    def end_sent(self, index: int) -> bool:
        """Note that the body ended output ``index`` by its context; True if its reader has to be notified (E-126)."""
        output = self.outputs[index]
        if output.is_ended or not output.is_wanted:
            return False
        self.outputs[index] = EndedOutput.after(output, is_ended=True)
        return len(self.outputs) > 1

    def close_output(self, index: int) -> None:
        """Close output ``index``, which has no reader any more; its generator is closed when it gives another value.

        Where one generator gives the values of several outputs, only those for this one are dropped until no output is
        read any more.
        """
        if self.is_finished or not 0 <= index < len(self.outputs):
            return
        output = self.outputs[index]
        has_own = self.generators == len(self.outputs)
        self.outputs[index] = MutedOutput.after(output)
        for one in (self.outputs[index],) if has_own else () if self._is_read else tuple(self.outputs):
            self._close(one)

    def opened(self, generators: int) -> None:
        """Note how many iterators the body gave, and close those of outputs that were closed before."""
        self.generators = generators
        if generators > 1 and generators == len(self.outputs):
            for one in [muted for muted in self.outputs if isinstance(muted, MutedOutput)]:
                self._close(one)

    def _close(self, one: OutputStream | UnwantedOutput) -> None:
        self.outputs[one.index] = ClosedOutput.after(one)

    def find_output(self, target: int | str) -> int:
        """The index of an output by index or name; of equal names the first (R-057).

        Raises:
            EncodeError: No such output.
        """
        return find_output(target, self.outputs, self.context.output_names)
