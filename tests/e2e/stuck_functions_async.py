"""The same on the loop, which others still have; and one that does not even leave them that."""

from __future__ import annotations

import asyncio
import contextlib
import time

from invoker import function


@function
async def stuck(x: int) -> int:
    """Swallow every cancel."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
    return x


@function
async def blocks(x: int) -> int:
    """Block the loop."""
    time.sleep(600)  # noqa: ASYNC251 - that is what it is for
    return x
