"""`connection`: what a client of a bare socket may take, and how connections end."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import struct
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.client import AsyncGraphPipe, GraphPipeError
from invoker.errors import StartupError
from invoker.protocols.graphpipe.service import connection as module
from invoker.tensors import Code
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, values
from tests.protocols.graphpipe.service.places import REQUEST, Place, double, opened
from tests.protocols.graphpipe.service.test_framed import Held, framed, read_one
from tests.transports.models import exchanged, inferring
from tests.transports.served import until


@pytest.fixture(params=["tcp", "unix"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Of a Unix socket; None: TCP is used."""
    return tmp_path / "s" if request.param == "unix" else None


@pytest.mark.parametrize("count", [1, 2, 3, 4, 50])
async def test_G014_a_message_that_has_begun_has_to_come(count: int, path: Path | None) -> None:
    """Its length, too; a client that has not begun one may take its time, and is still served afterwards."""
    async with opened(path, body_s=0.05) as place:
        idle, ask_idle = await place.connect()
        assert values(await exchanged(idle, ask_idle, REQUEST)) == [[[2.0, 4.0]]]
        reader, writer = await place.connect()
        writer.write(framed(REQUEST)[:count])
        assert await reader.read() == b""
        assert values(await exchanged(idle, ask_idle, REQUEST)) == [[[2.0, 4.0]]]


async def test_more_connections_than_there_may_be_are_refused(path: Path | None) -> None:
    """With E16, whatever they were going to ask; who leaves makes room."""
    async with opened(path, connections=2) as place:
        first, ask_first = await place.connect()
        second, ask_second = await place.connect()
        assert values(await exchanged(second, ask_second, REQUEST)) == [[[2.0, 4.0]]]
        for _ in range(2):
            reader, writer = await place.connect()
            writer.write(framed(METADATA_REQUEST))
            assert code_of(await read_one(reader)) is Code.OVERLOADED
            assert await reader.read() == b""
            writer.close()
            await until(lambda: place.count == 2)
        assert values(await exchanged(first, ask_first, REQUEST)) == [[[2.0, 4.0]]]
        ask_first.transport.abort()
        await until(lambda: place.count == 1)
        third, ask_third = await place.connect()
        assert values(await exchanged(third, ask_third, REQUEST)) == [[[2.0, 4.0]]]


async def test_G017_a_refused_connection_ends_in_peace(path: Path | None) -> None:
    """Also when its client closes as soon as it has been told."""
    async with opened(path) as place:
        reader, writer = await place.connect()
        writer.write(bytes(4))
        assert code_of(await read_one(reader)) is Code.MALFORMED
        writer.close()
        await until(lambda: place.count == 0)


class Body(bytearray):
    """A message that can be watched."""


async def test_G103_an_idle_connection_keeps_nothing_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of its response, which is a view on it here: clients may be idle for hours."""
    seen: list[weakref.ref[Body]] = []

    def made() -> Body:
        body = Body()
        seen.append(weakref.ref(body))
        return body

    def echo(x: NDArray[Any]) -> NDArray[Any]:
        return x

    monkeypatch.setattr(module, "bytearray", made, raising=False)
    gc.collect()
    gc.disable()
    try:
        async with opened(None, echo) as place:
            reader, writer = await place.connect()
            for _ in range(2):
                await exchanged(reader, writer, ask(np.zeros(300_000, "f4")))
            assert len(seen) >= 4
            await until(lambda: all(one() is None for one in seen))
            assert place.count == 1
    finally:
        gc.enable()


async def test_idle_peers_of_tcp_are_asked_whether_they_live() -> None:
    """Else one whose machine is gone would keep its place for hours."""
    async with opened(None) as place:
        reader, writer = await place.connect()
        await exchanged(reader, writer, REQUEST)
        (connection,) = place.transport._connections
        accepted = connection._writer.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_G104_GT59_draining_refuses_new_requests_and_ends_running_ones(path: Path | None) -> None:
    """E20 on connections that are there and on new ones; when the transport stops, all of them end."""
    held = Held()
    async with opened(path, held.run) as place:
        running, ask_running = await place.connect()
        idle, ask_idle = await place.connect()
        ask_running.write(framed(REQUEST))
        await until(lambda: held.calls == 1)
        place.inferences.driver.engine.is_draining = True
        new, ask_new = await place.connect()
        for reader, writer in ((idle, ask_idle), (new, ask_new)):
            assert code_of(await exchanged(reader, writer, REQUEST)) is Code.NOT_READY
        held.go.set()
        assert values(await read_one(running)) == [[[1.0, 2.0]]]
        assert held.calls == 1
        await place.transport.stop(5)
        for reader in (running, idle, new):
            assert await reader.read() == b""


def reset(writer: asyncio.StreamWriter) -> None:
    """Leave without a farewell."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("count", [1, 3, 20])
