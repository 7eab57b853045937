"""What a process has counted of its rounds, and what its log says of them: numbers of all devices, nothing of one."""

from __future__ import annotations

import asyncio
import logging
import re
from types import SimpleNamespace

import grpc.aio
import httpx
import pytest

from invoker.protocols.federated.metrics import round_families
from invoker.protocols.federated.service.counts import RoundCounts
from invoker.protocols.federated.tally import Tally
from invoker.telemetry.board import Board, Row
from invoker.telemetry.metrics import Metrics
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, coordinator_of
from tests.protocols.federated.service.devices import Device, rounds


def figures(text: str) -> dict[str, float]:
    """The metrics of rounds, by name and labels."""
    found = re.findall(r"^(invoker_round\S*?(?:\{.*\})?) (\S+)$", text, flags=re.MULTILINE)
    return {name: float(number) for name, number in found}


async def until_rounds(coordinator: object, many: int) -> None:
    async with asyncio.timeout(3 * SLOW):
        while len(coordinator.tally.records) < many:  # type: ignore[attr-defined]  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)


async def test_F141_metrics_tell_how_rounds_went(serve: Serve) -> None:
    """One that was committed, one of whose devices one fails and one leaves, and devices that come while it is full."""
    async with (
        serve(rounds(clients=2)) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
        httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client,
    ):
        await asyncio.gather(Device(channel).run(b"1"), Device(channel).run(b"2"))
        await until_rounds(coordinator_of(server), 1)
        fails, leaves, late = (Device(channel) for _ in range(3))
        assert await asyncio.gather(fails.check_in(), leaves.check_in()) == [True, True]
        assert not await late.check_in()
        await late.end()
        before = figures((await client.get("/metrics")).text)
        assert before['invoker_round_sessions{state="accepted"}'] == 2
        await fails.tell(b"", status=13)
        await fails.thanked()
        await leaves.end()
        await until_rounds(coordinator_of(server), 2)
        found = figures((await client.get("/metrics")).text)
    labels = 'population="iris",task="train"'
    expected = {
        f"invoker_round_accepted_total{{{labels}}}": 4,
        'invoker_round_rejected_total{population="iris",reason="full"}': 1,
        f'invoker_round_reports_total{{outcome="ok",{labels}}}': 2,
        f'invoker_round_reports_total{{outcome="failed",{labels}}}': 1,
        f'invoker_round_reports_total{{outcome="dropped",{labels}}}': 1,
        f'invoker_rounds_total{{outcome="committed",{labels}}}': 1,
        f'invoker_rounds_total{{outcome="failed",{labels}}}': 1,
        f'invoker_round_selections_total{{outcome="begun",{labels}}}': 2,
        f"invoker_round_duration_seconds_count{{{labels}}}": 2,
        'invoker_round_sessions{state="accepted"}': 0,
        "invoker_round_held_bytes": 0,
    }
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
async def test_F140_neither_log_nor_metrics_tell_of_one_device(
    serve: Serve, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    """Values that are planted wherever a device may bring them are nowhere, and neither is its address."""
    caplog.set_level(level)
    planted = ["7340031", "token-of-a-device", "measured-device", "client-7-of-9", "key-of-a-device"]
    update, token, measured, version, key = planted
    async with (
        serve(rounds(clients=1)) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
        httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client,
    ):
        device = Device(channel, x_goog_api_key=key, x_device=version)
        assert await device.check_in(retry_token=token, attestation_measurement=measured)
        peer = next(iter(coordinator_of(server)._members.values())).peer
        assert peer
        await device.report(update.encode())
        gone, bad = Device(channel), Device(channel)
        await until_rounds(coordinator_of(server), 1)
        await gone.check_in(retry_token=token)
        gone.call.cancel()
        await bad.tell(update.encode())
        with pytest.raises(EOFError):
            await bad.read()
        metrics = (await client.get("/metrics")).text
    told = "\n".join(f"{one.getMessage()} {one.__dict__}" for one in caplog.records if one.name.startswith("invoker"))
    assert "round ended" in told
    assert "round committed" in told
    for one in (*planted, "ipv4:127.0.0.1", "ipv6:"):
        assert one not in told
        assert one not in metrics


def test_F141_each_of_a_thousand_tasks_has_its_own_numbers() -> None:
    """By the board of the workers, too; what a device says of a population that there is not is `other`."""
    tasks = [(f"a population of a long name {number}", f"train/{number}") for number in range(1000)]
    tally = Tally()
    counts = RoundCounts(SimpleNamespace(tally=tally, held_bytes=0), tasks)  # type: ignore[arg-type]
    for number, task in enumerate(tasks, 1):
        tally.accepted[task] = number
        tally.reports[(*task, "ok")] = number
        tally.rejected[(task[0], "full")] = number
    tally.rejected[("said by a device", "unknown")] = 7
    board = Board.make()
    board.write(1, Row(1, numbers=counts.numbers()))
    text = Metrics(board.total, lambda: [round_families]).render()[1].decode()
    board.close()
    found = figures(text)
    for number, (population, task) in enumerate(tasks, 1):
        labels = f'population="{population}",task="{task}"'
        assert found[f"invoker_round_accepted_total{{{labels}}}"] == number
        assert found[f'invoker_round_reports_total{{outcome="ok",{labels}}}'] == number
        assert found[f'invoker_round_rejected_total{{population="{population}",reason="full"}}'] == number
    assert [name for name in found if "other" in name] == [
        'invoker_round_rejected_total{population="other",reason="unknown"}'
    ]
