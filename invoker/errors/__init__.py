"""Every error the invoker raises, as one tree.

::

    InvokerError                    status, prefix and detail; ``str(error)`` is what the peer sees
    |-- InvocationError             an invocation fails; its session reports the error to the peer
    |   |-- UnsupportedMediaType    the peer's fault: no codec for what was sent           INVALID_ARGUMENT
    |   |-- NotAcceptable           the peer's fault: no codec for what was asked          INVALID_ARGUMENT
    |   |-- DecodeError             the peer's fault: the codec refused the bytes          UNKNOWN
    |   |-- ProtocolViolation       the peer's fault: grammar, arity or index broken       UNKNOWN
    |   |-- CallError               the author's fault: the function raised when called    UNKNOWN
    |   |-- FunctionError           the author's fault: it raised while producing          UNKNOWN
    |   |   `-- EncodeError         the author's fault: a value that no codec takes        UNKNOWN
    |   |       `-- UnacceptedType  nobody's: the peer does not accept the media type      UNKNOWN
    |   |-- StatusError             the author's choice of status and text                 any
    |   |   |-- NestedError         what a function that this one called has ended with    any
    |   |   `-- VariableError       a variable of a session cannot be read or written      any
    |   |-- LimitExceeded           a limit of ours was reached                            RESOURCE_EXHAUSTED
    |   |   `-- Overloaded          too much runs already; the same may pass later         RESOURCE_EXHAUSTED
    |   |-- NotReady                the functions are still loading                        UNAVAILABLE
    |   |-- ShuttingDown            the process drains                                     UNAVAILABLE
    |   |-- Cancelled               the peer cancelled or is gone                          CANCELLED
    |   |-- DeadlineExceeded        the peer's deadline passed                             DEADLINE_EXCEEDED
    |   `-- InternalError           our bug; the detail is withheld from the peer          INTERNAL
    `-- StartupError                the process must not open its ports                    exit code 1
        |-- ConfigError             a setting has a bad value                                 exit code 2
        |-- LoadError               the entrypoint cannot be imported
        |-- SpecError               the signature was not understood
        `-- HookError               a start or stop hook failed or took too long
    StopInvocation (BaseException)  raised *into* sync user code whose invocation is over
    |-- InputCancelled              raised by an input whose stream ended with an error
    `-- Discarded                   a value for an output without a reader; its driver continues

The tree is sorted by whose fault an error is. A peer sees ``str(error)`` and never a traceback. An InvocationError
composes its text of parts; `InvocationError.said_at` can replace the part that names the input or output.
"""

from __future__ import annotations

import enum
from typing import ClassVar, Self

from invoker.errors.wording import Place, Why, clipped, describe

__all__ = [
    "CallError",
    "Cancelled",
    "ConfigError",
    "DeadlineExceeded",
    "DecodeError",
    "Discarded",
    "EncodeError",
    "FunctionError",
    "HookError",
    "InputCancelled",
    "InternalError",
    "InvocationError",
    "InvokerError",
    "LimitExceeded",
    "LoadError",
    "NestedError",
    "NotAcceptable",
    "NotReady",
    "Overloaded",
    "ProtocolViolation",
    "ShuttingDown",
    "SpecError",
    "StartupError",
    "Status",
    "StatusError",
    "StopInvocation",
    "UnacceptedType",
    "UnsupportedMediaType",
    "VariableError",
    "let_go",
    "reason_of",
]


