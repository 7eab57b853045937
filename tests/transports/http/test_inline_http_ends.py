"""`invoker.transports.http.inline_http`: how connections end, and that both ways of serving write the same bytes."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invoker.errors import Overloaded, Status, StatusError
from invoker.message import Message
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.inline_connection import Connection, evictable
from invoker.transports.http.plain import PlainHeads
from tests.transports.http.test_inline_http import Gate, led, post, square
from tests.transports.served import Served, Wire, until

_DATE = re.compile(rb"date: [^\r]*\r\n")


async def test_R155_a_client_that_sends_nothing_loses_its_connection() -> None:
    """Before its first request, and behind each one; a request that is under way counts as none of this."""
    gate = Gate()
    async with led(gate.held, settings=HttpSettings(idle_s=0.2)) as (served, leader, _):
        async with served.wire() as wire:
            assert await wire.ended() == b""
        async with served.wire() as wire:
            await wire.send(post("1"))
            await gate.started.wait()
            asyncio.get_running_loop().call_later(0.4, gate.go.set)
            assert (await wire.answer())[2] == b"1"
            assert await wire.ended() == b""
        await until(lambda: not len(leader))


async def test_a_half_closed_connection_is_answered_if_the_function_is_quick() -> None:
    """As by `nc -N`; errors, too. A function that takes long is told that its client has left."""
    gate = Gate()
    async with led(square, gate.held) as (served, _, left):
        for body, status in (("7", b"200"), ("x", b"400")):
            async with served.wire() as wire:
                wire.writer.write(post(body, "Invoker-Function: square").encode())
                wire.writer.write_eof()
                assert (await wire.ended()).startswith(b"HTTP/1.1 " + status)
        async with served.wire() as wire:
            wire.writer.write(post("1", "Invoker-Function: held").encode())
            wire.writer.write_eof()
            await gate.started.wait()
            (running,) = served.driver.direct
            await until(running.outlet.is_gone)  # type: ignore[attr-defined]  # it is a `Whole`
            gate.go.set()
            assert await wire.ended() == b""
        assert left == []


async def test_a_client_that_reads_slowly_holds_no_thread() -> None:
    """The loop writes the rest; the connection goes on after that, without the loop."""
    body = bytes(range(256)) * 65536  # 16 MiB, more than a socket takes

    def large(x: int) -> bytes:
        return body if x else b""

    async with led(large) as (served, leader, left), served.wire() as wire:
        await wire.send(post("1"))
        await until(lambda: bool(leader._rests))
        assert (served.driver.threads.busy, served.driver.engine.running) == (0, {})
        assert (await wire.answer())[::2] == (200, body)
        await wire.send(post("0"))
        assert (await wire.answer())[::2] == (200, b"")
        assert (left, len(leader)) == ([], 1)


async def test_a_client_that_takes_nothing_loses_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    """After ``write_s``."""

    def large(x: int) -> bytes:
        return bytes(16 * 1024 * 1024)

    async with led(large, settings=HttpSettings(write_s=0.1)) as (served, leader, _), served.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a transport that reads
        await wire.send(post("1"))
        await until(lambda: bool(leader._rests))
        await until(lambda: not len(leader))
    assert "a client did not read its response within 0.1 s" in caplog.text


async def test_beyond_the_most_the_longest_idle_ends() -> None:
    """Connections of the loop and of the leader count together; who has something to read is not idle."""
    async with led(square) as (served, leader, _):
        served.transport.connections.most = 2
        async with served.wire() as one, served.wire() as two:
            for wire in (one, two):
                await wire.send(post("3"))
                assert (await wire.answer())[2] == b"9"
            await one.send(post("4"))
            assert (await one.answer())[2] == b"16"
            async with served.wire() as three:
                await three.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await three.answer())[0] == 200
                assert await two.ended() == b""
                async with served.wire() as four:
                    assert await three.ended() == b""  # that of the loop goes first
                    for wire in (one, four):
                        await wire.send(post("5"))
                        assert (await wire.answer())[2] == b"25"
        await until(lambda: not len(leader))
        assert not leader.evict()


async def test_H212_a_new_connection_is_not_evicted() -> None:
    """Until its time is over, or it has asked once."""
    async with led(square) as (served, leader, _), served.wire() as asked:
        await asked.send(post("3"))
        assert (await asked.answer())[2] == b"9"
        async with served.wire() as new:
            await until(lambda: len(leader) == 2)
            with patch("invoker.transports.http.transport.NEW_S", 3600):
                await until(served.transport._evict)  # the thread that has answered may not have put it back yet
                assert await asked.ended() == b""
                assert not served.transport._evict()
            assert leader.evict()
            assert await new.ended() == b""


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (b"", True),
        (b"G", True),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", True),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
        (b"GET /livez HTTP/1.1\r\nX: " + b"x" * 5000, False),
        (None, False),
    ],
)
async def test_H212_what_may_be_a_request_is_not_evicted(data: bytes | None, ends: bool) -> None:
    """It only waits for a thread, as does the end; a part of a head is evicted, however new it is."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        connection = Connection(ours, cast(PlainHeads, None))
        if data is None:
            theirs.close()
        else:
            theirs.send(data)
        assert list(evictable([connection], connection.since_s)) == [connection] * ends
        assert list(evictable([connection], connection.since_s - 1)) == [connection] * (ends and data != b"")


