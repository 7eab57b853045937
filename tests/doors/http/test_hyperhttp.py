"""`invoker.doors.http.hyperhttp`: clients that wait for the word before they send a body."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from unittest.mock import patch

import h2.errors
import h2.events
import pytest
import trustme

from invoker.doors.tls import TlsFiles
from tests.attack.floods import DATA, END_HEADERS, END_STREAM, PING, PREFACE, SETTINGS, frame, last_goaway, request
from tests.doors.doors import Served, Wire, until
from tests.doors.http.test_door import h2_wire
from tests.doors.models import serving_models
from tests.tensors.samples import fixture

REQUEST = fixture("infer_request")
EXPECT = "Host: localhost\r\nExpect: 100-continue\r\n"
GO_ON = b"HTTP/1.1 100 "


async def echo(x: bytes) -> bytes:
    return x


async def refused(wire: Wire, *head: str) -> tuple[int, dict[str, str]]:
    """The response to a head behind which no body comes, after which the connection ends."""
    await wire.send("\r\n".join(head), "\r\n", EXPECT, "\r\n")
    status, headers, _ = await wire.answer()
    assert headers["connection"] == "close"
    assert await wire.ended() == b""
    return status, headers


async def test_G005_R155_the_word_comes_when_the_body_is_asked_for() -> None:
    """On each request of a connection; it is one line."""
    async with Served.at(echo) as served, served.wire() as wire:
        for body in ("abc", "de"):
            await wire.send(f"POST / HTTP/1.1\r\n{EXPECT}Content-Length: {len(body)}\r\n\r\n")
            assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(GO_ON)
            await wire.send(body)
            assert (await wire.answer())[::2] == (200, body.encode())


async def test_G005_bodies_in_chunks_are_waited_for_likewise() -> None:
    """Nobody knows yet how long they are."""
    async with serving_models(echo, limit_bytes=1000) as served, served.wire() as wire:
        await wire.send(f"POST /graphpipe HTTP/1.1\r\n{EXPECT}Transfer-Encoding: chunked\r\n\r\n")
        assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(GO_ON)
        await wire.send("3e9\r\n", bytes(1001), "\r\n")
        assert (await wire.answer())[0] == 413


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (("POST /graphpipe HTTP/1.1", "Content-Length: 1001"), 413),
        (("POST /graphpipe HTTP/1.1", "Content-Length: 10", "Content-Encoding: gzip"), 415),
        (("POST /graphpipe HTTP/1.1", "Content-Length: 10", "Accept: text/html"), 406),
        (("POST /graphpipe/other HTTP/1.1", "Content-Length: 10"), 404),
        (("PUT /graphpipe HTTP/1.1", "Content-Length: 10"), 405),
        (("POST /control/is_ready HTTP/1.1", "Content-Length: 10"), 405),
        (("POST /healthz HTTP/1.1", "Content-Length: 10"), 405),
        (("POST / HTTP/1.1", "Content-Length: 5000000"), 413),
        (("PUT / HTTP/1.1", "Transfer-Encoding: chunked"), 405),
        (("POST /nowhere HTTP/1.1", "Content-Length: 10"), 404),
        (("POST / HTTP/1.1", "Content-Length: 1", "Invoker-Function: other"), 404),
    ],
)
async def test_G005_who_is_refused_is_not_told_to_go_on(head: tuple[str, ...], status: int) -> None:
    """The refusal is all that comes; the connection ends, also for a client that waits for that."""
    with patch("invoker.doors.http.hyperhttp._IMPATIENT_S", 0.01):
        async with serving_models(echo, limit_bytes=1000) as served, served.wire() as wire:
            assert (await refused(wire, *head))[0] == status


async def test_G005_who_has_begun_without_waiting_gets_the_refusal() -> None:
    """What comes is dropped, so that no reset overtakes the refusal."""
    async with serving_models(echo, limit_bytes=1000) as served, served.wire() as wire:
        await wire.send(f"POST /graphpipe HTTP/1.1\r\n{EXPECT}Content-Length: 400000\r\n\r\n")
        assert (await wire.answer())[0] == 413
        for _ in range(4):
            await wire.send(bytes(100_000))
            await asyncio.sleep(0)
        assert await wire.ended() == b""


async def test_G005_a_body_that_is_there_already_needs_no_word() -> None:
    """Nor does none at all."""
    async with serving_models(echo) as served, served.wire() as wire:
        await wire.send(f"POST / HTTP/1.1\r\n{EXPECT}Content-Length: 3\r\n\r\nabc")
        assert (await wire.answer())[::2] == (200, b"abc")
        await wire.send(f"GET /graphpipe HTTP/1.1\r\n{EXPECT}\r\n")
        status, headers, _ = await wire.answer()
        assert (status, "connection" in headers) == (200, False)
        await wire.send(
            f"POST / HTTP/1.1\r\n{EXPECT}Content-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n"
        )
        assert (await wire.answer())[::2] == (200, b"")


async def test_G005_other_expectations_and_http_1_0_are_left_alone() -> None:
    """HTTP/1.0 knows of no such word (RFC 9110, 10.1.1)."""
    async with Served.at(echo) as served:
        async with served.wire() as wire:
            await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: rain\r\nContent-Length: 1\r\n\r\nx")
            assert (await wire.answer())[::2] == (200, b"x")
        async with served.wire() as wire:
            await wire.send(f"POST / HTTP/1.0\r\n{EXPECT}Content-Length: 1\r\n\r\n", "x")
            assert (await wire.answer())[::2] == (200, b"x")


async def test_G005_a_client_that_leaves_instead_is_forgotten() -> None:
    """Nothing is invoked, and the next one is served."""
    async with serving_models(echo) as served:
        async with served.wire() as wire:
            await wire.send(f"POST / HTTP/1.1\r\n{EXPECT}Content-Length: 3\r\n\r\n")
            assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(GO_ON)
        assert (await served.post(b"x")).content == b"x"
        assert not served.driver.engine.running


async def test_G005_the_same_behind_tls(tmp_path: Path) -> None:
    """100 and 413 likewise."""
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    files = TlsFiles.of(str(tmp_path / "both.pem"), str(tmp_path / "both.pem"), "")
    async with Served.at(echo, tls=files, riff={"max_body_bytes": 10}) as served:
        host, _, port = served.address.rpartition(":")
        for size, expected in ((3, b"HTTP/1.1 100"), (11, b"HTTP/1.1 413")):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(f"POST / HTTP/1.1\r\n{EXPECT}Content-Length: {size}\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(expected)
            writer.transport.abort()


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("POST /graphpipe HTTP/1.1", b"HTTP/1.1 400 Bad Request"),
        ("GET /graphpipe HTTP/1.1", b"HTTP/1.1 200 OK"),
        ("POST /graphpipe HTTP/1.1\r\nContent-Length: 1001", b"HTTP/1.1 413 "),
    ],
)
async def test_statuses_have_their_phrase(head: str, line: bytes) -> None:
    """The GraphPipe client in Python shows its users nothing else of an error."""
    async with serving_models(echo, limit_bytes=1000) as served, served.wire() as wire:
        await wire.send(f"{head}\r\nHost: localhost\r\n\r\n")
        met = await wire.reader.readline()
        assert met.startswith(line)
        assert len(met.split(b" ", 2)[2].strip()) > 1


# Heads that somebody on the way may have understood otherwise

POST = "POST / HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = f"{POST}Content-Length: 6\r\n\r\nhidden"


class Noted:
    """A function that keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    async def run(self, x: bytes) -> bytes:
        self.calls.append(x)
        return x


