"""The functions of `answered_functions`, async, so the loop answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from invoker import Message, function
from tests.e2e.answered_functions import WAIT_S, chosen, fail


@function
async def whole(how: str) -> Message:
    """One value for HTTP."""
    fail(how, "fails")
    if how.startswith(("waits", "hesitates")):
        await asyncio.sleep(WAIT_S)
    return chosen(how, how)


@function
async def stream(how: str) -> AsyncIterator[Message]:
    """Two values for HTTP."""
    fail(how, "fails")
    if how.startswith("hesitates"):
        await asyncio.sleep(WAIT_S)
    yield chosen("1", how)
    fail(how, "breaks")
    if how.startswith("waits"):
        await asyncio.sleep(WAIT_S)
    yield Message("2")


@function
async def word(how: str) -> str:
    """One value for any wire."""
    fail(how, "fails")
    if how.startswith(("waits", "hesitates")):
        await asyncio.sleep(WAIT_S)
    return how


@function
async def words(how: str) -> AsyncIterator[str]:
    """Two values for any wire."""
    fail(how, "fails")
    if how.startswith("hesitates"):
        await asyncio.sleep(WAIT_S)
    yield "1"
    fail(how, "breaks")
    if how.startswith("waits"):
        await asyncio.sleep(WAIT_S)
    yield "2"
