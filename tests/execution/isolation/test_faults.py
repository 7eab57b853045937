"""Errors as they cross a pipe."""

from __future__ import annotations

import pytest

from invoker.errors import (
    Cancelled,
    DecodeError,
    EncodeError,
    FunctionError,
    InvocationError,
    NestedError,
    Overloaded,
    Status,
    StatusError,
)
from invoker.errors.wording import Place, Why
from invoker.execution.isolation.faults import RemoteTraceback, fault_of, raised_by
from invoker.execution.isolation.frames import Done, Fault, Frames, FromChild, framed


def crossed(error: InvocationError) -> InvocationError:
    (done,) = Frames(FromChild).feed(framed(Done(fault_of(error))))
    return raised_by(done.fault)


@pytest.mark.parametrize(
    "error",
    [
        FunctionError(why=Why("ValueError: no", "ValueError"), hint="; mend it"),
        DecodeError(": expected int", place=Place("input", 0, "x"), met="application/json"),
        EncodeError(": no codec", place=Place("output", 1, "y")),
        StatusError(Status.NOT_FOUND, "not here"),
        Cancelled("gone"),
        Overloaded("too many"),
    ],
)
def test_the_other_end_tells_the_same(error: InvocationError) -> None:
    """Class, status and text, and what a policy withholds."""
    got = crossed(error)
    assert (type(got), got.status, str(got)) == (type(error), error.status, str(error))
    error.withhold("type")
    got.withhold("type")
    assert str(got) == str(error)


def test_a_nested_error_keeps_its_kind() -> None:
    """And its details."""
    got = crossed(NestedError(Status.NOT_FOUND, "no tool", kind="ToolNotFound", details={"a": "b"}))
    assert isinstance(got, NestedError)
    assert (got.kind, got.details, got.status) == ("ToolNotFound", {"a": "b"}, Status.NOT_FOUND)


def test_the_traceback_comes_along() -> None:
    """As text, since the objects stay in the child."""
    try:
        try:
            raise ValueError("inner")
        except ValueError as inner:
            raise FunctionError("outer") from inner
    except FunctionError as error:
        got = crossed(error)
    assert isinstance(got.__cause__, RemoteTraceback)
    assert 'raise ValueError("inner")' in str(got.__cause__)
    assert (type(got.__cause__).__module__, type(got.__cause__).__name__) == ("builtins", "ValueError")


def test_what_is_unknown_becomes_a_function_error() -> None:
    """A child cannot make the serving process raise what is no ending, or end with OK."""
    assert type(raised_by(Fault("SystemExit", 0, "x"))) is FunctionError
    assert type(raised_by(Fault("StartupError", 0, "x"))) is FunctionError
    assert raised_by(Fault("StatusError", 0, "x")).status is Status.UNKNOWN
    assert raised_by(Fault("StatusError", 99, "x")).status is Status.UNKNOWN
    assert raised_by(Fault("TimedOut", 4, "late")).status is Status.DEADLINE_EXCEEDED
    assert fault_of(None) is None
