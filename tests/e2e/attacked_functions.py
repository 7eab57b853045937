"""One function in both forms; a value of a thousand and more makes it take its time."""

from __future__ import annotations

import asyncio
import time


def work(x: int) -> int:
    """Square a number; from 1000 on, after so many milliseconds beyond a thousand."""
    if x >= 1000:
        time.sleep((x - 1000) / 1000)
    return x * x


async def awork(x: int) -> int:
    """Do the same on the loop."""
    if x >= 1000:
        await asyncio.sleep((x - 1000) / 1000)
    return x * x


def pour(x: int) -> bytes:
    """Give so many KiB."""
    return b"x" * (x * 1024)


async def apour(x: int) -> bytes:
    """Do the same on the loop."""
    return b"x" * (x * 1024)
