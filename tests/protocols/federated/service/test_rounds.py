"""What one process keeps of its rounds, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import grpc.aio
import httpx
import pytest

from invoker.protocols.federated.service.rounds import Rounds
from invoker.transports.http.transport import HttpTransport
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, coordinator_of, rounds_of
from tests.protocols.federated.service.devices import Device, rounds


async def test_F083_a_restart_goes_on_from_the_last_committed_round(serve: Serve, tmp_path: Path) -> None:
    """Its number goes on, too; without a store it begins anew."""
    store = f"sqlite:{tmp_path / 'store.db'}"
    for checkpoint in (b"100", b"101"):
        async with (
            serve(rounds(clients=1), store=store) as server,
            grpc.aio.insecure_channel(server.grpc_address) as channel,
        ):
            assert await Device(channel).run(b"1") == checkpoint
            async with asyncio.timeout(2 * SLOW):
                while not coordinator_of(server).tally.records:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
    (record,) = coordinator_of(server).tally.records
    assert (record.number, record.outcome) == (2, "committed")


async def test_F143_a_drain_rejects_who_waits_and_lets_rounds_finish(serve: Serve, tmp_path: Path) -> None:
    """What they give is committed before the process ends."""
    store = f"sqlite:{tmp_path / 'store.db'}"
    async with (
        serve(rounds(tasks=("train",)), store=store) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        devices = [Device(channel) for _ in range(3)]
        for one in devices:
            await one.ask()
        assert await asyncio.gather(*(one.decided() for one in devices[:2])) == [True, True]
        stopping = asyncio.ensure_future(server.stop(drain_s=5.0))
        assert not await devices[2].decided()
        for one in devices[:2]:
            await one.tell(b"1")
        await asyncio.gather(*(one.thanked() for one in devices[:2]), devices[2].end())
        assert await stopping
    async with (
        serve(rounds(clients=1), store=store) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        assert await Device(channel).run(b"1") == b"102"


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("is_busy", [False, True])
async def test_F143_who_checks_in_during_a_drain_is_rejected_at_once(
    serve: Serve, tmp_path: Path, is_shared: bool, is_busy: bool
) -> None:
    """Its conversation was open before, or begins now; its population is idle, and another one may have a round."""
    store = {"store": f"sqlite:{tmp_path / 'store.db'}"} if is_shared else {}
    async with (
        serve(rounds("iris", "rose"), **store) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        assert await rounds_of(server)._leaderships["iris"].decided(5)
        running = [Device(channel, "rose") for _ in range(2 * is_busy)]
        assert all(await asyncio.gather(*(one.check_in() for one in running)))
        early = Device(channel)
        await early.call.wait_for_connection()
        async with asyncio.timeout(2 * SLOW):
            while len(coordinator_of(server)._members) < 1 + 2 * is_busy:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
        stopping = asyncio.ensure_future(server.stop(drain_s=20.0))
        async with asyncio.timeout(5 * SLOW):
            while not rounds_of(server)._leaderships["iris"].has_left:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        for one in (early, *([Device(channel)] if is_busy else [])):
            assert not await one.check_in()
            await one.end()
        assert asyncio.get_running_loop().time() - began < 1 * SLOW
        await asyncio.gather(*(one.report(b"1") for one in running))
        assert await stopping


async def test_F143_what_does_not_finish_in_time_is_cut(serve: Serve) -> None:
    """Its devices are told UNAVAILABLE, and what was committed stays."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        devices = [Device(channel) for _ in range(2)]
        assert await asyncio.gather(*(one.check_in() for one in devices)) == [True, True]
        assert not await server.stop(drain_s=0.1)
        for one in devices:
            with pytest.raises(EOFError, match="UNAVAILABLE"):
                await one.read()


async def test_F066_a_device_downloads_what_it_is_offered(serve: Serve) -> None:
    """At a path of the HTTP transport, which ends with the round."""
    text = rounds(clients=1)
    async with serve(text) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        await Device(channel).run(b"1")
        device = Device(channel)
        assert await device.check_in(supports_http_download=True)
        accepted = device.accepted
        assert not accepted.init_checkpoint
        port = server.http_address.rpartition(":")[2]
        uri = accepted.init_checkpoint_resource.uri
        assert uri.startswith(f"http://localhost:{port}/federated/")
        assert accepted.plan_resource.uri != uri
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(uri)).content == b"101"
            assert (await client.get(accepted.plan_resource.uri)).content.startswith(b"INVPLAN1\n")
            assert (await client.get(uri[:-1] + "x")).status_code == 404
            await device.report(b"1")
            async with asyncio.timeout(2 * SLOW):
                while (await client.get(uri)).status_code == 200:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)


