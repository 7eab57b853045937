"""The async form of `functions.square`."""

from __future__ import annotations


async def square(x: int) -> int:
    """Square a number."""
    return x * x
