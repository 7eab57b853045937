"""`invoker.transports.http.transport`: connections, from the first byte to the last."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h2.config
import h2.connection
import h2.events
import httpx
import pytest

from invoker.errors import StartupError, Status
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.transport import HttpTransport
from tests.transports.served import Served, Wire, until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
POST = "POST / HTTP/1.1\r\nHost: localhost\r\n"


async def echo(x: bytes) -> bytes:
    return x


class Held:
    """A function that answers when it is let go."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.left = asyncio.Event()

    async def run(self, x: bytes) -> bytes:
        self.started.set()
        try:
            await self.go.wait()
        finally:
            self.left.set()
        return x


async def test_R140_port_0_takes_a_free_one_and_tells_it() -> None:
    """The address has the port that answers."""
    async with Served.at(echo) as served:
        host, _, port = served.address.rpartition(":")
        assert (host, int(port) > 0) == ("127.0.0.1", True)
        assert (await served.post(b"x")).content == b"x"


async def test_R140_a_taken_port_is_a_clear_error() -> None:
    """The text names the port and the setting."""
    async with Served.at(echo) as served:
        port = int(served.address.rpartition(":")[2])
        with pytest.raises(StartupError, match=rf"127\.0\.0\.1:{port} for HTTP: .*in use; set PORT"):
            await HttpTransport(served.driver, lambda _: None, port=port).start()


async def test_R140_an_address_that_is_not_ours_is_a_clear_error() -> None:
    """The text names the address."""
    async with Served.at(echo) as served:
        with pytest.raises(StartupError, match=r"nowhere\.invalid"):
            await HttpTransport(served.driver, lambda _: None, host="nowhere.invalid", port=0).start()
        with pytest.raises(StartupError, match=r"192\.0\.2\.1"):
            await HttpTransport(served.driver, lambda _: None, host="192.0.2.1", port=0).start()


async def test_a_port_is_shared_only_on_demand() -> None:
    """Worker processes may bind the same port."""
    async with Served.at(echo, share_port=True) as served:
        port = int(served.address.rpartition(":")[2])
        second = HttpTransport(served.driver, lambda _: None, port=port, share_port=True)
        assert await second.start() == served.address
        await second.stop(0)


async def test_ipv6_addresses_are_bracketed() -> None:
    """host:port would be ambiguous."""
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    async with Served.at(echo) as served:
        transport = HttpTransport(served.driver, lambda _: None, host="::1", port=0)
        try:
            assert (await transport.start()).startswith("[::1]:")
        except StartupError as error:
            pytest.skip(str(error))
        finally:
            await transport.stop(0)