async def test_G013_a_client_that_resets_is_gone(count: int, path: Path | None) -> None:
    """However many requests it has sent on: reading has paused, so that nobody would be told."""
    held = Held()
    async with opened(path, held.run) as place:
        _, writer = await place.connect()
        writer.write(framed(REQUEST) * count)
        await until(lambda: held.calls == 1)
        await until(lambda: next(iter(place.transport._connections))._begun == min(count, 3))
        reset(writer)
        await held.left.wait()
        await until(lambda: place.count == 0)
        assert held.calls == 1


async def test_G013_a_client_that_has_sent_its_last_request_still_waits(path: Path | None) -> None:
    """It is answered; unless it goes all the same."""
    held = Held()
    with patch("invoker.protocols.graphpipe.service.connection._LOOK_S", 0.01):
        async with opened(path, held.run) as place:
            reader, writer = await place.connect()
            _, other = await place.connect()
            for one in (writer, other):
                one.write(framed(REQUEST))
                one.write_eof()
            await until(lambda: held.calls == 2)
            reset(other)
            await held.left.wait()
            await until(lambda: place.count == 1)
            held.go.set()
            assert values(await read_one(reader)) == [[[1.0, 2.0]]]
            assert await reader.read() == b""


@pytest.mark.parametrize("timeout_s", [60.0, 0.05])
async def test_G013_our_client_is_seen_to_give_up(timeout_s: float, path: Path | None) -> None:
    """By cancelling, and by waiting no longer."""
    held = Held()
    async with opened(path, held.run) as place:
        url = f"tcp://{place.address}" if path is None else f"unix://{path}"
        async with AsyncGraphPipe(url, timeout_s=timeout_s) as model:
            asking = asyncio.ensure_future(model.infer(np.float32([1])))
            await until(lambda: held.calls == 1)
            if timeout_s > 1:
                asking.cancel()
            await asyncio.wait([asking])
            await held.left.wait()
            await until(lambda: place.count == 0)
            assert asking.cancelled() or isinstance(asking.exception(), GraphPipeError)


async def test_what_has_begun_when_a_transport_leaves_is_answered(path: Path | None) -> None:
    """Requests that were read ahead, and one of which a part is here; then the connection ends."""
    held = Held()
    async with opened(path, held.run) as place:
        reader, writer = await place.connect()
        writer.write(framed(REQUEST) * 2 + framed(REQUEST)[:10])
        await until(lambda: held.calls == 1)
        (connection,) = place.transport._connections
        await until(lambda: connection._begun == 3)
        place.transport.leave()
        with pytest.raises(OSError):
            await place.connect()
        writer.write(framed(REQUEST)[10:])
        held.go.set()
        for _ in range(3):
            assert values(await read_one(reader)) == [[[1.0, 2.0]]]
        assert await reader.read() == b""


async def test_G016_ipv6_addresses_stand_in_brackets() -> None:
    """With the port that was taken."""
    async with inferring(double) as inferences:
        place = Place(inferences, None, "[::1]:0")
        try:
            place.address = await place.transport.start()
        except StartupError as error:
            pytest.skip(str(error))  # this machine has no IPv6
        assert place.address.startswith("[::1]:")
        assert not place.address.endswith(":0")
        assert values(await exchanged(*await place.connect(), REQUEST)) == [[[2.0, 4.0]]]
        await place.stop()