async def test_R025_who_leaves_gives_its_connections_to_the_loop() -> None:
    """Each ends behind its next response, which says so; the one that is under way as well."""
    gate = Gate()
    async with led(gate.held) as (served, leader, left), served.wire(), served.wire() as busy:
        await busy.send(post("1"))
        await gate.started.wait()
        await until(lambda: len(leader) == 2)
        served.transport.leave()
        await until(lambda: len(left) == 1)
        gate.go.set()
        _, headers, body = await busy.answer()
        assert (headers["connection"], body) == ("close", b"1")
        assert await busy.ended() == b""


async def test_a_stop_ends_idle_connections_and_waits_for_others() -> None:
    """It is over as soon as the last response is written."""
    gate = Gate()
    async with led(gate.held) as (served, leader, left), served.wire() as idle, served.wire() as busy:
        await busy.send(post("1"))
        await gate.started.wait()
        stopping = asyncio.create_task(served.transport.stop(30))
        assert await idle.ended() == b""
        assert not stopping.done()
        gate.go.set()
        assert (await busy.answer())[1]["connection"] == "close"
        assert await busy.ended() == b""
        await stopping
        assert left == []
        await until(lambda: leader._epoll.closed)


async def test_a_stop_cuts_what_takes_longer(caplog: pytest.LogCaptureFixture) -> None:
    """The function goes on, whose connection is gone; nothing of it is left when it returns."""
    gate = Gate()
    async with led(gate.held) as (served, leader, _), served.wire() as wire:
        await wire.send(post("1"))
        await gate.started.wait()
        await served.transport.stop(0.05)
        assert await wire.ended() == b""
        assert "1 HTTP connections were cut" in caplog.text
        gate.go.set()
        await until(lambda: not len(leader) and leader._epoll.closed)


async def test_a_stop_does_not_wait_for_clients_that_take_nothing() -> None:
    """The writing of their responses is given up."""

    def large(x: int) -> bytes:
        return bytes(16 * 1024 * 1024)

    async with led(large) as (served, leader, _), served.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a transport that reads
        await wire.send(post("1"))
        await until(lambda: bool(leader._rests))
        await served.transport.stop(0.05)
        await until(lambda: not len(leader) and not leader._rests)


async def test_a_unix_socket_is_served_in_the_same_way(tmp_path: Path) -> None:
    """Whatever the host is called."""
    path = tmp_path / "http"
    async with led(square, unix=str(path)) as (_, _, left):
        reader, writer = await asyncio.open_unix_connection(path)
        wire = Wire(reader, writer)
        await wire.send(post("6").replace("localhost", "example.org"))
        assert (await wire.answer())[2] == b"36"
        assert left == []
        writer.transport.abort()


async def test_the_thread_that_cannot_be_had_is_not_needed(caplog: pytest.LogCaptureFixture) -> None:
    """The loop serves all then."""
    async with led(square) as (served, leader, left):
        with patch.object(served.driver.threads, "spawn", side_effect=Overloaded("no")), caplog.at_level(logging.ERROR):
            async with served.wire() as wire:
                await until(lambda: left == [b""])
                assert not len(leader)
                await wire.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await wire.answer())[0] == 200
    assert "no thread can wait for requests" in caplog.text


def answers(x: int) -> Message[int]:
    """What a request may lead to, by number."""
    if x == 1:
        raise StatusError(Status.INVALID_ARGUMENT, "no")
    if x == 2:
        return Message(x, {"X-Http-Status": "204", "X-Own": "a"})
    if x == 3:
        return Message(x, {"X-Http-Status": "418", "Connection": "close", "Set-Cookie": "a=b"})
    if x == 4:
        return Message(x, {"x-content-type-options": "sniff", "Vary": "X"})
    if x == 5:
        return Message(x, {"Bad Header": "a"})
    return Message(x * x)


