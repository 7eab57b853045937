"""`invoker.fields.spelling`: which keys are slips."""

from __future__ import annotations

import pytest

from invoker.fields.spelling import is_slip, misspelt


@pytest.mark.parametrize(
    ("text", "meant", "is_one"),
    [
        ("nmae", "name", True), ("nane", "name", True), ("kye", "key", True), ("di", "id", True),
        ("paht", "path", True),
        ("key", "key", False), ("kex", "key", False), ("ref", "red", False), ("x", "y", False), ("nam", "name", False),
        ("eman", "name", False), ("nmea", "name", False), ("", "", False), ("v", "n", False), ("utm", "num", False),
    ],
)  # fmt: skip
def test_H201_slips_of_short_names(text: str, meant: str, is_one: bool) -> None:
    """Two neighbours that changed places, or one wrong letter of four; not what trackers call their keys."""
    assert is_slip(text, meant) is is_one


def test_H201_the_first_key_that_is_near_a_name() -> None:
    """Case and hyphens do not count; keys that are long, and those behind the first few, are not looked at."""
    assert misspelt(["zebra", "Max-Tokns"], ["name", "max_tokens"]) == ("Max-Tokns", "max_tokens")
    assert misspelt(["nmae"], []) is None
    assert misspelt([], ["name"]) is None
    assert misspelt(["temperature" * 6], ["temperature" * 6 + "s"]) is None
    others = [f"z{number}" for number in range(8)]
    assert misspelt([*others[1:], "nmae"], ["name"]) == ("nmae", "name")
    assert misspelt([*others, "nmae"], ["name"]) is None
