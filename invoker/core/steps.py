"""The vocabulary between sessions, invocations and drivers: commands, events, steps.

A session turns wire frames into *commands* on invocations, and the *events* of invocations into frames to `Send`. A
session asks its driver for *steps*: commands on invocations, and steps that concern its conversation::

    step         what the driver does                              events that it may cause
    -----------  ------------------------------------------------  ---------------------------------------------------
    Open         admits an invocation and starts its body          Emitted and OutputEnded per output, then Finished
    Join         holds an invocation of another conversation       Wants, then Finished
    Feed         gives an input one message                        Wants, when the session stores the messages
    EndInput     ends an input normally, or all inputs             none of its own
    Cancel       ends the invocation with an error                 Finished
    CloseOutput  drops further values of an output                 none: the output has no reader any more
    Send         writes a frame, and the headers before the first  none
    Close        ends the conversation                             none: nothing follows it
    Timer        waits                                             Elapsed
    Fetch        gets what a URI refers to                         Fetched, once or several times
    Ask          asks the store, which conversations share         Answered, once
    Await        runs something of its service on the loop         Answered, once
    Subscribe    listens to the changes of a space                 StoreChanged, for each change

The driver delivers each event once, to the session whose step caused it; events of a shared invocation go to all
sessions that hold it. A new word needs an ADR (8, 19).

Values are slotted and frozen; making one costs about 0.1 µs, which the hot path pays once a frame.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from invoker.core.store import Change, Question, Refused
from invoker.errors import InvocationError
from invoker.message import EMPTY, Message
from invoker.moved import lead_names

__all__ = [
    "ALL",
    "Answered",
    "Ask",
    "Await",
    "CallStep",
    "Cancel",
    "Close",
    "CloseOutput",
    "Elapsed",
    "Emitted",
    "EndInput",
    "Event",
    "Feed",
    "Fetch",
    "Fetched",
    "Finished",
    "Join",
    "Open",
    "OutputEnded",
    "Send",
    "Step",
    "StoreChanged",
    "Subscribe",
    "Terms",
    "Timer",
    "Trailers",
    "Wants",
]

ALL = -1
"""The index of `EndInput` that means every input."""

Trailers: TypeAlias = tuple[tuple[str, str | bytes], ...]
"""Names and values, in the order in which they are sent; a name may come several times."""


class Terms(enum.Enum):
    """Whether an invocation is strict about media types, and about outputs that the caller has not named.

    Each protocol chooses its own.
    """

    STRICT = "inputs take media types that have a codec, outputs have those of the server's order, all are listed"
    LOOSE = (
        "inputs take any media type; where the peer does not choose, text is text/plain and bytes are"
        " application/octet-stream; values for outputs that were not listed are dropped"
    )


class Open(msgspec.Struct, frozen=True):
    """Start an invocation.

    Attributes:
        id: Chosen by the session; unique within it while the invocation lives.
        function: Name in the catalogue; empty means its only or default function.
        accepts: One comma list of media ranges an output, or None: no preference for any output (``*/*``).
        input_names: As the peer sent them; empty means unnamed.
        output_names: As the peer sent them; empty means unnamed.
        metadata: The metadata of the conversation, for the `Context` of the function.
        bound: Names of the parameters that get an input stream, in the order of their index; None means the function's
            own inputs. Parameters with defaults may be among them; those that are not named keep their defaults.
        terms: Whether media types and outputs are treated strictly.
        unwanted: Indexes of outputs without a reader: their values are drained, neither encoded nor emitted.
        configs: The configs of the function's `Context`, as the session made them.
        is_shared: Whether all conversations of the process may `Join` the invocation by its id. If an invocation of
            this id exists, this conversation becomes one more of its owners, and the rest of the step is ignored. It
            ends with its last owner, and has no deadline.
        timeout_s: How long the invocation may take, if that is less than its function may; then it ends with
            `TimedOut`, and the session gets `Finished` at once, even if the function does not return.
        party: The caller's name for the limit of calls that each party may begin in a minute.
        scope: The scope that the function can reach by its context (`invoker.context.Scope`); None: the functions of
            the process.
        caller: The context of the function that called this one; None: a peer called it.
        protocol: The protocol of the peer, for the log, and for the status of its faults.
    """

    id: str
    function: str = ""
    accepts: tuple[str, ...] | None = None
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    metadata: Mapping[str, str] = EMPTY
    bound: tuple[str, ...] | None = None
    terms: Terms = Terms.STRICT
    unwanted: tuple[int, ...] = ()
    configs: tuple[Any, ...] = ()
    is_shared: bool = False
    timeout_s: float | None = None
    party: str = ""
    scope: Any = None
    caller: Any = None
    protocol: str = ""


class Join(msgspec.Struct, frozen=True):
    """Hold a shared invocation of another conversation, to feed it and to be notified of its ending.

    Only its owners get its messages, end its inputs and close its outputs. `Cancel` releases it, and so does the end of
    this conversation. If there is no such invocation, the answer is `Finished`.
    """

    id: str


class Feed(msgspec.Struct, frozen=True):
    """Give one message to input ``index``; an empty media type means ``application/octet-stream``."""

    id: str
    index: int
    message: Message[bytes]


class EndInput(msgspec.Struct, frozen=True):
    """Input ``index`` ended normally; `ALL` ends every input that is still open. Idempotent."""

    id: str
    index: int = ALL


class Cancel(msgspec.Struct, frozen=True):
    """End the invocation with ``error``: inputs fail, the body is closed. Idempotent."""

    id: str
    error: InvocationError


class CloseOutput(msgspec.Struct, frozen=True):
    """Output ``index`` has no reader any more.

    Its values are dropped from now on, and a generator that gives only this output is closed at its next value. No
    event answers this step.
    """

    id: str
    index: int


class Emitted(msgspec.Struct, frozen=True):
    """Output ``index`` has one more message, with a concrete media type."""

    id: str
    index: int
    message: Message[bytes]


class OutputEnded(msgspec.Struct, frozen=True):
    """Output ``index`` ended normally before its invocation did; sent only for invocations with several outputs."""

    id: str
    index: int


class Wants(msgspec.Struct, frozen=True):
    """Input ``index`` has room again, because the function took most of what it was fed.

    Only sessions that store what they receive get this event. ``waits`` says that the input is empty and the function
    waits for it; it is set only while the session's `hears_waits` is.
    """

    id: str
    index: int
    waits: bool = False


class Finished(msgspec.Struct, frozen=True):
    """The invocation is over; the only way it can end. ``error`` is None for a normal end."""

    id: str
    error: InvocationError | None = None


class Send(msgspec.Struct, frozen=True):
    """Write ``frame`` to the peer; a wire that has headers sends them before its first frame, also without an Open."""

    frame: Any


class Close(msgspec.Struct, frozen=True):
    """The conversation is over. No step follows it.

    Attributes:
        error: The status of the conversation; None is OK.
        trailers: Metadata that goes with the status; gRPC sends it as trailing metadata, where names are in lower case
            and those of bytes end in ``-bin``. HTTP and WebSocket have no place for it and drop it.
    """

    error: InvocationError | None = None
    trailers: Trailers = ()


class Fetch(msgspec.Struct, frozen=True):
    """Fetch at most ``most`` bytes of the content behind a URI; answered by `Fetched` with the same key."""

    key: str
    uri: str
    most: int


class Fetched(msgspec.Struct, frozen=True):
    """The next bytes of the fetched content; ``is_last`` or an ``error`` ends them."""

    key: str
    data: bytes = b""
    is_last: bool = False
    error: InvocationError | None = None


class Ask(msgspec.Struct, frozen=True):
    """Ask the store, which all conversations of the process share; answered by `Answered` with the same key."""

    key: str
    question: Question


class Await(msgspec.Struct, frozen=True):
    """Await an awaitable that the session got from its service, such as the connection to another program.

    It is answered by `Answered` with the same key: its value is what was returned, or the InvocationError that was
    raised. It is cancelled when the conversation ends.
    """

    key: str
    begin: Callable[[], Awaitable[Any]]


class Answered(msgspec.Struct, frozen=True):
    """The answer to an `Ask` or an `Await`, in a later turn.

    The store answers with the type that the question names, or with `Refused`.
    """

    key: str
    value: Any


class Subscribe(msgspec.Struct, frozen=True):
    """Get each change of a space of the store, until the conversation is over.

    Attributes:
        topic: The name of the space.
        names: Items of interest; None: all. If empty, only the end of the space is reported.
        has_initial: Whether the existing items are reported first, as if each were new.
    """

    topic: str
    names: tuple[str, ...] | None = None
    has_initial: bool = False


class StoreChanged(msgspec.Struct, frozen=True):
    """A change that this conversation or another one made to a space.

    The last change is a `Refused`, when the space has ended.

    It comes only while the peer has room for what the session sends; a session that falls behind gets the last change
    of each item.
    """

    topic: str
    value: Change | Refused


class Timer(msgspec.Struct, frozen=True):
    """Give an `Elapsed` after ``delay_s``; a later Timer replaces this one."""

    delay_s: float


class Elapsed(msgspec.Struct, frozen=True):
    """The time of the last `Timer` has passed."""


Event: TypeAlias = Emitted | OutputEnded | Wants | Finished | Fetched | Elapsed | Answered | StoreChanged
CallStep: TypeAlias = Open | Feed | EndInput | Cancel | CloseOutput | Send | Close | Timer | Ask
"""The steps that a session of one call may give. A plain thread performs all of them but `Ask`, for which the loop
takes the call over."""
Step: TypeAlias = CallStep | Join | Fetch | Await | Subscribe

lead_names(__name__)
