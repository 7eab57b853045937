"""`BridgeError`: the errors of the tool bridge, and the translation of the engine's errors.

The kinds are a closed set (T-159). A response with a field ``error`` carries the error itself, and its rpc ends with
OK. All other rpcs end with the status of the kind and a trailer that holds the `ErrorInfo` (T-160, T-161).

========================================== =================== =====================================================
error                                      kind                details
========================================== =================== =====================================================
`BridgeError`                              its own             its own
`TimedOut`                                 TimeoutError        ``timeout_ms``
`DeadlineExceeded`                         TimeoutError
`LimitReached`                             ResourceExhausted   ``code``, ``scope``, ``limit``, ``retry_after_ms``
`LimitExceeded`                            ResourceExhausted   ``code=limit``
`VariableError`                            by its status       its own; of a session that has ended: SessionExpired
`DecodeError`, `UnsupportedMediaType`      ValidationError     ``code=decode``
`EncodeError`                              InternalError       ``code=unserializable``, ``path``
`CallError`, `FunctionError`               InternalError       ``exception``: the class of the function's exception
`ToolError`                                its own             its own
`NestedError` of another tool              its own             its own
`StatusError`                              see `_STATUSES`     ``status``
anything else                              InternalError
========================================== =================== =====================================================

An error that has ``details`` of its own keeps them. The errors in `ENDS_RPC` end the rpc with a status, even if the
response has a field ``error``.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from typing import Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import Unserializable
from invoker.core.limits import LimitReached, TimedOut
from invoker.core.steps import Close
from invoker.core.store import Reason
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InvocationError,
    LimitExceeded,
    NestedError,
    NotReady,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
    VariableError,
)
from invoker.protocols.toolbridge.toolerror import ToolError
from invoker.protocols.toolbridge.wire import KINDS, TRAILER

ENDS_RPC: Final = (Cancelled, NotReady, ShuttingDown)
"""Errors that end the rpc with a status: the caller has left, or this process takes no calls, so that a client can try
another one."""

_SECOND: Final = 1_000_000_000
_TEXT: Final = 16_384
"""The largest number of characters of a text in a response, since callers and authors choose the texts."""

_TRAILER_TEXT: Final = 256
_TRAILER_BYTES: Final = 2048
"""The largest trailer in bytes: clients accept 8 KiB of metadata, of which the text of the status needs a part
(R-118)."""


class Kind(enum.Enum):
    """The values of `ErrorInfo.type` (T-159), each with the status of rpcs that fail with it (T-161)."""

    TOOL_NOT_FOUND = "ToolNotFound"
    VALIDATION = "ValidationError"
    TIMEOUT = "TimeoutError"
    EXHAUSTED = "ResourceExhausted"
    EXPIRED = "SessionExpired"
    INTERNAL = "InternalError"

    @property
    def status(self) -> Status:
        """The gRPC status of rpcs that fail with this kind."""
        return KINDS[self.value]


_STATUSES: Final = {
    Status.INVALID_ARGUMENT: Kind.VALIDATION,
    Status.OUT_OF_RANGE: Kind.VALIDATION,
    Status.DEADLINE_EXCEEDED: Kind.TIMEOUT,
    Status.RESOURCE_EXHAUSTED: Kind.EXHAUSTED,
}
_OF_VARIABLES: Final = {**_STATUSES, Status.NOT_FOUND: Kind.EXPIRED}
_SCOPES: Final = {"function": "tool", "party": "session", "process": "global"}
_GONE: Final = {
    Reason.UNKNOWN: ("unknown", "there is no session {id!r}; InitializeSession makes it"),
    Reason.EXPIRED: ("expired", "the session {id!r} has expired, because it was not used for too long"),
    Reason.DROPPED: ("cleaned", "the session {id!r} was cleaned up"),
}


class BridgeError(StatusError):
    """An error of the tool bridge.

    Args:
        kind: The kind of error.
        text: What was met, what was expected.
        details: Further facts by name; values become text. ``code`` distinguishes errors of one kind, ``field`` names
            the argument or field.

    Attributes:
        status: The status of an rpc that fails with the error: that of the kind, unless another one is set.
        stacktrace: The traceback, if the caller may see it.
    """

    def __init__(self, kind: Kind, text: str, /, **details: object) -> None:
        super().__init__(kind.status, text)
        self.kind = kind
        self.details = {name: str(value) for name, value in details.items()}
        self.stacktrace = ""
        self._at_ns = time.time_ns()

    def info(self) -> pb.ErrorInfo:
        """The error as an `ErrorInfo`; long texts are cut."""
        made = self._head(_TEXT)
        made.stacktrace = _sendable(self.stacktrace, 4 * _TEXT)
        for name, value in self.details.items():
            whole = len(value) if name == "violations" else _TEXT  # the JSON is not cut; its size is bounded elsewhere
            made.details[_sendable(name, _TEXT)] = _sendable(value, whole)
        return made

    def kept(self) -> BridgeError:
        """Return a copy of this error without its traceback, for an object that keeps it.

        The frames of the traceback refer to that object and to the request. Such a cycle would keep megabytes until the
        garbage collector runs.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def trailer(self) -> bytes:
        """The error as the trailer of an rpc, without parts that are too large."""
        made = self._head(_TRAILER_TEXT)
        for name, value in self.details.items():
            if made.ByteSize() + len(name) * 4 + min(len(value), _TRAILER_TEXT) * 4 <= _TRAILER_BYTES:
                made.details[_sendable(name)] = _sendable(value, _TRAILER_TEXT)
        return made.SerializeToString()

    def _head(self, most: int) -> pb.ErrorInfo:
        made = pb.ErrorInfo(type=self.kind.value, message=_sendable(self.detail, most))
        made.timestamp.seconds, made.timestamp.nanos = divmod(self._at_ns, _SECOND)
        return made


