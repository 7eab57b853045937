"""Devices of a scenario, against servers that do little."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance import Failure, NotProvided
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.target import Target, Unreachable, parse_addresses
from tests.conformance.federated.test_every_scenario import Agreeing, Refusing, serving


def target_at(address: str) -> Target:
    return Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.3, message_bytes=1000)


async def test_devices_join_one_round() -> None:
    """All at once; the checkpoint that they get is the population's."""
    async with serving(Agreeing()) as address:
        target = target_at(address)
        fleet = Fleet(target, "solo")
        assert await fleet.provides("solo")
        async with fleet.joined(3) as devices:
            assert [device.info.task_name for device in devices] == ["sum"] * 3
        assert await fleet.total() == 0
        with pytest.raises(Failure, match="met a checkpoint of 0; expected 1"):
            await fleet.is_total(1)
        await target.close()


class Thankless(Agreeing):
    """It never answers a report."""

    async def talk(self, asked: AsyncIterator[pb.ClientStreamMessage], context: Any) -> AsyncIterator[Any]:
        async for message in super().talk(asked, context):
            if not message.HasField("report_response"):
                yield message


async def test_a_report_is_taken_or_a_device_rejected() -> None:
    """A report that is not answered is a failure, and so is an acceptance where there must be a rejection."""
    async with serving(Agreeing()) as address:
        await Fleet(target := target_at(address), "solo").takes(b"1")
        with pytest.raises(Failure, match="met an acceptance"):
            await Fleet(target, "solo").rejects()
        await target.close()
    async with serving(Thankless()) as address:
        with pytest.raises(Failure, match="a further message"):
            await Fleet(target := target_at(address), "solo").takes(b"1")
        await target.close()


async def test_devices_that_nobody_takes() -> None:
    """A refusal is a failure; nobody at the address is no server."""
    async with serving(Refusing()) as address:
        target = target_at(address)
        with pytest.raises(Failure, match="refused"):
            async with Fleet(target, "solo").joined(2):
                pass
        await target.close()
    target = target_at("127.0.0.1:1")
    with pytest.raises(Unreachable):
        await Fleet(target, "solo").provides("solo")
    await target.close()


async def test_downloads_are_from_where_real_clients_take_them() -> None:
    """F-069: https is not judged here; a number for a host is wrong."""
    fleet = Fleet(target_at("127.0.0.1:1"), "solo")
    with pytest.raises(NotProvided):
        await fleet.download(pb.UriResource(uri="https://example.org/x"))
    for uri in ("http://127.0.0.1:80/x", "ftp://localhost:1/x", "http://localhost/x"):
        with pytest.raises(Failure, match="F-069"):
            await fleet.download(pb.UriResource(uri=uri))