class Status(enum.IntEnum):
    """The status of an ending; names and numbers are gRPC's own."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class InvokerError(Exception):
    """An error with a status, a prefix that names its kind, and a detail that describes it.

    Args:
        detail: The text for the peer: what was met, what was expected, where. Leading and trailing blanks are removed:
            HTTP/2 forbids them in a field (RFC 9113, 8.2.1), and gRPC clients in Node then lose the whole text.
    """

    status: Status = Status.UNKNOWN
    prefix: ClassVar[str] = "Invoker: Error"
    usual: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        detail = detail.strip()
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.prefix}: {self.detail}" if self.detail else self.prefix


class InvocationError(InvokerError):
    """An error that ends one invocation; all other invocations and the process continue.

    Args:
        detail: What was met, what was expected. If ``place`` or ``met`` is given, the detail continues their sentence,
            so it begins with a blank or a colon. If it is left out, the class's own text is used.
        place: The input or output that caused the error; the text begins with it.
        met: The value that came at the place, such as a media type; it follows the place and a colon in the text.
        why: The reason, which follows the detail and a colon in the text.
        hint: Advice for the reader, at the end of the text.
    """

    def __init__(
        self,
        detail: str = "",
        *,
        place: Place | None = None,
        met: str = "",
        why: Why | None = None,
        hint: str = "",
    ) -> None:
        self.place = place
        self.met = met
        self.why = why
        self._sentence = detail = clipped(detail or self.usual)
        self._hint = hint
        super().__init__(self._text(self._start))

    def said_at(self, place: str, met: str = "") -> str:
        """The detail, with another text for its place and for the value that was met there."""
        within = self.place.within if self.place is not None else ""
        return self._text(self._started(f"{place}{within}", met or self.met)).strip()

    def inside(self, place: Place) -> Self:
        """The same error within an outer place: the text begins with that place, followed by the former text."""
        return type(self)(f": {self._start}", place=place, why=self.why, hint=self._hint)

    def add_hint(self, hint: str) -> None:
        """Append a hint to the text."""
        self._hint += hint
        self._retell()

    def withhold(self, shows: str) -> None:
        """Leave out the text of an exception of the author's code (R-117).

        Args:
            shows: ``message`` keeps all of the exception's text; ``type`` keeps only its type; ``none`` keeps nothing.
        """
        if self.why is not None and self.why.raised and shows != "message":
            self.why = Why(self.why.raised if shows == "type" else "")
            self._retell()

    @property
    def _start(self) -> str:
        return self._started("" if self.place is None else str(self.place), self.met)

    def _started(self, place: str, met: str) -> str:
        head = f"{place}: {met}" if place and met else place or met
        return f"{head}{self._sentence}"

    def _text(self, start: str) -> str:
        why = self.why.text if self.why is not None else ""
        return f"{start}: {why}{self._hint}" if start and why else f"{start}{why}{self._hint}"

    def _retell(self) -> None:
        self.detail = self._text(self._start).strip()
        self.args = (self.detail,)


class UnsupportedMediaType(InvocationError):
    """A payload's media type is malformed, a wildcard, or has no codec (R-065, R-066, R-067)."""

    status = Status.INVALID_ARGUMENT
    prefix = "Invoker: Unsupported Media Type"


class NotAcceptable(InvocationError):
    """No registered codec satisfies what the peer accepts for an output (R-100)."""

    status = Status.INVALID_ARGUMENT
    prefix = "Invoker: Not Acceptable"


class DecodeError(InvocationError):
    """The codec of the media type cannot decode this payload, or the value fits no parameter (R-068)."""

    prefix = "Invoker: Bad Input Signal"


class ProtocolViolation(InvocationError):
    """Frame grammar, arity or an index is broken (R-045 to R-064)."""

    prefix = "Invoker: Protocol Violation"


class CallError(InvocationError):
    """The call of the user's function raised before it returned a stream (R-119)."""

    prefix = "Invoker: Unexpected Invocation Error"


class FunctionError(InvocationError):
    """The user's function raised while producing (R-033, R-113)."""

    prefix = "Invoker: Unexpected Error"


class EncodeError(FunctionError):
    """A value or a header cannot be serialised as the peer accepts it (R-104, R-108)."""


class UnacceptedType(EncodeError):
    """The function gave a `Message` of a media type that the peer does not accept; ``met`` is the type (R-098)."""


class StatusError(InvocationError):
    """Raised by a function to choose the status and the text that the peer sees (R-044).

    Args:
        status: Any status but OK.
        detail: The text that the peer sees, without a prefix.

    Raises:
        ValueError: ``status`` is OK, or is not a `Status`.
    """

    def __init__(self, status: Status, detail: str = "") -> None:
        if status == Status.OK:
            raise ValueError("a StatusError needs a status other than OK; return to end with OK")
        if status not in tuple(Status):
            raise ValueError(f"a StatusError needs a Status, such as Status.NOT_FOUND, and got {status!r}")
        super().__init__(detail)
        self.status = Status(status)

    def __str__(self) -> str:
        return self.detail