def close_with(error: InvocationError) -> Close:
    """End an rpc with a status and a trailer, since no response can carry the error."""
    if isinstance(error, ENDS_RPC):
        return Close(error)
    told = translated(error).kept()
    return Close(told, ((TRAILER, told.trailer()),))


def no_request() -> StatusError:
    """The error of an rpc whose stream of requests ended without a request."""
    return StatusError(Status.UNIMPLEMENTED, "the rpc ended without its request")


def session_gone(session_id: str, reason: Reason) -> BridgeError:
    """The error about a session that has ended, with the text for the store's reason (T-008, T-009)."""
    if reason is Reason.UNAVAILABLE:
        return unavailable(reason.value)
    code, text = _GONE.get(reason, _GONE[Reason.UNKNOWN])
    return BridgeError(Kind.EXPIRED, text.format(id=session_id), code=code, session_id=session_id)


def unavailable(text: str) -> BridgeError:
    """The error of a request that needs the store while the store cannot be reached; a retry may succeed."""
    made = BridgeError(Kind.INTERNAL, text, code="store")
    made.status = Status.UNAVAILABLE
    return made


def translated(error: InvocationError) -> BridgeError:
    """Translate an error of an invocation into a `BridgeError`; the module's docstring has the table."""
    if isinstance(error, BridgeError):
        return error
    kind, text, details = _words(error)
    given: Mapping[str, object] = getattr(error, "details", {})
    return BridgeError(kind, text, **{**details, **given})


def _words(error: InvocationError) -> tuple[Kind, str, dict[str, object]]:
    if isinstance(error, TimedOut):
        return Kind.TIMEOUT, error.detail, {"timeout_ms": round(error.timeout_s * 1000)}
    if isinstance(error, DeadlineExceeded):
        return Kind.TIMEOUT, error.detail, {}
    if isinstance(error, LimitReached):
        return Kind.EXHAUSTED, error.detail, _reached(error)
    if isinstance(error, LimitExceeded):
        return Kind.EXHAUSTED, error.detail, {"code": "limit"}
    if isinstance(error, (DecodeError, UnsupportedMediaType)):
        return Kind.VALIDATION, error.detail, {"code": "decode"}
    if isinstance(error, EncodeError):
        cause = error.__cause__
        where = {"path": cause.path} if isinstance(cause, Unserializable) else {}  # T-104
        return Kind.INTERNAL, error.detail, {"code": "unserializable", **where}
    if isinstance(error, ToolError):
        return Kind(error.kind), error.detail or error.kind, {}
    if isinstance(error, NestedError) and error.kind:
        known = error.kind in Kind._value2member_map_
        return Kind(error.kind) if known else Kind.INTERNAL, error.detail, {} if known else {"type": error.kind}
    if isinstance(error, VariableError):
        return _OF_VARIABLES.get(error.status, Kind.INTERNAL), error.detail, {}
    if isinstance(error, StatusError):
        kind = _STATUSES.get(error.status, Kind.INTERNAL)
        return kind, error.detail or error.status.name, {"status": error.status.name}
    if isinstance(error, (CallError, FunctionError)):
        return _raised(error)
    return Kind.INTERNAL, str(error), {}


def _reached(error: LimitReached) -> dict[str, object]:
    """The details of a limit that was reached: of a function, a session or the process (T-058, T-059, T-060)."""
    details: dict[str, object] = {"code": error.code, "scope": _SCOPES[error.scope], "limit": error.limit}
    if error.retry_after_s is not None:
        details["retry_after_ms"] = round(error.retry_after_s * 1000)
    return details


def _raised(error: InvocationError) -> tuple[Kind, str, dict[str, object]]:
    """The error for an exception of the author's code (T-065); the operator's policy decides what it shows (R-117)."""
    why, cause = error.why, error.__cause__
    if cause is None or why is None or not why.raised:
        return Kind.INTERNAL, error.detail, {}
    cls = type(cause)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    text = why.text
    if text.startswith(f"{cls.__name__}: "):
        text = text[len(cls.__name__) + 2 :]
    return Kind.INTERNAL, text, {"exception": name}


def _sendable(text: str, most: int = _TEXT) -> str:
    """Make a text that protobuf accepts: lone surrogates are escaped, and a long text is cut."""
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
