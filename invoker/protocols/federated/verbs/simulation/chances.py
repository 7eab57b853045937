"""The random choices of a simulation, all from one seed: durations, and where devices leave."""

from __future__ import annotations

import math
import re
from random import Random
from typing import Final

import msgspec

_WORDS: Final = "give SECONDS, LEAST..MOST, exp:MEAN or lognormal:MEDIAN,SIGMA"
_NUMBER: Final = r"(\d+(?:\.\d+)?|\.\d+)"


class Spread(msgspec.Struct, frozen=True):
    """A random distribution of times.

    Attributes:
        kind: ``uniform`` (from first to second), ``exp`` (first is the mean) or ``lognormal`` (first is the median,
            second is sigma).
        first: The first parameter of the kind, in seconds.
        second: The second parameter of the kind.
    """

    kind: str
    first: float
    second: float = 0.0

    def draw(self, dice: Random) -> float:
        """Draw one time, in seconds."""
        if self.kind == "uniform":
            return dice.uniform(self.first, self.second)
        if self.kind == "exp":
            return dice.expovariate(1 / self.first) if self.first else 0.0
        return self.first * math.exp(dice.gauss(0.0, self.second))


class Chances(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the random choices.

    Attributes:
        latency: The latency of frames, one way, in simulated seconds; drawn once for each conversation.
        train_s: How many simulated seconds a plan takes.
        dropout: The probability that a device leaves during a conversation.
        every_s: The average interval of a device's checkins, in seconds; 0: an interval that fills a round in half of
            its time limit.
        seed: The seed of all random choices.
    """

    latency: Spread
    train_s: Spread
    dropout: float = 0.0
    every_s: float = 0.0
    seed: int = 0


def read_spread(text: str) -> Spread:
    """Parse a distribution: ``2``, ``1..5``, ``exp:2`` or ``lognormal:2,0.5``.

    Raises:
        ValueError: The text is not a distribution.
    """
    if found := re.fullmatch(_NUMBER, text):
        return Spread("uniform", float(found[1]), float(found[1]))
    if (found := re.fullmatch(rf"{_NUMBER}\.\.{_NUMBER}", text)) and float(found[1]) <= float(found[2]):
        return Spread("uniform", float(found[1]), float(found[2]))
    if found := re.fullmatch(rf"exp:{_NUMBER}", text):
        return Spread("exp", float(found[1]))
    if found := re.fullmatch(rf"lognormal:{_NUMBER},{_NUMBER}", text):
        return Spread("lognormal", float(found[1]), float(found[2]))
    raise ValueError(f"{text!r} is not a distribution of times; {_WORDS}")
