"""`Session` drives one raw session, waits no longer than it may, and tells what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from invoker_conformance.evergreen.actions import HI, replay, upper
from invoker_conformance.evergreen.frames import TEXT, A, F, K
from invoker_conformance.evergreen.rules import ACT, FRAG
from invoker_conformance.evergreen.session import Session
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Target, parse_addresses
from tests.conformance.evergreen.peer import Peer
from tests.conftest import SLOW


@asynccontextmanager
async def opened(*faults: str) -> AsyncIterator[Session]:
    """A session with a peer."""
    async with Peer(*faults) as peer:
        target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=0.5 * SLOW, message_bytes=1)
        async with Stage(target, "upper").session() as session:
            yield session
        await target.close()


async def test_values_and_ok() -> None:
    """What is expected is met."""
    async with opened() as session:
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        await session.half_close()
        await session.succeeds(r=["HI"])


async def test_a_session_begins_with_its_payload() -> None:
    """Another one is a failure."""
    for payload in (b"HI", b"HO"):
        async with opened() as session:
            await session.send(upper(), HI)
            if payload == b"HI":
                await session.begins(payload)
                continue
            with pytest.raises(Failure, match="met b'HI'; expected b'HO'"):
                await session.begins(payload)


async def test_other_values_fail_with_what_was_sent() -> None:
    """The failure tells sent, met and expected."""
    async with opened() as session:
        await session.all(upper(), HI)
        with pytest.raises(Failure) as caught:
            await session.succeeds(r=["HO"])
    assert caught.value.sent == "A(upper; text=p; out=r), F(p, 0, ., m 'text/plain', 'hi'), HC"
    assert caught.value.met == "['HI'] in 'r', then OK"
    assert caught.value.expected == "['HO']"


async def test_another_status_fails() -> None:
    """Code and words count, and what the detail mentions."""
    for fault, mentions in ((ACT, ()), (FRAG, ("nothing of it",))):
        async with opened() as session:
            await session.send(F("p", -1))
            with pytest.raises(Failure, match="Invalid Node Fragment: seq -1"):
                await session.fails(fault, *mentions)


async def test_an_output_without_its_end_is_no_success() -> None:
    """OK alone is not enough."""
    async with opened("no terminator") as session:
        await session.all(replay(), HI)
        with pytest.raises(Failure, match="OK with output 'r' incomplete"):
            await session.succeeds()


async def test_no_fragment_in_time_fails_and_the_fragment_is_not_lost() -> None:
    """A pending read survives the wait."""
    async with opened() as session:
        await session.send(upper())
        with pytest.raises(Failure, match=r"no fragment within 0\.1 s"):
            await session.fragment(0.1)
        await session.silent(0.05)
        await session.send(HI)
        assert (await session.fragment()).chunk_fragment.data == b"HI"
        with pytest.raises(Failure, match="neither a fragment nor the end"):
            await session.ends()


async def test_silence_is_broken_by_a_fragment_or_the_end() -> None:
    """Both are failures."""
    async with opened() as session:
        await session.send(upper(), HI)
        with pytest.raises(Failure, match="the fragment"):
            await session.silent(0.5)
    async with opened() as session:
        await session.send(F("p", -1))
        with pytest.raises(Failure, match="the session ended"):
            await session.silent(0.5)


async def test_fragments_of_one_message_are_judged_one_by_one() -> None:
    """An output is complete when its last fragment was asked for, not when it arrived."""
    async with opened() as session:
        await session.send(replay(), K("p", "a", "b"), F("a", m=TEXT, t="a"), F("b", m=TEXT, t="b"))
        await session.fragment()
        assert not session.outputs.has("r")
        assert await session.values("r") == ["ab"]


async def test_rules_hold_for_every_fragment_and_status() -> None:
    """They are caught wherever they come."""
    async with opened("sends metadata everywhere") as session:
        await session.send(A("drip", {}, {"out": "r"}))
        with pytest.raises(Failure, match="metadata on seq 0 only"):
            await session.values("r")
    async with opened("own prefix") as session:
        await session.send(F("p", -1))
        with pytest.raises(Failure, match="starts with 'Evergreen: '"):
            await session.ends()


async def test_sending_into_an_ended_session_is_told() -> None:
    """False, and the status is still there."""
    async with opened() as session:
        await session.send(F("p", -1))
        await session.fails(FRAG)
        assert not await session.send(HI)
        assert (await session.has_code(grpc.StatusCode.INVALID_ARGUMENT)).detail.startswith(FRAG.prefix)


async def test_long_sessions_are_told_in_short() -> None:
    """The first messages and a count."""
    async with opened() as session:
        assert session.sent == "nothing"
        await session.send(*(F(f"n{n}", m=TEXT, t="x") for n in range(20)))
        assert session.sent.endswith("... 8 more")