async def test_R155_keep_alive_and_chunked_bodies() -> None:
    """Several requests on one connection, by length, in chunks, and of no bytes."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(POST, "Content-Length: 3\r\n\r\none")
        assert (await wire.answer())[::2] == (200, b"one")
        await wire.send(POST, "Transfer-Encoding: chunked\r\n\r\n1\r\nt\r\n2;x=y\r\nwo\r\n0\r\n\r\n")
        assert (await wire.answer())[::2] == (200, b"two")
        await wire.send(POST, "Content-Type: application/octet-stream\r\n\r\n")
        assert (await wire.answer())[::2] == (200, b"")
        await wire.send(POST, "Connection: close\r\nContent-Length: 1\r\n\r\nx")
        assert (await wire.answer())[::2] == (200, b"x")
        assert await wire.ended() == b""


async def test_R155_pipelined_requests_are_answered_in_order() -> None:
    """A second request may come before the first response."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(*(f"{POST}Content-Length: 1\r\n\r\n{number}" for number in range(5)))
        assert [(await wire.answer())[2] for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_R155_expect_100_continue() -> None:
    """The client waits for the transport's consent before it sends its body."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(POST, "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert (await wire.answer())[0] == 100
        await wire.send("abc")
        assert (await wire.answer())[::2] == (200, b"abc")


async def test_R155_http_1_0_and_whole_uris() -> None:
    """Old clients and proxies are served."""
    async with Served.at(echo) as served:
        for line in ("POST / HTTP/1.0", "POST http://localhost/ HTTP/1.0", "POST http://localhost HTTP/1.0"):
            async with served.wire() as wire:
                await wire.send(f"{line}\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
                assert (await wire.answer())[::2] == (200, b"x")


async def test_R155_h2c_with_prior_knowledge_on_the_same_port() -> None:
    """Fifty requests at once on one connection, while HTTP/1.1 goes on."""
    async with Served.at(echo) as served, served.client(http2=True) as client:

        async def one(number: int) -> tuple[str, bytes]:
            response = await client.post("/", content=b"%d" % number)
            return response.http_version, response.content

        answers = await asyncio.gather(*(one(number) for number in range(50)))
        assert answers == [("HTTP/2", b"%d" % number) for number in range(50)]
        assert (await served.post(b"x")).http_version == "HTTP/1.1"


async def test_R155_parallel_requests_do_not_mix() -> None:
    """Each connection gets its own answers."""
    async with Served.at(echo) as served, served.client() as client:
        answers = await asyncio.gather(*(client.post("/", content=b"%d" % number) for number in range(50)))
        assert [answer.content for answer in answers] == [b"%d" % number for number in range(50)]


async def test_small_responses_leave_at_once() -> None:
    """Nagle's algorithm, which would hold back the second packet of each response for 40 ms, is off."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(POST, "\r\n")
        await wire.answer()
        (connection,) = served.transport.connections.open
        accepted = connection._transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_dead_peers_are_noticed() -> None:
    """The kernel asks for whoever is silent: after 20 s, four times, 15 s apart."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(POST, "\r\n")
        await wire.answer()
        (connection,) = served.transport.connections.open
        accepted = connection._transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle_s, interval_s, count = (accepted.getsockopt(socket.IPPROTO_TCP, one) for one in options)
        assert idle_s + interval_s * count == 80


async def test_beyond_its_share_the_longest_idle_connection_ends() -> None:
    """Who waits for an answer is spared, and so is who came last."""
    held = Held()
    async with Served.at(held.run) as served:
        served.transport.connections.most = 2
        async with served.wire() as busy, served.wire() as idle:
            await busy.send(POST, "Content-Length: 1\r\n\r\nx")
            await held.started.wait()
            await idle.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await idle.answer()
            async with served.wire() as last:
                assert await idle.ended() == b""
                await last.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await last.answer())[0] == 200
            held.go.set()
            assert (await busy.answer())[::2] == (200, b"x")


async def test_H212_who_has_sent_a_part_of_a_head_is_not_new() -> None:
    """It is ended where descriptors are short, before somebody who came earlier and has sent nothing."""
    async with Served.at(echo) as served, served.wire() as new:
        connections = served.transport.connections
        await until(lambda: len(connections.idle) == 1)
        ((first, until_s),) = connections.idle.items()
        assert until_s is not None
        connections.idle[first] = math.inf
        async with served.wire() as part:
            await part.send("GET /livez HTTP/1.1\r\nHo")
            await until(lambda: None in connections.idle.values())
            assert connections.evict()
            assert await part.ended() == b""
            assert not connections.evict()
        await new.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await new.answer())[0] == 200


class H2Wire:
    """A bare HTTP/2 connection with prior knowledge."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.connection.initiate_connection()

    def begin(self, stream_id: int, *, path: str = "/", end: bool = False) -> None:
        head = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        head.append(("content-type", "application/octet-stream"))
        self.connection.send_headers(stream_id, head, end_stream=end)

    async def flush(self) -> None:
        await self.wire.send(self.connection.data_to_send())

    async def events(self, kind: type[h2.events.Event]) -> h2.events.Event:
        """Read until an event of this kind."""
        while True:
            data = await self.wire.reader.read(65536)
            assert data, "the connection ended"
            for event in self.connection.receive_data(data):
                if isinstance(event, kind):
                    return event
            await self.flush()


@asynccontextmanager
async def h2_wire(served: Served) -> AsyncIterator[H2Wire]:
    async with served.wire() as wire:
        yield H2Wire(wire)


async def test_R154_a_reset_stream_cancels_its_function_only() -> None:
    """The connection and its other streams live on."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        await wire.flush()
        await held.started.wait()
        wire.connection.reset_stream(1)
        await wire.flush()
        await held.left.wait()
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}
        held.go.set()
        wire.begin(3, end=True)
        await wire.flush()
        event = await wire.events(h2.events.ResponseReceived)
        assert (":status", "200") in event.headers


async def test_R154_data_behind_a_refusal_leaves_other_streams_alone() -> None:
    """The rest of a refused body is dropped; what runs beside it on the connection is answered."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        wire.begin(3, path="/nope")
        await wire.flush()
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (3, (":status", "404"))
        for _ in range(3):
            wire.connection.send_data(3, b"x" * 1000)
        wire.connection.end_stream(3)
        await wire.flush()
        held.go.set()
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (1, (":status", "200"))


async def test_garbage_ends_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a traceback nor a warning, and the transport stays open."""
    with caplog.at_level(logging.INFO):
        async with Served.at(echo) as served:
            for garbage in (
                b"\x00\xff\r\n\r\n",
                b"POST / HTTP/1.1\r\n\r\n",
                PREFACE + bytes(64),
            ):
                async with served.wire() as wire:
                    await wire.send(garbage)
                    await wire.ended()
            assert (await served.post(b"x")).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_large_head_is_refused() -> None:
    """Heads are limited, too."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(POST, "X-A: ", "a" * 100_000)
        assert b" 431 " in await wire.ended()


@pytest.mark.parametrize(
    "start",
    [b"", b"POST / HT", POST.encode(), PREFACE + b"\0\0\0\4\0\0\0\0\0"],
)
async def test_a_connection_without_a_request_ends(start: bytes) -> None:
    """Nobody holds a connection by sending nothing, half a head, or an empty HTTP/2 session."""
    async with Served.at(echo, settings=HttpSettings(idle_s=0.1)) as served, served.wire() as wire:
        await wire.send(start)
        await wire.ended()


async def test_a_connection_that_drips_a_head_ends() -> None:
    """Each further byte does not buy further time."""
    async with Served.at(echo, settings=HttpSettings(idle_s=0.2)) as served, served.wire() as wire:
        await wire.send(POST)
        ended = asyncio.create_task(wire.ended())
        while not ended.done():
            wire.writer.write(b"X: 1\r\n")
            await asyncio.sleep(0.02)


async def test_a_running_function_keeps_its_connection() -> None:
    """Idle is who has no request under way."""
    held = Held()
    async with Served.at(held.run, settings=HttpSettings(idle_s=0.05)) as served:
        request = asyncio.create_task(served.post(b"x"))
        await held.started.wait()
        asyncio.get_running_loop().call_later(0.2, held.go.set)
        assert (await request).content == b"x"


async def test_R024_stopping_lets_requests_end() -> None:
    """No new connections; the one under way gets its answer, then its connection ends."""
    held = Held()
    async with Served.at(held.run) as served, served.wire() as idle, served.wire() as busy:
        await busy.send(POST, "Content-Length: 1\r\n\r\nx")
        await held.started.wait()
        stopping = asyncio.create_task(served.transport.stop(10))
        assert await idle.ended() == b""
        with pytest.raises(ConnectionRefusedError):
            async with served.wire():
                pass
        held.go.set()
        assert (await busy.answer())[::2] == (200, b"x")
        assert await busy.ended() == b""
        await stopping


@pytest.mark.parametrize("http2", [False, True])
async def test_R025_stopping_is_bounded(http2: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What does not end within the grace is cut, its function cancelled; a second stop does nothing."""
    held = Held()
    async with Served.at(held.run) as served, served.client(http2=http2) as client:
        request = asyncio.create_task(client.post("/", content=b"x"))
        await held.started.wait()
        await served.transport.stop(0.05)
        await held.left.wait()
        with pytest.raises(httpx.TransportError):
            await request
        await served.transport.stop(0.05)
    assert "1 HTTP connections were cut" in caplog.text


async def test_a_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The engine logs invocations; neither the server nor its libraries add lines, least of all headers."""
    with caplog.at_level(logging.DEBUG):
        async with Served.at(echo) as served, served.client(http2=True) as client:
            await client.post("/", content=b"x", headers={"authorization": "secret"})
    assert not {"h2", "hpack"} & {record.name.partition(".")[0] for record in caplog.records}


async def test_a_transport_that_leaves_serves_who_is_connected_and_tells_them_to_connect_anew() -> None:
    """A connection that idles is left alone until its next response, which ends it; nobody new is taken."""
    async with Served.at(echo) as served, served.client() as client:
        url = f"http://{served.address}/"
        before = await client.post(url, content=b"a", headers={"Content-Type": "application/octet-stream"})
        assert "connection" not in before.headers
        served.transport.leave()
        after = await client.post(url, content=b"b", headers={"Content-Type": "application/octet-stream"})
        assert (after.content, after.headers["connection"]) == (b"b", "close")
        with pytest.raises(httpx.ConnectError):
            await client.post(url, content=b"c")
