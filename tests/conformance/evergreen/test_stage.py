"""`Stage`: sessions, marks, and whether an action is provided."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from invoker_conformance.evergreen.actions import HI, upper
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Target, Unreachable, parse_addresses
from tests.conformance.evergreen.peer import Peer
from tests.conftest import SLOW


@asynccontextmanager
async def staged(*faults: str) -> AsyncIterator[Stage]:
    """A stage before a peer."""
    async with Peer(*faults) as peer:
        target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=0.5 * SLOW, message_bytes=1)
        yield Stage(target, "upper")
        await target.close()


async def test_marks_are_read_and_watched() -> None:
    """Through the action marks; a failure tells the session under judgement."""
    async with staged() as stage:
        watch = await stage.watch("upper.calls")
        await stage.succeeds(upper(), HI, r=["HI"])
        await watch.stays("upper.calls", by=1)
        with pytest.raises(Failure) as caught:
            await watch.reaches("upper.calls", 5, within_s=0.1)
    assert caught.value.sent.startswith("A(upper; text=p; out=r)")


async def test_an_action_is_provided_or_not() -> None:
    """Told by the status; one that answers badly does provide it."""
    async with staged() as stage:
        assert await stage.provides("upper")
        assert not await stage.provides("teapot")
        await stage.survives()
    async with staged("own prefix") as stage:
        assert await stage.provides("upper")


async def test_nobody_at_the_address() -> None:
    """Is told as for riff."""
    target = Target(parse_addresses(["127.0.0.1:1"]), parse_addresses([]), timeout_s=0.3, message_bytes=1)
    with pytest.raises(Unreachable):
        await Stage(target, "upper").provides("upper")
    await target.close()
