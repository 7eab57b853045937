"""The error tree."""

import re

import pytest

from invoker import errors
from invoker.errors import (
    ConfigError,
    EncodeError,
    FunctionError,
    InputCancelled,
    InvocationError,
    InvokerError,
    ProtocolViolation,
    Status,
    StatusError,
    StopInvocation,
    UnsupportedMediaType,
    describe,
    let_go,
    quoted,
)


def test_an_error_says_its_prefix_and_its_detail():
    """``str(error)`` is what a peer sees: the prefix, then a colon and the detail."""
    assert str(UnsupportedMediaType("x")) == "Invoker: Unsupported Media Type: x"
    assert str(ProtocolViolation()) == "Invoker: Protocol Violation"


def test_the_docstring_is_the_tree():
    """Every class stands in the module's docstring, and nothing else does."""
    drawn = set(re.findall(r"[A-Z]\w+", errors.__doc__))
    classes = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    assert classes <= drawn


def test_R044_a_function_chooses_status_and_text():
    """A StatusError is sent as it stands; OK is no error."""
    error = StatusError(Status.NOT_FOUND, "no such row")
    assert (error.status, str(error)) == (Status.NOT_FOUND, "no such row")
    with pytest.raises(ValueError, match="other than OK"):
        StatusError(Status.OK)


def test_statuses_are_those_of_the_catalogue():
    """The table of statuses and prefixes, section 0.1."""
    kinds = [kind for kind in InvocationError.__subclasses__() if kind.__module__ == errors.__name__]
    found = {kind.prefix: kind.status.name for kind in kinds if kind is not StatusError}
    assert found == {
        "Invoker: Unsupported Media Type": "INVALID_ARGUMENT",
        "Invoker: Not Acceptable": "INVALID_ARGUMENT",
        "Invoker: Bad Input Signal": "UNKNOWN",
        "Invoker: Protocol Violation": "UNKNOWN",
        "Invoker: Unexpected Invocation Error": "UNKNOWN",
        "Invoker: Unexpected Error": "UNKNOWN",
        "Invoker: Limit Exceeded": "RESOURCE_EXHAUSTED",
        "Invoker: Not Ready": "UNAVAILABLE",
        "Invoker: Shutting Down": "UNAVAILABLE",
        "Invoker: Cancelled": "CANCELLED",
        "Invoker: Deadline Exceeded": "DEADLINE_EXCEEDED",
        "Invoker: Internal Error": "INTERNAL",
    }
    assert issubclass(EncodeError, FunctionError)


def test_except_exception_cannot_swallow_a_stop():
    """What is raised into user code to end it is no Exception."""
    assert not issubclass(StopInvocation, Exception)
    error = ProtocolViolation("x")
    assert InputCancelled(error).error is error


def test_exit_codes():
    """A bad knob is 2, everything else that stops the start is 1."""
    assert ConfigError.exit_code == 2
    assert {kind.exit_code for kind in errors.StartupError.__subclasses__()} == {1, 2}
    assert issubclass(ConfigError, InvokerError)


class Rude(Exception):
    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError("boom"), "ValueError: boom"), (KeyError(), "KeyError"), (Rude(), "Rude: (its __str__ raised)")],
)
def test_R117_an_exception_is_described_by_type_and_message(error, text):
    """No traceback and no path; an exception that cannot be printed is named."""
    assert describe(error) == text


def test_an_error_that_was_told_lets_go_of_what_its_frames_hold():
    """So do those that it came from, and the members of groups; a circle among them ends."""

    def raising() -> None:
        try:
            try:
                raise ValueError("first")
            except ValueError as first:
                raise ExceptionGroup("several", [KeyError("member")]) from first
        except ExceptionGroup as group:
            raise FunctionError("told") from group

    with pytest.raises(FunctionError) as met:
        raising()
    told = met.value
    group = told.__cause__
    assert isinstance(group, ExceptionGroup)
    assert group.__cause__ is not None
    group.__cause__.__context__ = told
    assert group.__traceback__ is not None
    let_go(told)
    every = (told, group, group.__cause__, *group.exceptions)
    assert [one.__traceback__ for one in every] == [None] * 4
    let_go(None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p", "'p'"),
        ('日\n"', "'日\\n\"'"),
        ("x" * 64, f"'{'x' * 64}'"),
        ("x" * 65, f"'{'x' * 64}...'"),
        ("\x1b[31m\x00", "'\\x1b[31m\\x00'"),
    ],
)
def test_E116_names_are_escaped_and_shortened(text, shown):
    """At most 64 characters, and none that a terminal obeys (ET-85)."""
    assert quoted(text) == shown