def _said(address: str, text: bytes) -> bytes:
    """What a transport answers, but for the date."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as sock:
        sock.sendall(text)
        with sock.makefile("rb") as file:
            head = b"".join(iter(file.readline, b"\r\n"))
            length = re.search(rb"content-length: ([0-9]+)", head)
            return _DATE.sub(b"", head) + file.read(int(length[1]) if length else 0)


_FIELDS = st.sampled_from(
    [
        "Accept: application/json", "Accept: text/plain", "Accept: image/png", "Accept: ", "X-A: b", "x-a: c",
        "Origin: https://example.org", "Origin: https://other.org", "Origin: http://localhost",
        "Invoker-Function: answers", "Invoker-Function: none", "Content-Encoding: gzip",
        "Connection: keep-alive", "Sec-Fetch-Site: cross-site",
        "Content-Type: text/plain", "Content-Type: nonsense", "Cookie: a=b",
    ]
)  # fmt: skip
_BODIES = st.sampled_from(
    ["0", "1", "2", "3", "4", "5", "-7", "x", "", '{"x": 3}', '{"y": 3}', "[1]", "1" * 2000, "\xff"]
)


async def test_both_ways_write_the_same_bytes() -> None:
    """For requests of all kinds, but for the date."""
    about = {"settings": HttpSettings(origins=("https://example.org",))}
    async with Served.at(answers, **about) as one:
        with patch("invoker.transports.http.transport.can_lead", lambda: False):
            async with Served.at(answers, **about) as other:
                assert (one.transport.leader is None, other.transport.leader is None) == (False, True)
                await asyncio.to_thread(_compare, one.address, other.address)


def _compare(one: str, other: str) -> None:
    for body in ("0", "1", "2", "3", "4", "5", "x"):
        ours, theirs = (_said(each, post(body).encode()) for each in (one, other))
        assert ours == theirs
        assert ours.startswith(b"HTTP/1.1 ")

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_BODIES, st.lists(_FIELDS, max_size=3, unique=True), st.sampled_from(["/", "/?x=3", "/other", "/?z=%20"]))
    def compare(body: str, fields: list[str], path: str) -> None:
        text = post(body, *fields, path=path).encode("latin-1")
        ours, theirs = (_said(each, text) for each in (one, other))
        assert ours == theirs
        assert ours.startswith(b"HTTP/1.1 ")

    compare()


async def test_a_thread_that_comes_back_late_does_not_end_the_one_that_waits() -> None:
    """What is waited with is closed by the last of them."""
    gate = Gate()
    async with led(gate.held) as (served, leader, _), served.wire() as wire:
        await wire.send(post("1"))
        await gate.started.wait()
        await until(lambda: leader._inside == 2)  # the other one leads by now
        leader._leader_follower.stop()
        gate.go.set()
        assert (await wire.answer())[2] == b"1"
        await until(lambda: leader._inside == 1)
        assert not leader._epoll.closed
        await served.transport.stop(1)
        await until(lambda: leader._epoll.closed)


async def test_R116_a_function_that_is_deaf_is_counted_until_it_returns(caplog: pytest.LogCaptureFixture) -> None:
    """Its client got 504 long before, and others are served meanwhile."""
    gate = Gate()
    async with led(gate.held, square, riff={"timeout_s": 0.05}) as (served, _, left), served.wire() as wire:
        await wire.send(post("1", "Invoker-Function: held"))
        assert (await wire.answer())[0] == 504
        await until(lambda: served.driver.threads.stuck == 1)
        await wire.send(post("3", "Invoker-Function: square"))
        assert (await wire.answer())[2] == b"9"
        gate.go.set()
        await until(lambda: (served.driver.threads.stuck, served.driver.threads.busy) == (0, 0))
        assert left == []
    assert "its thread is abandoned until it returns" in caplog.text


async def test_R025_an_invocation_that_outlives_the_drain_is_503() -> None:
    """The client is told at once, and that it shall use another connection."""
    gate = Gate()
    async with led(gate.held) as (served, _, _), served.wire() as wire:
        await wire.send(post("1"))
        await gate.started.wait()
        draining = asyncio.create_task(served.driver.drain(0.05))
        status, headers, body = await wire.answer()
        assert (status, headers["connection"], body[:23]) == (503, "close", b"Invoker: Shutting Down:")
        assert await wire.ended() == b""
        assert not await draining
        gate.go.set()
        await until(lambda: not served.driver.engine.running)
