"""`invoker.errors.wording`: the parts of texts."""

import logging
import time
import traceback

import pytest

from invoker.errors import FunctionError, InvokerError, LimitExceeded, Status, StatusError, reason_of
from invoker.errors.wording import (
    LONGEST,
    Place,
    clipped,
    describe,
    missing,
    nearest,
    quoted,
    suggestion,
    traceback_of,
    twice,
    unknown,
)
from invoker.telemetry.logs import JsonFormatter, TextFormatter
from tests.conftest import SLOW


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


def test_places_are_equal_by_kind_and_number():
    """Whatever they are called, so that a protocol finds its own words by them."""
    assert Place("input", 1, "x") == Place("input", 1, within=", part 2")
    assert len({Place("input", 1), Place("input", 1, "x"), Place("output", 1), Place("input", 2)}) == 3


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("input", 0, "x"), "input #0 'x'"),
        (Place("output", 10), "output #10"),
        (Place("output", 1, within=", part 2"), "output #1, part 2"),
        (Place("value"), "value"),
    ],
)
def test_a_place_is_said_by_kind_number_and_name(place, text):
    """In this order; what stands alone has no number."""
    assert str(place) == text


LONG = "é\n" * 200_000
"""Longer than all that may be told of several exceptions; a traceback takes a microsecond for each line of it."""


class Shouts(Exception):
    def __str__(self) -> str:
        return LONG


def caused(by: BaseException) -> Exception:
    made = ValueError("short")
    made.__cause__ = by
    return made


def noted(error: Exception) -> Exception:
    error.add_note(LONG)
    return error


ERRORS = [
    ValueError(LONG),
    KeyError(LONG),
    OSError(3, LONG),
    Shouts(),
    StatusError(Status.INVALID_ARGUMENT, LONG),
    FunctionError(LONG),
    LimitExceeded(LONG),
    ExceptionGroup("several", [ValueError(LONG), ValueError(LONG)]),
    caused(ValueError(LONG)),
    noted(ValueError("short")),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_R117_no_exception_says_more_than_its_beginning(error: Exception) -> None:
    """Not to a peer, nor in the log in either form, whatever class it is of and wherever the text stands in it."""
    assert len(describe(error)) < LONGEST + 100
    assert len(str(FunctionError(why=reason_of(error)))) < LONGEST + 200
    if isinstance(error, InvokerError):
        assert len(str(error)) < LONGEST + 100
    try:
        raise error
    except Exception as raised:
        began = time.thread_time()
        text = traceback_of(raised)
        record = logging.LogRecord("x", logging.WARNING, __file__, 1, "it raised", (), (type(raised), raised, None))
        lines = [one.format(record) for one in (TextFormatter(), JsonFormatter())]
        assert time.thread_time() - began < 0.1 * SLOW
    assert "Traceback (most recent call last)" in text
    assert max(map(len, (text, *lines))) < 16 * LONGEST * 4
    assert type(error).__name__ in text


def test_a_text_that_is_not_too_long_stays_as_it_is() -> None:
    """And one that is says how much is missing."""
    assert clipped("é" * LONGEST) == "é" * LONGEST
    assert clipped("é" * LONGEST + "abc") == "é" * LONGEST + "... (3 more characters)"
    error = ValueError("short")
    try:
        raise error
    except ValueError:
        assert traceback_of(error) == "".join(traceback.format_exception(error))


def test_E077_T037_what_is_wrong_with_an_input_is_said_in_one_sentence() -> None:
    """Of the function, or of something else; few names are listed, and of a long one its beginning is shown."""
    assert str(missing("f", "a")) == "'f' needs its input 'a', which is not given"
    assert twice("f", "a").said_of("action 1") == "action 1 is given its input 'a' twice"
    assert str(unknown("f", "b", ["a"], meant="a")) == "'f' has no input 'b'; did you mean 'a'?"
    assert str(unknown("f", "b", [])) == "'f' has no input 'b'; it has none"
    many = unknown("f", "b" * 300, [f"n{index}" for index in range(33)])
    assert str(many).endswith("...'; it has " + ", ".join(f"n{index}" for index in range(32)) + ", ...")
    assert (many.name, len(str(many)) < 400) == ("b" * 256, True)


def test_a_similar_name_is_suggested_or_those_that_exist_are_listed() -> None:
    """A text of the caller's own replaces the list."""
    assert suggestion("ab", ["abc", "x"]) == "did you mean 'abc'?"
    assert suggestion("q", ["abc", "x"]) == "there are abc, x"
    assert suggestion("q", []) == "there are none"
    assert suggestion("q", ["abc"], "it has no names") == "it has no names"


def test_nearest_word() -> None:
    """Or none, if no word looks like it, or the word is so long that comparing would take time."""
    assert nearest("cal", ["call", "chat"]) == "call"
    assert nearest("zebra", ["call", "chat"]) == ""
    assert nearest("c" * 257, ["c" * 257]) == ""
