"""`transports.http.outgoing`: what is long counts until the peer has taken it, and who takes nothing is ended."""

from __future__ import annotations

import asyncio

from invoker.core.budget import STEP_BYTES, ProcessBudget
from invoker.core.http import LongMessage
from invoker.transports.http.outgoing import Outgoing

LONG = LongMessage((bytes(4 * STEP_BYTES), bytes(4 * STEP_BYTES)))


def drained(out: Outgoing) -> int:
    """Bytes of all frames that wait."""
    size = 0
    while (frame := out.next()) is not None:
        size += len(frame)
    return size


async def test_long_messages_count_until_their_frames_are_made() -> None:
    """All that wait, each until it is through; short ones wait behind them."""
    memory = ProcessBudget()
    out = Outgoing(memory, lambda: None)
    assert not out
    for _ in range(3):
        out.put(LONG)
    out.put("short")
    assert out
    assert memory.held >= 24 * STEP_BYTES
    while memory.held >= 24 * STEP_BYTES:  # a share is given back once half of it is too much
        assert out.next() is not None
    assert memory.held >= 8 * STEP_BYTES
    assert drained(out) > 6 * STEP_BYTES
    assert not out
    assert memory.held == 0


async def test_a_large_message_counts_until_the_transport_has_room() -> None:
    """A small one does not count; several of them do together."""
    memory = ProcessBudget()
    out = Outgoing(memory, lambda: None)
    out.hand(STEP_BYTES)
    assert memory.held == 0
    out.hand(3 * STEP_BYTES)
    out.hand(3 * STEP_BYTES)
    assert memory.held >= 6 * STEP_BYTES
    out.clear()
    assert memory.held >= 6 * STEP_BYTES
    out.taken()
    assert memory.held == 0


async def test_what_is_left_of_a_conversation_counts_as_one_that_runs() -> None:
    """Until it is taken; nothing is left of one whose peer has all."""
    memory = ProcessBudget()
    out = Outgoing(memory, lambda: None)
    out.put(LONG)
    out.part()
    assert memory.unread == 1
    drained(out)
    assert memory.unread == 0
    out.part()
    assert memory.unread == 0


async def test_the_connection_ends_that_holds_most_when_memory_runs_out() -> None:
    """Its transport is told on the loop, whoever needed the memory."""
    memory, ended = ProcessBudget(20 * STEP_BYTES), asyncio.Event()
    one, other = Outgoing(memory, ended.set), Outgoing(memory, lambda: None)
    one.put(LONG)
    one.put(LONG)
    other.put(LONG)
    async with asyncio.timeout(5):
        await ended.wait()
    one.clear()
    other.clear()
    assert memory.held == 0
