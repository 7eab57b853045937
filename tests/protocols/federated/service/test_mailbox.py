"""Notices come in order, in a later turn, and all that are there at once."""

from __future__ import annotations

import asyncio

from invoker.protocols.federated.messages import Rejected, ReportTaken, Resume
from invoker.protocols.federated.service.mailbox import MailBox


async def test_notices_that_are_there_are_taken_together() -> None:
    """In the order in which they were put."""
    box = MailBox()
    box.put(Resume())
    box.put(ReportTaken())
    assert await box.next() == [Resume(), ReportTaken()]


async def test_who_waits_is_told_in_a_later_turn() -> None:
    """What is put behind it comes next."""
    box, told = MailBox(), list[object]()
    waiting = box.next()
    waiting.add_done_callback(lambda done: told.append(done.result()))
    box.put(Rejected("full"))
    box.put(ReportTaken())
    assert not told
    await asyncio.sleep(0)
    assert told == [(Rejected("full"),)]
    assert await box.next() == [ReportTaken()]


async def test_who_is_cancelled_loses_no_notice() -> None:
    """The next one who waits gets it."""
    box = MailBox()
    waiting = box.next()
    waiting.cancel()
    box.put(ReportTaken())
    assert await box.next() == [ReportTaken()]