async def test_F066_any_process_gives_what_a_device_is_offered(serve: Serve, tmp_path: Path) -> None:
    """A download may come to another one than the round does."""
    store = f"sqlite:{tmp_path / 'store.db'}"
    async with serve(rounds(clients=1), store=store) as leader:
        assert await rounds_of(leader)._leaderships["iris"].decided(5)
        async with (
            serve(rounds(clients=1), store=store) as other,
            grpc.aio.insecure_channel(other.grpc_address) as channel,
        ):
            device = Device(channel)
            assert await device.check_in(supports_http_download=True)
            path = device.accepted.init_checkpoint_resource.uri.partition("/federated/")[2]
            async with httpx.AsyncClient(trust_env=False) as client:
                for server in (leader, other):
                    answer = await client.get(f"http://{server.http_address}/federated/{path}")
                    assert answer.content == b"100"
            await device.report(b"1")


async def test_who_has_no_store_is_told_so_at_the_start(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Rounds end with the process then."""
    caplog.set_level(logging.INFO)
    async with serve(rounds()):
        assert "rounds are kept in memory" in caplog.text


async def test_F066_the_operator_says_where_devices_reach_the_downloads(serve: Serve) -> None:
    """Such as behind a proxy."""
    url = "https://rounds.example.org/fed"
    async with (
        serve(rounds(clients=1), federated_url=url) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        device = Device(channel)
        assert await device.check_in(supports_http_download=True)
        assert device.accepted.plan_resource.uri.startswith(f"{url}/federated/")
        await device.report(b"1")


async def test_F083_checkpoints_of_many_megabytes_are_committed(serve: Serve, tmp_path: Path) -> None:
    """Those of several tasks fit one store, and the loop is not held up by one of them."""
    text = rounds("iris", "rose", aggregate="grow", clients=1)
    async with serve(text, store=f"sqlite:{tmp_path / 'store.db'}") as server:
        lag = asyncio.ensure_future(longest_turn())
        async with grpc.aio.insecure_channel(server.grpc_address, [("grpc.max_receive_message_length", -1)]) as channel:
            for population in ("iris", "rose"):
                assert await Device(channel, population).run(b"60") == b"100"
            await until(lambda: len(coordinator_of(server).tally.records) == 2)
        lag.cancel()
        assert [one.outcome for one in coordinator_of(server).tally.records] == ["committed"] * 2
        sizes = [len(saved.checkpoint) for saved in rounds_of(server)._backing._saved.values()]
        assert sizes == [60_000_000] * 2


async def longest_turn() -> None:
    """Fails if the loop does not turn for long."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        await asyncio.sleep(0.01)
        assert loop.time() - began < 1.0 * SLOW, "the loop was held up"


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10 * SLOW):
        while not is_so():  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)


async def test_F065_without_an_http_transport_a_device_gets_everything_inline(serve: Serve) -> None:
    """Though it could download."""
    async with (
        serve(rounds(clients=1), http=False) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        device = Device(channel)
        assert await device.check_in(supports_http_download=True)
        assert device.accepted.init_checkpoint == b"100"
        assert device.accepted.plan.startswith(b"INVPLAN1\n")
        await device.report(b"1")


async def test_F066_plans_can_be_downloaded_although_the_http_transport_opens_late(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A population is opened once it is known where its downloads are."""
    start = HttpTransport.start

    async def late(transport: HttpTransport) -> str:
        await asyncio.sleep(0.1)
        return await start(transport)

    monkeypatch.setattr(HttpTransport, "start", late)
    async with serve(rounds(clients=1)) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        device = Device(channel)
        assert await device.check_in(supports_http_download=True)
        assert device.accepted.plan_resource.uri
        await device.report(b"1")


async def test_F005_a_population_is_known_before_its_rounds_begin(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port of a worker that takes the place of a killed one is open before; NOT_FOUND would last for hours."""
    begun, start = [], Rounds.start

    async def later(self: Rounds) -> None:
        begun.append(self.leadership("iris"))
        assert self.leadership("rose") is None
        await start(self)

    monkeypatch.setattr(Rounds, "start", later)
    async with serve(rounds(clients=1)) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        assert await Device(channel).run(b"1") == b"100"
        assert begun == [rounds_of(server).leadership("iris")]
        assert begun[0] is not None
