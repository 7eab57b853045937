"""Errors of invocations, as they cross a pipe: in parts, from which the receiver builds its own errors."""

from __future__ import annotations

from invoker import errors
from invoker.errors import FunctionError, InvocationError, LimitExceeded, NestedError, Status, StatusError
from invoker.errors.wording import traceback_of
from invoker.execution.isolation.frames import Fault


class RemoteTraceback(Exception):
    """Stands for an exception that was raised in a child; its text is the traceback."""


class ChildDied(FunctionError):
    """The process of an isolated function ended before the invocation did."""


class MemoryExceeded(LimitExceeded):
    """An invocation took more memory than its function may.

    Args:
        limit: How many bytes the function may take.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"the function exceeded its limit of {limit} bytes of memory (memory_bytes)")
        self.details = {"code": "memory", "limit": limit}


def fault_of(error: InvocationError | None) -> Fault | None:
    """An error in parts, for the pipe; None for a normal end."""
    if error is None:
        return None
    fault = Fault(
        type(error).__name__, int(error.status), error._sentence, error.place, error.met, error.why, error._hint,  # noqa: SLF001
    )  # fmt: skip
    if isinstance(error, NestedError):
        fault.kind, fault.details = error.kind, error.details
    cause = error.__cause__ or error.__context__
    if cause is not None:
        fault.trace = str(cause) if isinstance(cause, RemoteTraceback) else traceback_of(cause)
        fault.raised = (type(cause).__module__, type(cause).__qualname__)
    return fault


def raised_by(fault: Fault) -> InvocationError:
    """The error that came over the pipe."""
    kind = getattr(errors, fault.name, None)
    if not (isinstance(kind, type) and issubclass(kind, InvocationError)):
        kind = StatusError if fault.name in _BY_STATUS else FunctionError
    made: InvocationError
    if issubclass(kind, NestedError):
        made = NestedError(_status(fault), fault.text, kind=fault.kind, details=fault.details)
    elif issubclass(kind, StatusError):
        made = StatusError(_status(fault), fault.text)
    else:
        made = kind(fault.text, place=fault.place, met=fault.met, why=fault.why, hint=fault.hint)
    if fault.trace:
        made.__cause__ = _remote(fault)
    return made


def _remote(fault: Fault) -> RemoteTraceback:
    """An exception whose class has the same name as its class in the child, since protocols send that name (T-065)."""
    module, name = fault.raised
    called = {"__module__": module, "__qualname__": name}
    made: RemoteTraceback = type(name.rpartition(".")[2], (RemoteTraceback,), called)(fault.trace)
    return made


_BY_STATUS = ("TimedOut", "LimitReached")
"""Errors that only the serving process makes of parts; a child can meet them in a nested call."""


def _status(fault: Fault) -> Status:
    """The status; a status that an error cannot have counts as unknown."""
    known = fault.status in Status._value2member_map_ and fault.status != Status.OK
    return Status(fault.status) if known else Status.UNKNOWN
