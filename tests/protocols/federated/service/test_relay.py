"""Devices that come to another process than the leader of their population; here two servers of one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from invoker.server.server import Server
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, coordinator_of, rounds_of
from tests.protocols.federated.service.devices import Device, rounds


@asynccontextmanager
async def pair(serve: Serve, folder: Path, text: str, driver: str = "aio") -> AsyncIterator[tuple[Server, Server]]:
    """A leader, and another that shares its store."""
    store = f"sqlite:{folder / 'store.db'}"
    async with serve(text, store=store, grpc_driver=driver) as leader:
        for one in rounds_of(leader)._leaderships.values():
            assert await one.decided(5)
        async with serve(text, store=store, grpc_driver=driver) as other:
            yield leader, other


@pytest.mark.parametrize("driver", ["aio", "fast"])
async def test_devices_of_both_processes_feed_one_round(serve: Serve, tmp_path: Path, driver: str) -> None:
    """Whichever they come to; the next round starts from its result."""
    async with (
        pair(serve, tmp_path, rounds(clients=4), driver) as (leader, other),
        grpc.aio.insecure_channel(leader.grpc_address) as here,
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        for checkpoint in (b"100", b"110"):
            updates = (b"1", b"2", b"3", b"4")
            devices = [Device(channel) for channel in (here, there, here, there)]
            got = await asyncio.gather(*(one.run(given) for one, given in zip(devices, updates, strict=True)))
            assert got == [checkpoint] * 4
        assert not rounds_of(other).coordinator.status()


async def test_a_device_that_leaves_is_gone_at_the_leader_within_a_second(serve: Serve, tmp_path: Path) -> None:
    """As F-013 has it; and one that half-closes ends with OK (F-012)."""
    async with (
        pair(serve, tmp_path, rounds()) as (leader, other),
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        one, two = Device(there), Device(there)
        await one.ask()
        await two.ask()
        await asyncio.gather(one.decided(), two.decided())
        members = coordinator_of(leader)._members
        assert len(members) == 2
        one.call.cancel()
        await two.end()
        async with asyncio.timeout(1):
            while members:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
        assert not coordinator_of(other)._members


async def test_an_error_of_the_leader_reaches_the_device(serve: Serve, tmp_path: Path) -> None:
    """With its status and its text."""
    async with (
        pair(serve, tmp_path, rounds()) as (_, other),
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        device = Device(there, x_goog_population="rose")
        with pytest.raises(EOFError, match=r"INVALID_ARGUMENT: .*rose"):
            await device.ask()


async def test_a_large_update_passes_the_relay(serve: Serve, tmp_path: Path) -> None:
    """It is carried as it came."""
    async with (
        pair(serve, tmp_path, rounds(clients=1)) as (_, other),
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        assert await Device(there).run(b"1".rjust(3_000_000)) == b"100"
        assert await Device(there).run(b"1") == b"101"


async def test_when_the_leader_ends_the_other_goes_on_from_the_last_commit(serve: Serve, tmp_path: Path) -> None:
    """Devices that wait at the leader are rejected or told UNAVAILABLE; the next ones find the new leader."""
    text, store = rounds(), f"sqlite:{tmp_path / 'store.db'}"
    async with serve(text, store=store) as other, grpc.aio.insecure_channel(other.grpc_address) as there:
        first = rounds_of(other)._leaderships["iris"]
        assert await first.decided(5)
        assert first.is_here
        async with serve(text, store=store) as second, grpc.aio.insecure_channel(second.grpc_address) as here:
            assert await asyncio.gather(Device(here).run(b"1"), Device(there).run(b"2")) == [b"100"] * 2
            await first.stop()
            new = rounds_of(second)._leaderships["iris"]
            async with asyncio.timeout(5 * SLOW):
                while not new.is_here:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
            assert await asyncio.gather(Device(here).run(b"1"), Device(here).run(b"2")) == [b"103"] * 2


async def test_F014_a_silent_device_is_no_matter_of_the_relay(serve: Serve, tmp_path: Path) -> None:
    """Until it names its population it is a device of the process to which it came."""
    async with (
        pair(serve, tmp_path, rounds()) as (leader, other),
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        device = Device(there)
        await device.call.wait_for_connection()
        async with asyncio.timeout(2 * SLOW):
            while not coordinator_of(other)._members:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
        await device.ask()
        assert not coordinator_of(other)._members
        assert len(coordinator_of(leader)._members) == 1
        device.call.cancel()


async def test_F143_a_process_that_drains_brings_devices_to_a_leader_that_does_not(
    serve: Serve, tmp_path: Path
) -> None:
    """It follows nobody any more, but knows who led last; so nobody waits, and nobody is turned away."""
    async with (
        pair(serve, tmp_path, rounds()) as (leader, other),
        grpc.aio.insecure_channel(leader.grpc_address) as here,
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        device = Device(there)
        async with asyncio.timeout(5 * SLOW):
            while not coordinator_of(other)._members:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
            stopping = asyncio.ensure_future(other.stop(drain_s=20.0))
            while not rounds_of(other)._leaderships["iris"].has_left:  # noqa: ASYNC110 - nor is it of this
                await asyncio.sleep(0.01)
            assert await asyncio.gather(device.run(b"1"), Device(here).run(b"2")) == [b"100"] * 2
            assert await stopping


async def test_F143_a_leader_that_drains_hands_over_what_has_ended(serve: Serve, tmp_path: Path) -> None:
    """Populations without a running round at once, so that only their devices that wait are rejected."""
    async with (
        pair(serve, tmp_path, rounds("iris", "rose")) as (leader, other),
        grpc.aio.insecure_channel(leader.grpc_address) as here,
        grpc.aio.insecure_channel(other.grpc_address) as there,
    ):
        devices = [Device(here), Device(here)]
        assert await asyncio.gather(*(one.check_in() for one in devices)) == [True, True]
        stopping = asyncio.ensure_future(leader.stop(drain_s=10.0))
        async with asyncio.timeout(5 * SLOW):
            got = await asyncio.gather(Device(there, "rose").run(b"1"), Device(there, "rose").run(b"2"))
        assert got == [b"100"] * 2
        assert not stopping.done()
        assert [one.population for one in rounds_of(leader).coordinator.status()] == ["iris"]
        await asyncio.gather(*(one.report(b"5") for one in devices))
        assert await stopping
        assert await asyncio.gather(Device(there).run(b"1"), Device(there).run(b"2")) == [b"110"] * 2
