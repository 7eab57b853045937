"""`invoker.wording`: the parts of texts."""

import pytest

from invoker.wording import Place, describe, quoted


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
