"""`UnaryInvocation`: an invocation that begins with one message for each input, and gives one value.

Most calls are of this kind: a request with a body, a response with a body. Nothing is fed to it and nothing is queued,
so its streams are made only when the page of running invocations shows it (`invoker.telemetry.live`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from invoker.context import Context
from invoker.core.budget import STEP_BYTES, Budget, Limits
from invoker.core.closed import UnwantedOutput
from invoker.core.coding import Decode, Decoders, Encoders
from invoker.core.invocation import Awaits, Invocation
from invoker.core.plan import Plan
from invoker.core.policy import ErrorPolicy
from invoker.core.steps import ALL, EndInput, Feed, Open, Step
from invoker.core.streams import InputStream, OutputStream
from invoker.errors import InvocationError, UnsupportedMediaType
from invoker.message import Message, Output


class UnaryCall(msgspec.Struct, frozen=True):
    """A call whose request has come completely.

    Attributes:
        open: The step that opens the invocation.
        messages: One message of each input, in the order of the inputs; the list is emptied when the messages are
            decoded.
    """

    open: Open
    messages: list[Message[bytes]]


class Held:
    """The first steps of a session, held back because they may turn out to be a unary call.

    Args:
        plan: The plan of the invocation.
        opening: The step that opens it.
        limits: If the messages exceed them, the call is not unary, so that its invocation refuses it.
        is_counted: Whether unread input counts against the memory of the process; if so, a call with more than
            `STEP_BYTES` is not unary, so that its invocation counts them.

    Attributes:
        plan: The plan of the invocation.
        opening: The step that opens it.
        messages: The messages for the inputs of the invocation.
        has_ended: Whether the session has ended all inputs.
    """

    __slots__ = ("_left", "_most", "has_ended", "messages", "opening", "plan")

    def __init__(self, plan: Plan, opening: Open, limits: Limits, *, is_counted: bool = True) -> None:
        self.plan = plan
        self.opening = opening
        self.messages: list[Message[bytes]] = []
        self.has_ended = False
        self._left = min(STEP_BYTES, limits.hard_bytes) if is_counted else limits.hard_bytes
        self._most = min(len(plan.inputs), limits.hard_frames)

    def takes(self, step: Step) -> bool:
        """Hold one more step; False if the call is not unary."""
        if type(step) is Feed and step.index == len(self.messages) < self._most and not self.has_ended:
            decoders, media_type = self.plan.inputs[step.index], step.message.media_type
            if media_type not in decoders.known and not _is_decoded(decoders, media_type):
                return False  # the invocation refuses the message, and does not count it
            self.messages.append(step.message)
            self._left -= len(step.message.payload)
            return self._left >= 0
        if type(step) is EndInput and step.index == ALL:
            self.has_ended = True
            return True
        return False

    @property
    def steps(self) -> list[Step]:
        """The steps that were held back, for a call that is not unary."""
        key = self.opening.id
        feeds = [Feed(key, index, message) for index, message in enumerate(self.messages)]
        return [self.opening, *feeds, EndInput(key)] if self.has_ended else [self.opening, *feeds]


def _is_decoded(decoders: Decoders, media_type: str) -> bool:
    try:
        decoders.find(media_type)
    except UnsupportedMediaType:
        return False
    return True


class UnaryInvocation(Invocation):
    """One run of a function that takes a message of each input, and gives one value.

    Args:
        plan: The plan of the call, which is of this kind (`Plan.is_unary`).
        key: The session's key for the invocation.
        context: The context of the invocation.
        limits: The limits of the process; shown at `/invocations`, but not applied, since nothing is unread.
        policy: Decides how errors are shown.
        messages: One message for each input.

    Attributes:
        plan: The plan of the call.
        end: Ends it from any thread; None: it has ended, or has not begun.
    """

    __slots__ = ("_limits", "_outputs", "_sizes", "bytes_out", "end", "plan")

    bytes_out: int  # an attribute, since there are no outputs whose bytes could be added up
    end: Callable[[InvocationError], None] | None

    def __init__(
        self,
        plan: Plan,
        key: str,
        context: Context,
        limits: Limits,
        policy: ErrorPolicy,
        messages: Sequence[Message[bytes]],
    ) -> None:
        self.id = context.invocation_id
        self.key = key
        self.function = plan.function
        self.context = context
        self.limit = self.order = self.error = None
        self.end = None
        self.protocol = self.peer = self.run = ""
        self.has_place = self.is_finished = False
        self.is_settled = True
        self.drops_unlisted = plan.drops_unlisted
        self.policy = policy
        self.awaits = Awaits.NOTHING
        self.generators = 1
        self.cpu_ns = self.memory_bytes = self.blocked = 0
        self.frames_out = self.bytes_out = size = 0
        self.frames_in = len(messages)
        self.plan = plan
        self._outputs: list[OutputStream | UnwantedOutput] | None = None
        self._limits = limits
        self._sizes: list[int] = []
        for one in messages:
            self._sizes.append(len(one.payload))
            size += len(one.payload)
        self.bytes_in = size
        self.took_s = 0.0
        self.started_s = time.monotonic()

    def decoders(self, messages: list[Message[bytes]]) -> list[Decode]:
        """The decoders of the messages; a decoder takes a while to be made, but only for its first message.

        Raises:
            UnsupportedMediaType: No codec decodes the media type of a message.
        """
        found = []
        for decoders, message in zip(self.plan.inputs, messages, strict=True):
            found.append(decoders.known.get(message.media_type) or decoders.find(message.media_type))
        return found

    def end_inputs(self, command: EndInput) -> None:
        """Do nothing: all inputs have ended."""

    def encode(self, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Serialise the value that the function gave; see `Invocation.encode`."""
        if self._outputs is not None or type(value) is Output:
            return super().encode(index, value)
        return index, self.plan.outputs[index].encode(value)  # type: ignore[union-attr]  # it is read, see `Plan`

    def emit(self, index: int, message: Message[bytes]) -> None:  # noqa: ARG002 - there is one output
        """Count one message that leaves."""
        self.frames_out += 1
        self.bytes_out += len(message.payload)

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only."""
        if self.is_finished:
            return False
        self.is_finished = True
        self.error = error
        self.took_s = time.monotonic() - self.started_s
        self.end = None
        if error is not None:
            self.policy.apply(error, self.protocol)
        for one in self._outputs or ():
            one.is_ended = True
        return True

    def stop(self, error: InvocationError) -> None:
        """End the invocation, from any thread."""
        end = self.end
        if end is not None:
            end(error)

    def may_be_ended(self, end: Callable[[InvocationError], None]) -> None:
        """Set the function by which any thread can end this invocation."""
        self.end = end

    # For `invoker.telemetry.live`, and for functions that ask their context.

    @property
    def budget(self) -> Budget:  # type: ignore[override]
        """A new budget with a count of zero, since no input is unread."""
        return Budget(self._limits)

    @property
    def inputs(self) -> Sequence[InputStream]:  # type: ignore[override]
        """The inputs, which were fed and have ended."""
        made = [InputStream(one, self.budget) for one in self.plan.inputs]
        for one, size in zip(made, self._sizes, strict=True):
            one.fed, one.fed_bytes, one.is_ended = 1, size, True
        return made

    @property
    def outputs(self) -> list[OutputStream | UnwantedOutput]:  # type: ignore[override]
        """The only output. After the first use of this property the output may end before the invocation."""
        if self._outputs is None:
            self._outputs = [OutputStream(one) for one in self.plan.outputs if isinstance(one, Encoders)]
            for one in self._outputs:
                one.is_ended = self.is_finished
        for one in self._outputs:
            one.emitted, one.emitted_bytes = self.frames_out, self.bytes_out
        return self._outputs

    @property
    def wants_input(self) -> bool:
        """Always true, since all input has come already."""
        return True