class NestedError(StatusError):
    """The error of a function that was called by `Context.call`; uncaught, it also ends the caller.

    The protocol of the callee adds ``kind`` and ``details``, which may be empty.
    """

    def __init__(self, status: Status, detail: str = "", *, kind: str = "", details: dict[str, str] | None = None):
        super().__init__(status, detail)
        self.kind, self.details = kind, details or {}


class VariableError(StatusError):
    """A variable of a session cannot be read or written; raised by `Context.variables`.

    ``code`` names the case: variable_name, variable_not_found, variable_quota, store or no_session; or the reason why
    the session has ended. ``details`` contains the code and further facts.
    """

    def __init__(self, status: Status, detail: str, *, code: str, **details: object) -> None:
        super().__init__(status, detail)
        self.code = code
        self.details = {"code": code, **{name: str(value) for name, value in details.items()}}


class LimitExceeded(InvocationError):
    """A limit of buffers, frames or invocations was reached (R-130, R-132)."""

    status = Status.RESOURCE_EXHAUSTED
    prefix = "Invoker: Limit Exceeded"


class Overloaded(LimitExceeded):
    """There is no room for one more invocation or thread beside the running ones; a retry may succeed (R-132)."""


class NotReady(InvocationError):
    """The functions of this process are still loading; the same call may succeed later (G-092)."""

    status = Status.UNAVAILABLE
    prefix = "Invoker: Not Ready"


class ShuttingDown(InvocationError):
    """The process drains: a new invocation is refused, or a running one was cut at the end (R-025)."""

    status = Status.UNAVAILABLE
    prefix = "Invoker: Shutting Down"


class Cancelled(InvocationError):
    """The peer cancelled, or its connection is gone (R-115)."""

    status = Status.CANCELLED
    prefix = "Invoker: Cancelled"
    usual = "the peer cancelled, or is gone"


class DeadlineExceeded(InvocationError):
    """The peer's deadline passed (R-124)."""

    status = Status.DEADLINE_EXCEEDED
    prefix = "Invoker: Deadline Exceeded"
    usual = "the deadline has passed"


class InternalError(InvocationError):
    """A defect of the invoker itself; the log has the traceback, the peer only this line."""

    status = Status.INTERNAL
    prefix = "Invoker: Internal Error"


class StartupError(InvokerError):
    """The process must end before it opens a port; ``exit_code`` is the exit code of the process."""

    prefix = "invoker"
    exit_code: ClassVar[int] = 1


class ConfigError(StartupError):
    """A setting has an invalid value (R-004)."""

    exit_code = 2


class LoadError(StartupError):
    """The entrypoint cannot be imported, found or called (R-008)."""


class SpecError(StartupError):
    """The function's signature was not understood."""


class HookError(StartupError):
    """A start or stop hook raised, timed out or is not callable (R-020, R-021, R-022)."""


class StopInvocation(BaseException):
    """Raised in a sync function that reads or gives values after its invocation has ended; not an `Exception`."""

    def __init__(self, detail: str = "the invocation is over") -> None:
        super().__init__(detail)


class Discarded(StopInvocation):
    """Raised when a value is encoded for an output without a reader; no function ever sees it."""


class InputCancelled(StopInvocation):
    """Raised when a function reads an input that was cut off, so that a cut never looks like an end (R-110).

    Attributes:
        error: The error that ended the call: Cancelled, DeadlineExceeded, ProtocolViolation, ...
    """

    def __init__(self, error: InvocationError) -> None:
        super().__init__(str(error))
        self.error = error


def let_go(error: BaseException | None) -> None:
    """Drop the tracebacks of an error that has been reported, and of its causes.

    Their frames hold the arguments of a function, and form a reference cycle with the error: large inputs of a function
    that raises would stay until the garbage collector runs, which may take long.
    """
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            waiting += (one.__cause__, one.__context__)
            if isinstance(one, BaseExceptionGroup):
                waiting += one.exceptions


def reason_of(error: BaseException) -> Why:
    """The text of an exception of user code, as a reason that an operator may withhold (R-117)."""
    return Why(error.detail if isinstance(error, InvokerError) else describe(error), type(error).__name__)