async def test_G105_G106_each_request_leaves_a_line(path: Path | None, caplog: pytest.LogCaptureFixture) -> None:
    """Also those that are refused; at no level is there anything of a config."""
    caplog.set_level(logging.DEBUG)
    transport = "tcp socket answered" if path is None else "unix socket answered"
    async with opened(path, connections=1) as place:
        reader, writer = await place.connect()
        await exchanged(reader, writer, ask([1], config=b"secret \xff"))
        await exchanged(reader, writer, ask([1], config=b"secret", output_names=("none",)))
        await exchanged(reader, writer, b"\xff" * 40 + b"secret")
        writer.write(bytes(4))
        await read_one(reader)
        second, _ = await place.connect()
        await read_one(second)
    lines = [record for record in caplog.records if record.getMessage() == transport]
    expected = [0, Code.UNKNOWN_OUTPUT, Code.MALFORMED, Code.MALFORMED, Code.OVERLOADED]
    assert [line.code for line in lines] == expected  # type: ignore[attr-defined]
    assert all(line.request.startswith("infer ") and "Int64[1]" in line.request for line in lines[:2])  # type: ignore[attr-defined]
    assert all(line.seconds >= 0 and line.bytes > 0 for line in lines)  # type: ignore[attr-defined]
    assert not any("secret" in str(vars(record)) for record in caplog.records)


async def test_G016_a_connection_may_begin_with_a_name(path: Path | None) -> None:
    """Once: later it is a message that is too large, as is a name of no or too many bytes (G-017)."""
    async with opened(path) as place:
        for prefix, sent in ((name_of("double"), name_of("double")), (b"", struct.pack("<I", 1 << 31)), (b"", LONG)):
            reader, writer = await place.connect()
            writer.write(prefix)
            if prefix:
                assert values(await exchanged(reader, writer, REQUEST)) == [[[2.0, 4.0]]]
            writer.write(sent)
            assert code_of(await read_one(reader)) == Code.TOO_LARGE
        for name in (b"absent", b"\xff"):
            reader, writer = await place.connect()
            writer.write(struct.pack("<I", (1 << 31) | len(name)) + name)
            assert code_of(await read_one(reader)) == Code.MALFORMED
            assert await reader.read() == b""


LONG = struct.pack("<I", (1 << 31) | 1025)


def name_of(model: str) -> bytes:
    """How a connection names its model."""
    return struct.pack("<I", (1 << 31) | len(model)) + model.encode()


async def test_a_response_counts_until_it_is_taken(path: Path | None) -> None:
    """Also where its client leaves instead."""
    large = np.zeros(6_000_000, "f4")
    async with opened(path) as place:
        memory = place.inferences.driver.engine.memory
        for leaves in (True, False):
            reader, writer = await place.connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(framed(ask(large)))
            await until(lambda: memory.held >= large.nbytes and memory.unread == 1)
            if leaves:
                writer.transport.abort()
            else:
                writer.transport.resume_reading()  # type: ignore[attr-defined]
                assert len(await read_one(reader)) > large.nbytes
            await until(lambda: memory.held == memory.unread == 0)


async def test_a_request_that_does_not_fit_gives_back_its_room_with_its_refusal(path: Path | None) -> None:
    """Not when its connection has ended, a second later: others, which fit then, would be refused with it."""
    size = 4 << 20
    async with opened(path) as place:
        memory = place.inferences.driver.engine.memory
        memory.most_bytes = 3 << 20
        reader, writer = await place.connect()
        writer.write(struct.pack("<I", size) + bytes(2 << 20))
        await until(lambda: memory.held >= 2 << 20)
        writer.write(bytes((2 << 20) - 1))
        assert code_of(await read_one(reader)) == Code.OVERLOADED
        assert place.count == 1  # it has not ended yet
        assert memory.held == 0
