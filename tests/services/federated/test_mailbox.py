"""Notices come in order, in a later turn, and all that are there at once."""

from __future__ import annotations

import asyncio

from invoker.protocols.federated.words import Rejected, ReportTaken, Resume
from invoker.services.federated.mailbox import MailBox


async def test_notices_that_are_there_are_taken_together() -> None:
    """In the order in which they were put."""
    box = MailBox()
    box.put(Resume())
    box.put(ReportTaken())
    assert await box.next() == [Resume(), ReportTaken()]


async def test_who_waits_is_told_in_a_later_turn() -> None:
    """What is put in the same turn comes with it."""
    box = MailBox()
    waiting = asyncio.ensure_future(box.next())
    await asyncio.sleep(0)
    box.put(Rejected("full"))
    box.put(ReportTaken())
    assert not waiting.done()
    assert await waiting == [Rejected("full"), ReportTaken()]


async def test_who_is_cancelled_loses_no_notice() -> None:
    """The next one who waits gets it."""
    box = MailBox()
    waiting = asyncio.ensure_future(box.next())
    await asyncio.sleep(0)
    waiting.cancel()
    box.put(ReportTaken())
    await asyncio.sleep(0)
    assert waiting.cancelled()
    assert await box.next() == [ReportTaken()]