@pytest.mark.parametrize(
    "head",
    [
        f"{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"{POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "post / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        "PoST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        "get /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"{POST}Content-Length: 1\r\n\r\nxPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_ambiguous_heads_are_refused_and_nothing_behind_them_runs(head: str) -> None:
    """Two lengths, methods in lower case, a preface in the middle: 400, and the connection ends."""
    noted = Noted()
    async with Served.at(noted.run) as served, served.wire() as wire:
        await wire.send(head, HIDDEN * 50)
        answers = await wire.ended()
        assert b"HTTP/1.1 400 " in answers
        assert answers.count(b"HTTP/1.1 ") == 1 + head.count("PRI")
        assert b"hidden" not in answers
        assert noted.calls == [b"x"] * head.count("PRI")
        assert (await served.post(b"x")).content == b"x"


async def test_by_http_2_methods_in_lower_case_are_reset() -> None:
    """With their body; the streams beside them are answered."""
    noted = Noted()
    async with Served.at(noted.run) as served, h2_wire(served) as wire:
        wire.connection.config.validate_outbound_headers = False
        for stream, method in ((1, "post"), (3, "POST")):
            head = [(":method", method), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
            wire.connection.send_headers(stream, head)
            wire.connection.send_data(stream, b"x" * 1000, end_stream=True)
        await wire.flush()
        event = await wire.events(h2.events.StreamReset)
        assert (event.stream_id, event.error_code) == (1, h2.errors.ErrorCodes.PROTOCOL_ERROR)
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (3, (":status", "200"))
    assert noted.calls == [b"x" * 1000]


async def test_nobody_comes_to_http_2_by_upgrade() -> None:
    """RFC 9113 gave it up, and a proxy that lets it pass sees nothing of what follows: it is answered by HTTP/1.1."""
    async with Served.at(echo) as served, served.wire() as wire:
        upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
        for _ in range(2):
            await wire.send(f"GET /livez HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n")
            assert (await wire.answer())[::2] == (200, b"ok\n")


# Floods


@pytest.mark.parametrize("cuts", [(), (1, 10, 23), (24,), (30,)])
async def test_http_2_begins_however_its_preface_is_cut(cuts: tuple[int, ...]) -> None:
    """Byte by byte, or with everything behind it."""
    stream = PREFACE + request(1, END_HEADERS) + frame(DATA, END_STREAM, 1, b"here")
    async with Served.at(echo) as served, served.wire() as wire:
        for begin, end in zip((0, *cuts), (*cuts, len(stream)), strict=True):
            await wire.send(stream[begin:end])
            await asyncio.sleep(0.01)
        seen = b""
        while b"here" not in seen:
            more = await wire.reader.read(65536)
            assert more, "the connection ended"
            seen += more


@pytest.mark.parametrize("one", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, 0, 0), frame(DATA, 0, 1)])
async def test_a_flood_ends_with_a_goaway_and_others_are_served_meanwhile(
    one: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """ENHANCE_YOUR_CALM, one line in the log, and the rest is not taken."""
    with caplog.at_level(logging.INFO, "invoker.doors.http.hyperhttp"):
        async with Served.at(echo) as served, served.wire() as wire:
            await wire.send(PREFACE, request(1, 4), one * 5000)
            good = asyncio.create_task(served.post(b"x"))
            assert last_goaway(await wire.ended()) == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM
            assert (await good).content == b"x"
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_others_have_a_turn_between_a_few_frames() -> None:
    """All nine hundred come in one read; the loop turns dozens of times before the last of them was taken."""
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    last = b"the last"
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, frame(PING, 0, 0, bytes(8)) * 900, frame(PING, 0, 0, last))
        counting = asyncio.create_task(count())
        await wire.reader.readuntil(last)
        is_over = True
        await counting
    assert turns >= 900 // 16


async def test_a_client_of_http_2_that_pings_now_and_then_is_served() -> None:
    """Hundreds of frames that ask for nothing are no flood."""
    async with Served.at(echo) as served, h2_wire(served) as wire:
        for number in range(300):
            wire.connection.ping(number.to_bytes(8))
        wire.begin(1, end=True)
        await wire.flush()
        event = await wire.events(h2.events.ResponseReceived)
        assert (":status", "200") in event.headers


async def test_who_left_with_many_requests_under_way_leaves_no_lines(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio would warn of each write to a connection that is gone."""
    with caplog.at_level(logging.INFO):
        async with Served.at(echo) as served:
            async with served.wire() as wire:
                await wire.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
                await wire.answer()
            await until(lambda: not served.door._connections)
    assert caplog.records == []
