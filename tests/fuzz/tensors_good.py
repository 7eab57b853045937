"""Calls of models that do nothing wrong, each of the function of its name; empty, or how the answer is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np

from invoker.client.graphpipe import AsyncGraphPipe


async def echo(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    shape = tuple(dice.integers(0, 5, dice.integers(0, 4)))
    sent = dice.integers(0, 200, shape).astype(dice.choice(["u1", "<i4", ">f4", "f8", "f2"]))
    found = await model.infer(sent)
    return "" if found.shape == sent.shape and found.tolist() == sent.tolist() else f"{found}, not {sent}"


async def pair(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    a, b = dice.random((dice.integers(0, 9), 3)), dice.integers(0, 99, 4)
    found = await model.infer({"b": b, "scale": 2.0, "a": a}, outputs=["count", "total"])
    is_right = found["count"].tolist() == [len(a)] and np.allclose(found["total"], a.sum(axis=1) * 2 + b.sum())
    return "" if is_right else str(found)


async def listed(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    sent = dice.integers(0, 99, (3, 2))
    found = await model.infer(sent)
    return "" if found.tolist() == sent.tolist() else str(found)


async def words(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    sent = "é" + "x" * int(dice.integers(0, 99))
    found = await model.infer(sent)
    return "" if found.tolist() == sent.upper().encode() else str(found)


async def rowed(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    sent = dice.random((dice.integers(1, 9), 2))
    found = await model.infer(sent)
    return "" if found.tolist() == (sent * 2).tolist() else str(found)


async def batched(model: AsyncGraphPipe, dice: np.random.Generator) -> str:
    """Several at once, of which some are spoilt: each gets its own."""
    sent = [dice.random((dice.integers(1, 4), 2)) * dice.choice([1, 1, 1, -1]) for _ in range(6)]
    several = await asyncio.gather(*map(model.infer, sent), return_exceptions=True)
    for one, found in zip(sent, several, strict=True):
        is_right = getattr(found, "code", 0) == 14 if (one < 0).any() else np.array_equal(found, one + 1)
        if not is_right:
            return f"{one} gave {found!r}"
    return ""


GOOD: Final[tuple[Callable[[AsyncGraphPipe, np.random.Generator], Awaitable[str]], ...]] = (
    echo,
    pair,
    listed,
    words,
    rowed,
    batched,
)
"""The first one can be asked at any transport."""
