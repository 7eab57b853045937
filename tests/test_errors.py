"""The error tree."""

import re
from copy import copy

import pytest

from invoker import errors
from invoker.core.policy import ErrorPolicy
from invoker.errors import (
    Cancelled,
    ConfigError,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InputCancelled,
    InvocationError,
    InvokerError,
    LimitExceeded,
    NotReady,
    ProtocolViolation,
    Status,
    StatusError,
    StopInvocation,
    UnsupportedMediaType,
    let_go,
    reason_of,
)
from invoker.errors.wording import Place, Why


def test_an_error_says_its_prefix_and_its_detail():
    """``str(error)`` is what a peer sees: the prefix, then a colon and the detail."""
    assert str(UnsupportedMediaType("x")) == "Invoker: Unsupported Media Type: x"
    assert str(ProtocolViolation()) == "Invoker: Protocol Violation"


def test_an_ending_without_a_detail_has_its_usual_one():
    assert str(Cancelled()) == "Invoker: Cancelled: the peer cancelled, or is gone"
    assert str(DeadlineExceeded()) == "Invoker: Deadline Exceeded: the deadline has passed"
    assert (str(StopInvocation()), str(NotReady())) == ("the invocation is over", "Invoker: Not Ready")


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
    """A bad setting is 2, everything else that stops the start is 1."""
    assert ConfigError.exit_code == 2
    assert {kind.exit_code for kind in errors.StartupError.__subclasses__()} == {1, 2}
    assert issubclass(ConfigError, InvokerError)


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


X = Place("input", 0, "x")
Y = Place("output", 1, within=", part 2")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DecodeError("why"), "why"),
        (DecodeError(": why", place=X), "input #0 'x': why"),
        (DecodeError(" ended", place=X), "input #0 'x' ended"),
        (DecodeError(" cannot be decoded", place=X, met="a/b"), "input #0 'x': a/b cannot be decoded"),
        (DecodeError(" is odd", met="a/b", why=Why("it is")), "a/b is odd: it is"),
        (EncodeError(": no", place=Y, why=Why("because"), hint="; try"), "output #1, part 2: no: because; try"),
        (FunctionError(why=Why("KeyError: 'k'", "KeyError"), hint="; try"), "KeyError: 'k'; try"),
        (FunctionError(why=Why("")), ""),
    ],
)
def test_a_text_is_made_of_parts(error, text):
    """Place, what was met there, the detail, the reason and a hint, each where it is given."""
    assert (error.detail, error.args) == (text, (text,))
    assert str(copy(error)) == str(error)


def test_a_protocol_has_words_of_its_own_for_a_place():
    """And for what was met there; the rest stays, and so does the part of a place."""
    error = DecodeError(" cannot be decoded", place=X, met="a/b", why=Why("why"))
    assert error.said_at("parameter 'x'") == "parameter 'x': a/b cannot be decoded: why"
    assert error.said_at("parameter 'x'", "Int8 [2]") == "parameter 'x': Int8 [2] cannot be decoded: why"
    assert EncodeError(" is odd", place=Y).said_at("output 'y'") == "output 'y', part 2 is odd"
    assert DecodeError(": why").said_at("input 'x'") == "input 'x': why"


def test_an_error_may_be_put_at_a_place():
    """Its text stands behind that of the place, with its own place; what it was raised by may still be withheld."""
    inner = EncodeError(": int cannot be a/b", place=Y, why=Why("KeyError: 'k'", "KeyError"), hint="; try")
    made = inner.inside(X)
    assert type(made) is EncodeError
    assert (made.place, made.detail) == (X, "input #0 'x': output #1, part 2: int cannot be a/b: KeyError: 'k'; try")
    made.withhold("none")
    assert made.detail == "input #0 'x': output #1, part 2: int cannot be a/b; try"


def test_a_hint_may_come_later():
    """At the end of the text, also of what `str` gives."""
    error = LimitExceeded("full", hint="; a")
    error.add_hint("; b")
    assert str(error) == "Invoker: Limit Exceeded: full; a; b"
    assert error.args == ("full; a; b",)


@pytest.mark.parametrize(
    ("shows", "text"), [("message", "at: KeyError: 'k'; try"), ("type", "at: KeyError; try"), ("none", "at; try")]
)
def test_R117_what_an_exception_says_may_be_withheld(shows, text):
    """Only of the author's; the invoker's own reasons always pass."""
    error = FunctionError("at", why=reason_of(KeyError("k")), hint="; try")
    ErrorPolicy(shows).apply(error)
    assert (error.detail, error.args) == (text, (text,))
    ours = DecodeError("at", why=Why("too long"))
    ErrorPolicy(shows).apply(ours)
    assert ours.detail == "at: too long"
    assert reason_of(ConfigError("bad")) == Why("bad", "ConfigError")


def test_R069_a_policy_says_the_status_of_bad_input():
    """Of this error, and of no other kind."""
    policy = ErrorPolicy(bad_input=Status.INVALID_ARGUMENT)
    first, other = DecodeError("x"), FunctionError("x")
    policy.apply(first)
    policy.apply(other)
    assert (first.status, DecodeError("y").status, other.status) == (
        Status.INVALID_ARGUMENT,
        Status.UNKNOWN,
        Status.UNKNOWN,
    )
    ErrorPolicy().apply(first)
    assert first.status is Status.UNKNOWN


def test_a_status_error_of_something_else_says_what_is_due():
    """A text in the place of the status, for example."""
    with pytest.raises(ValueError, match=r"needs a Status, such as Status.NOT_FOUND, and got 'NOT_FOUND'"):
        StatusError("NOT_FOUND", "there is none")  # type: ignore[arg-type]  # that is the mistake
