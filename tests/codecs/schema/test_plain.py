"""`invoker.codecs.schema.plain`: values as JSON has them."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from invoker.codecs.schema.plain import NOTHING, plain_value


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int = 1


class Wild:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (None, None),
        (1.5, 1.5),
        ((1, "a"), [1, "a"]),
        ({1: 2}, {"1": 2}),
        (Color.RED, "red"),
        (Point(), {"x": 1}),
        (b"\x00", "AA=="),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (np.float32(1.5), 1.5),
        (np.array([1, 2]), [1, 2]),
    ],
)
def test_H065_values_become_plain(value: Any, made: Any) -> None:
    """As the JSON codec writes them."""
    assert plain_value(value) == made
    assert type(plain_value(value)) is type(made)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], object(), Point, 1j, "x" * 5000, range(10**9)])
def test_H065_what_json_does_not_have_is_nothing(value: Any) -> None:
    """So is what is too long to be shown, and what raises."""
    assert plain_value(value) is NOTHING


def test_H065_a_value_that_raises_is_nothing() -> None:
    """Code of the author's runs when the value is read."""
    assert plain_value(Wild()) is NOTHING
