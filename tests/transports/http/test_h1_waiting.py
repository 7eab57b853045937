"""`invoker.transports.http.h1`: clients that wait for the word before they send a body, and reason phrases."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from unittest.mock import patch

import pytest
import trustme

from invoker.transports.tls import TlsFiles
from tests.transports.models import serving_models
from tests.transports.served import Served, Wire

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
    with patch("invoker.transports.http.h1._IMPATIENT_S", 0.01):
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
