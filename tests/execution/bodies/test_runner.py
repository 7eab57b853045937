"""What both runners share."""

from collections.abc import Iterator

import pytest

from invoker.author.spec import StreamSpec, Take
from invoker.core.policy import ErrorPolicy
from invoker.errors import (
    CallError,
    Cancelled,
    FunctionError,
    InputCancelled,
    Status,
    StatusError,
    StopInvocation,
)
from invoker.execution.bodies.runner import call_failed, production_failed, shape
from invoker.message import Message


def test_R119_the_kind_of_failure_is_that_of_the_moment():
    """A call that raises is a CallError, production a FunctionError; the cause is kept for the log."""
    cause = ValueError("boom")
    for translate, kind in ((call_failed, CallError), (production_failed, FunctionError)):
        made = translate(cause)
        assert type(made) is kind
        assert made.detail == "ValueError: boom"
        assert made.__cause__ is cause


class Rude(Exception):
    """Nobody can print it."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("debug", [False, True])
def test_T065_an_exception_that_cannot_be_printed_fails_as_any_other(debug):
    """Its text was looked at before it was known to have one, and the function counted as done."""
    for cause in (Rude(), ValueError(Rude()), ValueError(["generator already executing"])):
        made = production_failed(cause, debug=debug)
        assert type(made) is FunctionError
        assert type(cause).__name__ in made.detail


def test_errors_of_the_house_pass_as_they_are():
    """A chosen status, and the reason of a cancelled input."""
    chosen = StatusError(Status.NOT_FOUND, "x")
    assert production_failed(chosen) is chosen
    gone = Cancelled("gone")
    assert production_failed(InputCancelled(gone)) is gone


def test_R117_tracebacks_are_told_in_debug_only():
    """A peer sees type and message; with --debug also where."""
    with pytest.raises(ValueError, match="boom") as caught:
        raise ValueError("boom")
    assert "Traceback" not in str(production_failed(caught.value))
    assert "test_runner.py" in str(production_failed(caught.value, debug=True))


@pytest.mark.parametrize(("shows", "expected"), [("message", "KeyError: 'x'"), ("type", "KeyError"), ("none", "")])
def test_R117_a_setting_says_what_a_peer_sees(shows, expected):
    """Of a user's exception; a chosen status keeps its text, and the log its cause."""
    policy = ErrorPolicy(shows)
    cause = KeyError("x")
    for translate in (call_failed, production_failed):
        made = translate(cause)
        policy.apply(made)
        assert made.detail == expected
        assert made.__cause__ is cause
        chosen = translate(StatusError(Status.NOT_FOUND, "gone"))
        policy.apply(chosen)
        assert str(chosen) == "gone"
    assert str(made) == ": ".join(filter(None, ["Invoker: Unexpected Error", expected]))


def test_a_stopped_body_has_no_ending_of_its_own():
    """Whoever asks has made a mistake."""
    with pytest.raises(AssertionError):
        production_failed(StopInvocation())


def test_R040_an_input_gets_the_part_it_asked_for():
    """The whole message with the decoded payload, or the headers."""
    message = Message(b"5", {"X-A": "1"}, "text/plain")
    whole = shape(StreamSpec("x", int, Take.MESSAGE), message, 5)
    assert (whole.payload, whole.headers["x-a"], whole.media_type) == (5, "1", "text/plain")
    assert shape(StreamSpec("x", int, Take.HEADERS), message, None)["x-a"] == "1"
    assert shape(StreamSpec("x", bytes, Take.MESSAGE), Message(b""), b"").media_type == "application/octet-stream"


def test_two_readers_of_one_generator_are_told_of_tee() -> None:
    """Python's own words for it say nothing of outputs."""

    def reads_itself() -> Iterator[int]:
        yield next(one)

    one = reads_itself()
    with pytest.raises(ValueError, match="already executing") as caught:
        next(one)
    assert str(production_failed(caught.value)).endswith(
        "ValueError: generator already executing; two outputs read one generator at the same time, "
        "so give each a branch of its own by invoker.tee"
    )
    assert str(production_failed(ValueError("x"))).endswith("ValueError: x")
