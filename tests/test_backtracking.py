"""`invoker.backtracking`: patterns that double their time with each character are found, and no others."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import pytest

from invoker import Field
from invoker.backtracking import doubling_text
from invoker.body.prepare import prepare_function
from invoker.errors import SpecError
from tests.conftest import SLOW

DOUBLING = [
    r"^(a+)+$",
    r"^(\w+\s?)*$",
    r"(x+x+)+y",
    r"^(\d+)*$",
    r"^(a|aa)+$",
    r"^(a|a)*$",
    r"^([a-zA-Z]+)*\d$",
    r"^user-(a+)+$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^([a-zA-Z0-9]+[._-]?)+@x\.com$",
    r"^(?:(?:ab)+)+$",
]

STEADY = [
    r"^[a-z]+$",
    r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"\s+$",
    r"^(?:[a-z0-9-]+\.)+[a-z]{2,}$",
    r"^(a+b)+$",
    r"^(?:[A-Z][a-z]*\s)*$",
    r"^\s*\w+\s*=\s*\w+\s*$",
    r"^(?>a+)+$",
    r"^$",
    r"plain",
    r"^.*\.(png|jpe?g)$",
    r"^(#[0-9a-fA-F]{3}){1,2}$",
]


@pytest.mark.parametrize("pattern", DOUBLING)
def test_a_pattern_that_doubles_is_found_soon(pattern: str) -> None:
    """With a text that shows it; finding it takes no longer than a start can wait."""
    began = time.perf_counter()
    assert doubling_text(pattern)
    assert time.perf_counter() - began < 0.5 * SLOW


@pytest.mark.parametrize("pattern", STEADY)
def test_other_patterns_pass(pattern: str) -> None:
    """Those of mails, hosts, dates and ids among them; nothing is said of them, and it takes no time."""
    began = time.perf_counter()
    assert doubling_text(pattern) == ""
    assert time.perf_counter() - began < 0.5 * SLOW


def test_a_field_with_such_a_pattern_is_refused() -> None:
    """Where the author writes it, wherever it stands in an annotation."""
    with pytest.raises(SpecError, match=r"'\^\(c\+\)\+\$' takes twice as long with each repeat in a text such as 'c"):
        Field(pattern=r"^(c+)+$")


def test_a_mark_of_others_with_such_a_pattern_is_refused_with_its_function() -> None:
    """When the function is read."""

    def foreign(name: Annotated[str, msgspec.Meta(pattern=r"^(d+)+$")]) -> str: ...

    foreign.__annotations__["name"] = Annotated[str, msgspec.Meta(pattern=r"^(d+)+$")]
    with pytest.raises(SpecError, match=r"takes twice as long with each"):
        prepare_function(foreign)


def test_what_the_text_advises_passes() -> None:
    """A possessive inner repeat gives back nothing."""
    assert doubling_text(r"^(a++)+$") == ""
