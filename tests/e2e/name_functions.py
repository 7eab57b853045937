"""Functions whose names are other ones in Python than in their source: a micro sign, a ligature, a letter of two."""

# ruff: noqa: PLC2401

from __future__ import annotations

from collections.abc import Iterator

from invoker import Context, function


@function(safe=True)
def µs(µ: float, ﬁne: float = 1.0) -> float:
    """A value and an option."""
    return µ * ﬁne


@function
def lines(µ: Iterator[str], ﬁne: str = "-") -> Iterator[str]:
    """A stream and an option."""
    for one in µ:
        yield one + ﬁne


@function
def pairs(µ: Iterator[str], Å: Iterator[str]) -> Iterator[str]:  # noqa: N803 - it is what Python makes of two signs
    """Two streams."""
    for one, other in zip(µ, Å, strict=False):
        yield one + other


@function
def many(*µ: int, ﬁne: int = 0) -> int:
    """Any number of inputs."""
    return sum(µ) + ﬁne


@function
async def outer(x: float, *, ctx: Context) -> float:
    """Calls another one by the names of its source."""
    return float(await ctx.call("µs", x, ﬁne=3.0))
