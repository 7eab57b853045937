"""Leaving a shared port: real sockets on loopback."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import ExitStack, closing

import pytest

from invoker.errors import ConfigError, StartupError
from invoker.server import ports as module
from invoker.server.ports import connections, leave, listeners, reserve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us")


def listening(port=0):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(128)
    sock.setblocking(False)
    return sock


@pytest.fixture
def stack():
    """Closes what a test opens."""
    with ExitStack() as made:
        yield made


def connected(stack, port, count=1):
    made = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(count)]
    return made[0] if count == 1 else made


def test_listeners_are_found_by_their_port(stack):
    """And nothing else that has to do with the port: a reserved one does not listen, a connection is none."""
    sock = stack.enter_context(listening())
    port = sock.getsockname()[1]
    reserved = stack.enter_context(socket.socket())
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", port))
    connected(stack, port)
    stack.enter_context(sock.accept()[0])
    found = [stack.enter_context(one) for one in listeners([port])]
    assert len(found) == 1
    assert listeners([1]) == []


def test_connections_are_counted_on_the_servers_side(stack):
    """Once each, until they are closed on both sides; a client's end is none of ours."""
    sock = stack.enter_context(listening())
    port = sock.getsockname()[1]
    assert connections([port]) == 0
    client = connected(stack, port)
    served, _ = sock.accept()
    with served.dup():
        assert connections([port]) == 1
    client.close()
    assert served.recv(1) == b""
    assert connections([port]) == 1
    served.close()
    assert connections([port]) == 0


async def test_whoever_waited_to_be_accepted_still_is(stack):
    """The accept queue is emptied by whoever serves the listener, before it closes."""
    sock = stack.enter_context(listening())
    port = sock.getsockname()[1]
    waiting = connected(stack, port, 3)
    leaving = asyncio.create_task(leave([port]))
    accepted = []
    for _ in waiting:
        await asyncio.sleep(module.HANDSHAKE_S)
        assert not leaving.done()
        accepted.append(stack.enter_context(sock.accept()[0]))
    assert await leaving
    with pytest.raises(ConnectionRefusedError):
        connected(stack, port)
    for client, served in zip(waiting, accepted, strict=True):
        served.sendall(b"hello")
        assert client.recv(5) == b"hello"


@pytest.mark.timeout(15)
async def test_new_connections_go_to_another_listener(stack):
    """Not one of many is refused while one of two listeners leaves; half of them knock twice."""
    first, second = stack.enter_context(listening()), None
    port = first.getsockname()[1]
    second = stack.enter_context(listening(port))
    loop = asyncio.get_running_loop()
    leaving = asyncio.create_task(leave([port]))
    await asyncio.sleep(module.HANDSHAKE_S / 4)
    leaving.cancel()  # the filters are on; this test closes one listener itself
    with pytest.raises(asyncio.CancelledError):
        await leaving
    # Both of ours are silent now; a third, without a filter, stands for the successor.
    third = stack.enter_context(listening(port))
    clients = [stack.enter_context(socket.socket()) for _ in range(20)]
    for client in clients:
        client.setblocking(False)
    knocking = [asyncio.create_task(loop.sock_connect(client, ("127.0.0.1", port))) for client in clients]
    await asyncio.sleep(0.1)
    first.close()
    second.close()
    await asyncio.gather(*knocking)
    for _ in clients:
        stack.enter_context((await loop.sock_accept(third))[0])


async def test_a_system_that_cannot_says_so(monkeypatch, tmp_path):
    """And touches nothing."""
    monkeypatch.setattr(module, "_DESCRIPTORS", tmp_path / "fd")
    with listening() as sock:
        assert not await leave([sock.getsockname()[1]])
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1


async def test_without_a_listener_there_is_nothing_to_leave():
    """It says that too."""
    assert not await leave([1])


def test_a_reserved_port_can_be_shared_and_refuses_clients():
    """Workers bind it too; nobody listens until one of them does."""
    with closing(reserve("127.0.0.1", 0, "gRPC", "GRPC_PORT")) as held, socket.socket() as worker:
        address = held.getsockname()
        assert address[1] > 0
        with socket.socket() as client:
            assert client.connect_ex(address) != 0
        worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        worker.bind(address)
        worker.listen()
        with socket.create_connection(address, timeout=5):
            worker.accept()[0].close()


@pytest.mark.parametrize("shared", [True, False])
def test_R006_a_port_that_is_taken_is_not_shared(shared):
    """Not even when whoever listens there would share it: that server is none of ours (R-006)."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(shared))
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StartupError, match=rf"cannot listen on 127.0.0.1:{port} for HTTP: .*in use; set PORT"):
            reserve("127.0.0.1", port, "HTTP", "PORT")


def test_a_system_without_shared_ports_is_told_so(monkeypatch):
    """Instead of a worker that cannot bind."""
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with pytest.raises(ConfigError, match="SO_REUSEPORT"):
        reserve("127.0.0.1", 0, "gRPC", "GRPC_PORT")
