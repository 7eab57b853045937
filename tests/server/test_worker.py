"""The worker's side: one that runs in this process, with its supervisor played by the test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from contextlib import suppress
from dataclasses import replace

import pytest

from invoker.cli.main import build
from invoker.client import RiffClient
from invoker.server import worker as module
from invoker.server.ports import reserve
from invoker.server.worker import Assignment, Worker, end_limit_s, work
from invoker.settings import Config
from invoker.telemetry import logs
from invoker.telemetry.board import Board, Row

CONFIG = Config(host="127.0.0.1", workers=2, connection_age_s=5.0, drain_s=1.0)


@pytest.fixture
def board():
    """The shared one."""
    made = Board.make()
    yield made
    made.close()


@pytest.fixture
def ports():
    """Both, reserved."""
    held = [reserve("127.0.0.1", 0, "a transport", "A_PORT") for _ in range(2)]
    yield [port.getsockname()[1] for port in held]
    for port in held:
        port.close()


@pytest.fixture
def link():
    """The supervisor's end, and the worker's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def told(ours, what):
    """What the worker says next about this."""
    loop = asyncio.get_running_loop()
    data = b""
    while f'"{what}"'.encode() not in data or not data.endswith(b"\n"):
        data += await loop.sock_recv(ours, 4096)
    return next(said[what] for line in data.splitlines() if what in (said := json.loads(line)))


@pytest.fixture
async def serving(board, ports, link):
    """A ready worker, and the task that runs it."""
    place = Assignment(3, 2, -1, board.handle, *ports)
    config = replace(CONFIG, grpc_port=ports[0], port=ports[1])
    one = Worker(build(config, "functions.square:square"), place, link[1])
    running = asyncio.create_task(one.run())
    yield one, running, await told(link[0], "ready")
    one._signals.begin(drain=True)
    await running


async def squared(port, value):
    """What the function gives over gRPC."""
    async with RiffClient(f"127.0.0.1:{port}") as client:
        call = client.invoke([[value]], accept="application/json", content_type="application/json")
        return [out.value async for out in call]


def test_a_place_survives_the_environment():
    """And is taken out of it, so that programs that the function starts are no workers."""
    place = Assignment(3, 2, 7, 8, 8081, 8080)
    environment = place.environment()
    assert environment.items() > dict(os.environ).items()
    assert Assignment.taken(environment) == place
    assert environment == dict(os.environ)


def test_the_limit_of_an_end_is_above_all_of_its_parts():
    """A worker that is about to end in peace must not be killed."""
    config = Config(drain_s=100.0, grace_s=20.0, hook_timeout_s=3.0)
    assert end_limit_s(config) > 123


async def test_the_supervisor_hears_how_long_the_functions_may_take_to_end(board, ports, link, tmp_path, monkeypatch):
    """A worker that a function blocks ends itself, after its stop hooks; it must not be killed before (R-028)."""
    hooks = "".join(
        f"@function(destroy=print)\nasync def f{index}(n: int) -> int:\n    return n\n" for index in range(20)
    )
    (tmp_path / "slow_to_end.py").write_text(f"from invoker import function\n{hooks}")
    monkeypatch.syspath_prepend(tmp_path)
    config = replace(CONFIG, grpc_port=ports[0], port=ports[1], hook_timeout_s=10.0)
    server = build(config, "slow_to_end")
    one = Worker(server, Assignment(3, 2, -1, board.handle, *ports), link[1])
    running = asyncio.create_task(one.run())
    limit_s = await told(link[0], "end_limit_s")
    one._signals.begin(drain=True)
    await running
    assert server.end_limit_s > 20 * 10.0 > end_limit_s(config)
    assert limit_s > server.end_limit_s + 20 * 10.0


async def test_it_serves_on_the_ports_of_its_place(serving, ports):
    """Which others may serve, too."""
    _, _, line = serving
    assert f"grpc=127.0.0.1:{ports[0]} http=127.0.0.1:{ports[1]} (set by INVOKER_HOST; 2 workers)\n" in line
    assert await squared(ports[0], 7) == [49]


@pytest.mark.parametrize("order", [b"drain\n", b""])
async def test_it_drains_when_told_or_left_alone(serving, ports, link, order, caplog):
    """An order, or the end of the supervisor, which is told; then nobody listens any more."""
    _, running, _ = serving
    if order:
        link[0].send(order)
    else:
        link[0].close()
    assert await running == 0
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", ports[0])) != 0
    assert ("the supervisor is gone" in caplog.text) is not bool(order)


