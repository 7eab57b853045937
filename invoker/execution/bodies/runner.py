"""The code that the two runners share: `Runner` runs the body of one invocation and reports to its conversation.

`LoopRunner` runs an async body as tasks of the loop; `ThreadRunner` runs a sync body in a thread of its own. Both end
in the same way: exactly one call of ``host.finished``, at the invocation's first ending. User code may return a little
later; the runner then calls ``on_left``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from invoker.author.spec import StreamSpec, Take
from invoker.core.invocation import Invocation
from invoker.core.steps import CloseOutput
from invoker.errors import (
    CallError,
    EncodeError,
    FunctionError,
    InputCancelled,
    InvocationError,
    StopInvocation,
    reason_of,
)
from invoker.errors.wording import traceback_of
from invoker.execution.pace.slices import Slices
from invoker.message import Message, as_headers

log = logging.getLogger(__name__)

_TWO_READERS = ("generator already executing", "anext(): asynchronous generator is already running")
"""Python's text about two readers of one generator; only the wording of our errors depends on it."""


class Body(Protocol):
    """A body that runs as a task of the loop."""

    name: str
    task: asyncio.Task[None] | None

    @property
    def invocation(self) -> Invocation:
        """The invocation that it runs."""

    def run(self) -> Coroutine[Any, Any, None]:
        """The coroutine of the body's task; it ends when user code has returned."""


Spawn: TypeAlias = Callable[[Body], None]
"""Makes the task of a body and assigns it to ``body.task``; the body may begin at once, or in a later turn of the
loop."""


class Host(Protocol):
    """The conversation of a runner, with the methods that a runner calls, on the loop only."""

    @property
    def is_paused(self) -> bool:
        """Whether reading has paused, or is about to."""

    @property
    def hears_waits(self) -> bool:
        """Whether `resume` is called for every reader that waits, even while reading has not paused."""

    def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> Awaitable[None] | None:
        """Send one output; returns an awaitable that the body must await before it continues, or None."""

    def ended(self, invocation: Invocation, index: int) -> None:
        """Note that one of several outputs ended normally, after its last message."""

    def finished(self, invocation: Invocation, error: InvocationError | None) -> None:
        """Called once, with the first ending of the invocation; None is a normal end."""

    def resume(self) -> None:
        """Called when there is room, so that input may be read again."""


class Runner(Protocol):
    """Runs one body. Called on the loop only."""

    invocation: Invocation
    host: Host
    loop: asyncio.AbstractEventLoop
    has_left: bool

    def start(self) -> None:
        """Start the body; raises Overloaded when there is no room for it."""

    def feed(self, command: Any) -> None:
        """Apply a Feed to the invocation, and wake its reader."""

    def end_inputs(self, command: Any) -> None:
        """Apply an EndInput to the invocation, and wake its readers."""

    def close_output(self, command: CloseOutput) -> None:
        """Close an output without a reader: its generator is closed when it gives another value."""

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only."""

    def stop(self) -> None:
        """Make the body end, if it has not, because the invocation has finished."""


def later(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    """Call a function on a loop, from any thread. Nothing happens if the loop has closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


def check_thread() -> None:
    """Refuse to block the loop, since a value that a sync function sends waits until the loop writes it.

    Raises:
        EncodeError: This is the loop's thread.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - returns None where get_running_loop raises
        raise EncodeError("a sync function sends from its own thread; write `async def` to send from the event loop")


def shape(spec: StreamSpec, message: Message[bytes], value: Any) -> Any:
    """Convert a message for an input that takes more than the value: to a `Message`, or to its headers (R-040)."""
    if spec.take is Take.MESSAGE:
        return Message(value, as_headers(message.headers), message.media_type or "application/octet-stream")
    return as_headers(message.headers)


def call_failed(error: BaseException, *, debug: bool = False) -> InvocationError:
    """The error of a function whose call raised before it returned a stream (R-119)."""
    return _translated(error, CallError, debug=debug)


def production_failed(error: BaseException, *, debug: bool = False) -> InvocationError:
    """The error of a function that raised while producing (R-033, R-123)."""
    return _translated(error, FunctionError, debug=debug)


async def until_room(invocation: Invocation, room: Awaitable[None], slices: Slices) -> None:
    """Wait until the peer takes more of an output; the invocation counts as blocked meanwhile.

    Then wait until `Slices` lets this body continue.
    """
    invocation.blocked += 1
    try:
        await room
    finally:
        invocation.blocked -= 1
    if (others := slices.wait()) is not None:
        await others


def comes_of(error: BaseException | None, ending: BaseException | None) -> bool:
    """Whether an exception is the invocation's ending, which every pull raises again, or was caused by it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if error is ending:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _translated(error: BaseException, kind: type[InvocationError], *, debug: bool) -> InvocationError:
    if isinstance(error, InvocationError):
        return error
    if isinstance(error, InputCancelled):
        return error.error
    if isinstance(error, StopInvocation):
        raise AssertionError("a stopped body has no ending of its own")  # noqa: TRY004 - it cannot happen
    hint = ""
    told = error.args[0] if type(error) in (ValueError, RuntimeError) and error.args else None
    if type(told) is str and told in _TWO_READERS:  # exceptions of the author may raise when they are printed
        hint = "; two outputs read one generator at the same time, so give each a branch of its own by invoker.tee"
    if debug:
        hint += "\n" + traceback_of(error)
    made = kind(why=reason_of(error), hint=hint)
    made.__cause__ = error
    return made
