"""The conversation of one device, behind a door: its place, its limits, its end."""

from __future__ import annotations

import asyncio

import grpc.aio
import pytest

from tests.services.federated.conftest import Serve, desk_of
from tests.services.federated.devices import Device, rounds


async def test_F139_sessions_are_bounded_in_all_and_for_each_address(serve: Serve) -> None:
    """The next one is told RESOURCE_EXHAUSTED; when one leaves, another may come."""
    for knobs in ({"federated_sessions": 2}, {"federated_peer_sessions": 2}):
        async with (
            serve(rounds(clients=3), **knobs) as server,
            grpc.aio.insecure_channel(server.grpc_address) as channel,
        ):
            one, two = Device(channel), Device(channel)
            await one.ask()
            await two.ask()
            with pytest.raises(EOFError, match="RESOURCE_EXHAUSTED"):
                await Device(channel).ask()
            one.call.cancel()
            async with asyncio.timeout(1):
                while len(desk_of(server)._members) > 1:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
            await Device(channel).ask()


async def test_F005_an_unknown_population_is_not_found(serve: Serve) -> None:
    """Before any ack."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        with pytest.raises(EOFError, match="NOT_FOUND"):
            await Device(channel, "rose").ask()


async def test_F007_a_wrong_key_is_refused(serve: Serve) -> None:
    """The right one is let in."""
    async with (
        serve(rounds(head='api_key = "secret"', clients=1)) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        with pytest.raises(EOFError, match="UNAUTHENTICATED"):
            await Device(channel, x_goog_api_key="wrong").ask()
        assert await Device(channel, x_goog_api_key="secret").run(b"1") == b"100"


async def test_a_first_message_that_is_no_checkin_is_refused(serve: Serve) -> None:
    """F-001; bytes that are no message are, too."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        device = Device(channel)
        await device.tell(b"1")
        with pytest.raises(EOFError, match="INVALID_ARGUMENT"):
            await device.read()
        assert not desk_of(server)._members


async def test_F015_a_client_that_has_its_answer_ends_with_ok(serve: Serve) -> None:
    """It half-closes behind it."""
    async with serve(rounds(clients=1)) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        device = Device(channel)
        assert await device.check_in()
        await device.report(b"1")
        assert not desk_of(server)._members
