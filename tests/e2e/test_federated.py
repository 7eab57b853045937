"""Rounds in real processes: what a kill leaves, in each phase of a round; several workers; what logs tell."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import grpc.aio
import pytest

from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.protocols.federated.service.devices import Device, rounds
from tests.serving import ROOT, start

pytestmark = pytest.mark.timeout(60)

OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


class Served:
    """A file of rounds with a store, which processes serve one after the other."""

    def __init__(self, folder: Path) -> None:
        self.rounds = folder / "rounds.toml"
        self.store = folder / "store.db"
        self.hold = folder / "hold"

    def process(self, *args: str) -> Process:
        env = {"TEST_HOLD": str(self.hold), "INVOKER_STORE": f"sqlite:{self.store}"}
        return Process(str(self.rounds), *args, env=env)

    @asynccontextmanager
    async def serving(self, process: Process) -> AsyncIterator[grpc.aio.Channel]:
        """A channel to a process, which is killed at the end if it was not before."""
        try:
            address, _ = await asyncio.to_thread(process.ready)
            async with grpc.aio.insecure_channel(address) as channel:
                yield channel
        finally:
            await asyncio.to_thread(process.close)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


async def kill(process: Process) -> None:
    process.send(signal.SIGKILL)
    await asyncio.to_thread(process.exit_code)


async def ended(*devices: Device) -> None:
    """The process of these devices is gone."""
    for one in devices:
        with pytest.raises(EOFError, match="UNAVAILABLE"):
            await one.read()


@pytest.mark.parametrize("phase", ["selecting", "accepted", "reporting", "aggregating"])
async def test_F083_a_killed_process_goes_on_from_the_last_committed_round(served: Served, phase: str) -> None:
    """Wherever the next round was; nothing of that is left, and devices that come again run it anew."""
    served.rounds.write_text(rounds(aggregate="slow"))
    first = served.process()
    async with served.serving(first) as channel:
        assert await asyncio.gather(Device(channel).run(b"1"), Device(channel).run(b"2")) == [b"100"] * 2
        one, two = Device(channel), Device(channel)
        await asyncio.to_thread(first.wait_for, "round committed")
        served.hold.touch()
        await one.ask()
        if phase != "selecting":
            assert await asyncio.gather(two.check_in(), one.decided()) == [True, True]
            assert one.accepted.init_checkpoint == b"103"
        if phase == "reporting":
            await one.tell(b"10")
            await one.read()  # it is answered when it is there, so what is read after the kill is the end
        if phase == "aggregating":
            await asyncio.gather(one.tell(b"10"), two.tell(b"20"))
            await asyncio.gather(one.read(), two.read())
        await kill(first)
        await ended(one)
    served.hold.unlink()
    async with served.serving(served.process()) as channel:
        for checkpoint in (b"103", b"110"):
            assert await asyncio.gather(Device(channel).run(b"3"), Device(channel).run(b"4")) == [checkpoint] * 2


@pytest.mark.timeout(120)
async def test_F083_a_leader_that_hangs_commits_nothing_when_it_comes_back(served: Served) -> None:
    """Its lease is over meanwhile. Another process leads, whether that has committed a round since or not."""
    served.rounds.write_text(rounds(aggregate="slow"))
    first, second = served.process(), served.process()
    served.hold.touch()
    async with served.serving(first) as channel, served.serving(second) as other:
        one, two = Device(channel), Device(channel)
        assert await asyncio.gather(one.check_in(), two.check_in()) == [True, True]
        await asyncio.gather(one.tell(b"1000"), two.tell(b"1000"))
        await asyncio.gather(one.read(), two.read())
        leader, follower = (first, second) if "last committed one" in first.log else (second, first)
        there = other if leader is first else channel
        leader.send(signal.SIGSTOP)
        try:
            async with asyncio.timeout(30 * SLOW):  # the lease takes 10 s to end
                while "starts from the last committed one" not in follower.log:  # noqa: ASYNC110 - a log tells nobody
                    await asyncio.sleep(0.1)
        finally:
            served.hold.unlink()
            leader.send(signal.SIGCONT)
        await asyncio.to_thread(leader.wait_for, "lost the rounds")
        for checkpoint in (b"100", b"103"):
            devices = [Device(there) for _ in range(2)]
            assert await asyncio.gather(devices[0].run(b"1"), devices[1].run(b"2")) == [checkpoint] * 2
        assert "round committed" not in leader.log


async def test_F083_a_kill_at_any_moment_leaves_a_whole_round(served: Served) -> None:
    """The last one was committed or it was not; what follows counts from there, and no round is counted twice."""
    served.rounds.write_text(rounds(clients=1))
    committed = 100
    for turn in range(6):
        process = served.process()
        async with served.serving(process) as channel:
            device = Device(channel)
            assert await device.check_in()
            found = int(device.accepted.init_checkpoint)
            assert found in (committed, committed + 1), "what was committed stays, and of the last round all or nothing"
            committed = found
            await device.tell(b"1")
            if turn % 2:
                with suppress(EOFError):
                    await device.read()
                await asyncio.sleep(0.001 * turn)
            await kill(process)


@asynccontextmanager
async def channels(address: str, many: int) -> AsyncIterator[list[grpc.aio.Channel]]:
    """So many connections, which the system spreads over the workers."""
    made = [grpc.aio.insecure_channel(address, OWN_CONNECTION) for _ in range(many)]
    try:
        yield made
    finally:
        for one in made:
            await one.close()


async def a_round(address: str, many: int = 8) -> tuple[int, int]:
    """Run a round with devices on connections of their own; the sum before it, and the process of the round before."""
    async with channels(address, many) as made:
        devices = [Device(one) for one in made]
        async with asyncio.timeout(20 * SLOW):
            got = await asyncio.gather(*(one.run(b"1") for one in devices))
        assert len({one.accepted.execution_phase_id for one in devices}) == 1
        assert len(set(got)) == 1
        total, _, pid = got[0].decode().partition(" ")
        return int(total), int(pid or 0)


async def test_F083_workers_share_a_population_also_when_its_leader_is_killed(tmp_path: Path) -> None:
    """Sessions on all of them feed one round; another worker goes on from the last committed one."""
    path = tmp_path / "rounds.toml"
    path.write_text(rounds(aggregate="where", clients=8, selection_s=10.0))
    with started(str(path), "--workers", "2") as process:
        address, http = await asyncio.to_thread(process.ready)
        await asyncio.to_thread(process.wait_for, "worker 2 is ready")
        assert (await a_round(address))[0] == 100
        total, leader = await a_round(address)
        assert total == 108
        await asyncio.to_thread(process.wait_for, "round committed", 2)
        os.kill(leader, signal.SIGKILL)
        await asyncio.to_thread(process.wait_for, "this process runs the rounds", 2)
        await asyncio.to_thread(process.wait_for, "worker 3 is ready")
        total, last = await a_round(address)
        assert (total, last) == (116, leader)
        total, last = await a_round(address)
        assert total == 124
        assert last != leader
        async with asyncio.timeout(5 * SLOW):
            while not await asyncio.to_thread(committed, http):  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.1)
        process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.exit_code) == 0


def committed(http: str) -> float:
    """How many rounds were committed, as any worker tells for all of them."""
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=5) as answer:
        found = re.search(
            r'^invoker_rounds_total\{outcome="committed",.*\} (\S+)$', answer.read().decode(), re.MULTILINE
        )
    return float(found[1]) if found else 0.0


async def test_rounds_leave_nothing_behind(tmp_path: Path) -> None:
    """No socket, and no file but the store; what a process that was killed has left is cleared away by the next one."""
    path = tmp_path / "rounds.toml"
    path.write_text(rounds(clients=1))
    env = {"TMPDIR": str(tmp_path / "tmp"), "INVOKER_STORE": f"sqlite:{tmp_path / 'store.db'}"}
    (tmp_path / "tmp").mkdir()
    with started(str(path), env=env) as process:
        await asyncio.to_thread(process.wait_for, "the next round starts")
        await kill(process)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    with started(str(path), env=env) as process:
        address, _ = await asyncio.to_thread(process.ready)
        assert list((tmp_path / "tmp").glob("invoker-rounds-*/door"))
        async with grpc.aio.insecure_channel(address) as channel:
            assert await Device(channel).run(b"1") == b"100"
        process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.exit_code) == 0
    assert not list((tmp_path / "tmp").iterdir())


@contextmanager
def trained_by(address: str, *args: str) -> Iterator[None]:
    """Devices that take part until the end of the block, or of their server."""
    words = ["device", "functions.federated:train_secure", "--server", address, "--population", "iris"]
    devices = start([*words, "--examples", "functions.federated:examples", *args], cwd=ROOT, env=os.environ)
    try:
        yield
    finally:
        devices.kill()
        devices.wait()
        assert devices.stderr is not None
        devices.stderr.close()


def test_F083_secure_rounds_go_on_after_kills_at_any_moment(served: Served) -> None:
    """What was told as committed is what the next process starts from, or the round after that."""
    pytest.importorskip("cryptography")
    text = (ROOT / "functions" / "iris_secagg.toml").read_text()
    for name, number in (("min", 4), ("goal", 6), ("max", 6)):
        text = re.sub(rf"{name}_clients = \d+", f"{name}_clients = {number}", text)
    text = text.replace("over_selection = 1.25", "over_selection = 1.0").replace("min_visible = 10", "min_visible = 4")
    served.rounds.write_text(re.sub(r"rounds = \d+", "rounds = 0", text))
    last = 0
    for delay_s in (0.0, 0.03, 0.11):
        process = served.process()
        try:
            address, _ = process.ready()
            found = number_of(process.wait_for("the next round starts from"))
            assert found in (last, last + 1)
            with trained_by(address, "--devices", "6", "--times", "100"):
                process.wait_for("round committed", 2)
                time.sleep(delay_s)
                process.send(signal.SIGKILL)
                process.exit_code()
            last = max(number_of(line) for line in process.lines if "round committed" in line)
            assert last >= found + 2
        finally:
            process.close()


def number_of(line: str) -> int:
    """The number of the round in a line of the log."""
    number: int = json.loads(line)["round"]
    return number