async def test_it_drains_on_a_signal_of_its_own(serving):
    """Somebody ends one worker by hand; however often, it leaves in peace."""
    _, running, _ = serving
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def test_a_retiring_worker_serves_who_is_connected_and_nobody_else(serving, ports, link):
    """Until the client is gone, or the age of all connections has passed."""
    _, running, _ = serving
    async with RiffClient(f"127.0.0.1:{ports[0]}") as client:

        async def value(x):
            call = client.invoke([[x]], accept="application/json", content_type="application/json")
            return [out.value async for out in call]

        assert await value(2) == [4]
        link[0].send(b"retire\n")
        while True:
            with socket.socket() as knock, suppress(TimeoutError):
                knock.setblocking(False)
                try:
                    async with asyncio.timeout(0.1):  # while it leaves, nobody answers
                        await asyncio.get_running_loop().sock_connect(knock, ("127.0.0.1", ports[0]))
                except ConnectionRefusedError:
                    break
        assert not running.done()
        assert await value(3) == [9]
    assert await running == 0


async def test_a_drain_ends_the_retirement(serving, ports, link, monkeypatch):
    """The supervisor stops: nobody waits for clients to leave."""
    one, running, _ = serving
    left = asyncio.Event()

    async def leave(ports, closing):
        left.set()
        return True

    monkeypatch.setattr(module, "leave", leave)
    monkeypatch.setattr(module, "connections", lambda ports: 1)
    one._server.config = replace(CONFIG, connection_age_s=1000.0)
    link[0].send(b"retire\n")
    await left.wait()
    link[0].send(b"drain\n")
    assert await running == 0


@pytest.mark.parametrize(("age_s", "drain_s", "limit_s"), [(0.1, 1000.0, 1.11), (0.0, 1.5, 1.5)])
async def test_clients_that_never_leave_do_not_keep_it(serving, link, monkeypatch, age_s, drain_s, limit_s):
    """They have as long as gRPC lets a connection live, and a second; where connections have no age, the drain time."""
    one, running, _ = serving

    async def leave(ports, closing):
        return True

    looks = []
    monkeypatch.setattr(module, "leave", leave)
    monkeypatch.setattr(module, "connections", lambda ports: looks.append(loop.time()) or 1)
    loop = asyncio.get_running_loop()
    one._server.config = replace(CONFIG, connection_age_s=age_s, drain_s=drain_s)
    began_s = loop.time()
    link[0].send(b"retire\n")
    assert await running == 0
    assert len(looks) > 1
    assert loop.time() - began_s >= limit_s


async def test_a_system_that_cannot_leave_a_port_is_told_of(serving, link, monkeypatch, caplog):
    """The worker ends, though some calls may fail."""
    _, running, _ = serving

    async def leave(ports, closing):
        return False

    monkeypatch.setattr(module, "leave", leave)
    link[0].send(b"retire\n")
    assert await running == 0
    assert "cannot stop listening" in caplog.text


async def test_its_numbers_are_those_of_all(serving, board, ports):
    """It writes its own row, beats, and tells the sum."""
    one, running, _ = serving
    await squared(ports[0], 2)
    assert one._sum().counters["invoker_frames_in"] == 1
    board.write(1, Row(1, numbers=replace(board.read()[2].numbers)))
    assert one._sum().counters["invoker_frames_in"] == 2
    beat = board.read()[2].beat
    for _ in range(100):
        await asyncio.sleep(0.05)
        if board.read()[2].beat > beat:
            break
    assert board.read()[2].beat > beat
    assert board.read()[2].worker == 3
    one._signals.begin(drain=True)
    await running
    assert board.read()[2].numbers.gauges["invoker_running_invocations"] == 0


def test_a_start_that_fails_is_told_to_the_supervisor(board, ports, link, monkeypatch):
    """With the exit code that one process would have."""
    monkeypatch.setattr(logs, "LABELS", {})
    ours, theirs = link
    place = Assignment(3, 2, theirs.detach(), board.handle, *ports)
    code = work(place, CONFIG, lambda config: build(config, "functions.square:squar"), lambda *_: None)
    said = json.loads(ours.recv(4096))
    assert code == said["code"] == 1
    assert "did you mean 'square'" in said["failed"]
    assert logs.LABELS == {"worker": 3}
