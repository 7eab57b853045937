"""`Call` drives one raw call, waits no longer than it may, and tells what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from invoker_conformance.riff.call import Call
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import PV, UMT
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Target, parse_addresses
from tests.conformance.faulty import Peer
from tests.conftest import SLOW


@asynccontextmanager
async def probing(function: str, *faults: str) -> AsyncIterator[Probe]:
    """A probe of a peer's function."""
    async with Peer(*faults) as peer:
        target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=0.5 * SLOW, message_bytes=1)
        yield Probe(target, function)
        await target.close()


@asynccontextmanager
async def calling(function: str, *faults: str) -> AsyncIterator[Call]:
    """A call of a peer's function."""
    async with probing(function, *faults) as probe, probe.call() as call:
        yield call


async def test_values_and_ok() -> None:
    """What is expected is met."""
    async with calling("square") as call:
        await call.start()
        await call.json(2)
        assert await call.value() == 4
        await call.json(3)
        await call.half_close()
        await call.succeeds(b"9")


async def test_other_values_fail_with_what_was_sent() -> None:
    """The failure tells sent, met and expected."""
    async with calling("square") as call:
        await call.start()
        await call.json(2)
        await call.half_close()
        with pytest.raises(Failure) as caught:
            await call.gives(5)
    assert caught.value.sent == "S(application/json; in; out), D(0, 'application/json', '2'), half-close"
    assert caught.value.met == "1 frame [(0, 'application/json', '4')], then OK ''"
    assert caught.value.expected == "the JSON values [5], then OK"


async def test_another_fault_fails() -> None:
    """Code and prefix count, and what the detail mentions."""
    async with calling("square") as call:
        await call.json(1)
        with pytest.raises(Failure, match="expected INVALID_ARGUMENT"):
            await call.fails(UMT)
    async with calling("square") as call:
        await call.json(1)
        with pytest.raises(Failure, match="mentioning 'nothing of it'"):
            await call.fails(PV, "nothing of it")


async def test_no_frame_in_time_fails_and_the_frame_is_not_lost() -> None:
    """A pending read survives the wait."""
    async with calling("square") as call:
        await call.start()
        with pytest.raises(Failure, match=r"no frame within 0\.1 s"):
            await call.frame(0.1)
        await call.silent(0.05)
        await call.json(3)
        assert await call.value() == 9
        with pytest.raises(Failure, match="neither a frame nor the end"):
            await call.rest()


async def test_silence_is_broken_by_a_frame_or_the_end() -> None:
    """Both are failures."""
    async with calling("greeting") as call:
        await call.start()
        with pytest.raises(Failure, match="hello"):
            await call.silent(0.5)
    async with calling("square") as call:
        await call.half_close()
        with pytest.raises(Failure, match="the call ended"):
            await call.silent(0.5)


async def test_a_call_begins_with_its_values() -> None:
    """One after the other, while the call goes on; another value is a failure."""
    async with calling("square") as call:
        await call.start()
        await call.json(2, 3, 4)
        await call.begins(4, 9)
        with pytest.raises(Failure, match=r"met \[16\]; expected \[25\]"):
            await call.begins(25)


async def test_sending_into_an_ended_call_is_told() -> None:
    """False, and the status is still there."""
    async with calling("square") as call:
        await call.half_close()
        await call.fails(PV)
        assert not await call.json(1)
        assert (await call.has_code(grpc.StatusCode.UNKNOWN)).detail.startswith(PV.prefix)


async def test_rules_hold_for_every_frame() -> None:
    """A wildcard type is caught wherever it comes."""
    async with calling("square", "wildcard type") as call:
        await call.start()
        await call.json(2)
        with pytest.raises(Failure, match="a concrete contentType"):
            await call.frame()


async def test_long_conversations_are_told_in_short() -> None:
    """The first signals and a count."""
    async with calling("square") as call:
        assert call.sent == "nothing"
        await call.start()
        await call.json(*range(20))
        assert call.sent.endswith("'6'), ... 13 more")
