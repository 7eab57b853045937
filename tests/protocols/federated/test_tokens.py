"""Tests of `invoker.protocols.federated.tokens`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.federated.messages import Verdict
from invoker.protocols.federated.tokens import RetryTokens

KEY = b"sixteen bytes or more"


class Clock:
    """Says what it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_F055_a_token_is_early_then_in_its_window_then_absent() -> None:
    """The grace covers who was on the way when the window ended."""
    clock = Clock()
    tokens = RetryTokens(KEY, clock, grace_s=5.0)
    token, began = tokens.make("iris", 10.0, 20.0), clock.now
    seen = {}
    for after in (0.0, 9.9, 10.0, 20.0, 25.0, 25.1):
        clock.now = began + after
        seen[after] = tokens.judge("iris", token)
    assert seen == {
        0.0: Verdict.EARLY,
        9.9: Verdict.EARLY,
        10.0: Verdict.IN_WINDOW,
        20.0: Verdict.IN_WINDOW,
        25.0: Verdict.IN_WINDOW,
        25.1: Verdict.ABSENT,
    }


def test_F054_a_token_is_short_and_of_one_population_and_one_key() -> None:
    """Another population, or a process with another key, takes it for none."""
    clock = Clock()
    tokens = RetryTokens(KEY, clock)
    token = tokens.make("iris", 0.0, 60.0)
    assert len(token.encode()) == 44
    assert tokens.judge("iris", token) is Verdict.IN_WINDOW
    assert tokens.judge("iris2", token) is Verdict.ABSENT
    assert RetryTokens(KEY + b"2", clock).judge("iris", token) is Verdict.ABSENT
    assert RetryTokens(KEY, clock).judge("iris", token) is Verdict.IN_WINDOW


def test_F054_every_changed_sign_makes_it_absent() -> None:
    """Forged tokens are as none; nothing is raised."""
    tokens = RetryTokens(KEY, Clock())
    token = tokens.make("iris", 0.0, 60.0)
    for at in range(len(token)):
        other = "A" if token[at] != "A" else "B"
        assert tokens.judge("iris", token[:at] + other + token[at + 1 :]) is Verdict.ABSENT
    for forged in ("", token[:-1], token + "A", token[:-1] + "=", "é" * 44, "\ud800" * 44, "!" * 44):
        assert tokens.judge("iris", forged) is Verdict.ABSENT


@given(st.text(max_size=60), st.text(max_size=5))
def test_F054_whatever_comes_is_absent(token: str, population: str) -> None:
    """A client may send anything."""
    assert RetryTokens(KEY, Clock()).judge(population, token) is Verdict.ABSENT


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_F054_any_window_makes_a_token(least: float, most: float) -> None:
    """One that ends before it begins ends where it begins."""
    tokens = RetryTokens(KEY, Clock())
    assert len(tokens.make("iris", least, most)) == 44


def test_a_short_key_signs_nothing() -> None:
    """It could be guessed."""
    with pytest.raises(ValueError, match="at least 16"):
        RetryTokens(bytes(15), Clock())
    assert RetryTokens(bytes(16), Clock()).make("iris", 0.0, 1.0)
