"""`invoker.fetch.web`: what is made of answers, and of TLS."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

from invoker.errors import InvocationError, Status
from invoker.fetch.fetcher import Fetcher, FetchPolicy
from invoker.fetch.hosts import Address
from tests.transports.webpeer import MOST, Answer, Peer, error, fetcher, get, ok, peer, redirect, reply


async def answered(answer: Answer, most: int = MOST) -> bytes:
    async with peer(answer) as served, fetcher(served.port) as fetching:
        return await get(fetching, f"http://example.org:{served.port}/", most)


async def failed(answer: Answer, most: int = MOST) -> InvocationError:
    async with peer(answer) as served, fetcher(served.port) as fetching:
        return await error(fetching, f"http://example.org:{served.port}/", most)


async def test_E055_statuses() -> None:
    """Missing is told from what may work later."""
    for status, expected in ((404, Status.NOT_FOUND), (410, Status.NOT_FOUND), (403, None), (500, None), (206, None)):
        met = await failed(reply(status, "Content-Length: 1", body=b"x"))
        assert met.status is (expected or Status.UNAVAILABLE)
        assert str(met).startswith("Invoker: Reference Failed: ")
        assert str(met).endswith(f"answers with status {status}")


@pytest.mark.parametrize(
    "answer",
    [
        ok(b"hello"),
        ok(b"hello", "Content-Encoding: identity", "Content-Type: image/png; broken"),
        reply(200, body=b"hello"),
        reply(200, "Transfer-Encoding: chunked", body=b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: x\r\n\r\n"),
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        reply(100) + ok(b"hello"),
        reply(200, "Content-Length: 5", body=b"hello and what nobody asked for"),
    ],
)
async def test_E051_bodies_by_length_in_chunks_or_to_the_end(answer: bytes) -> None:
    """What an answer says of its type does not matter."""
    assert await answered(answer) == b"hello"


async def test_an_empty_body_is_empty() -> None:
    """Not missing."""
    assert await answered(ok(b"")) == b""


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (reply(200, "Content-Length: 10", body=b"hello"), "ended 5 bytes too early"),
        (reply(200, "Transfer-Encoding: chunked", body=b"5\r\nhel"), "is not valid HTTP"),
        (reply(200, "Transfer-Encoding: chunked", body=b"xyz\r\n"), "is not valid HTTP"),
        (reply(200, "Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), "transfer encoding that is not chunked"),
        (reply(200, "Content-Length: 5", "Content-Length: 6", body=b"hello!"), "has several lengths"),
        (reply(200, "Content-Length: -5", body=b"hello"), "one that is not a number"),
        (reply(200, "Content-Length: 5x", body=b"hello"), "one that is not a number"),
        (ok(gzip.compress(b"hello", mtime=0), "Content-Encoding: gzip"), "is encoded as 'gzip'"),
        (ok(b"hello", "Content-Encoding: identity, br"), "is encoded as"),
        (b"", "cannot be reached"),
        (b"SSH-2.0-OpenSSH\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "is not valid HTTP"),
        (b"HTTP/2 200\r\n\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + bytes(100_000), "is not valid HTTP"),
    ],
)
async def test_E055_what_is_broken_or_encoded_is_unavailable(answer: bytes, text: str) -> None:
    """Half of a body is never taken for the whole."""
    met = await failed(answer)
    assert met.status is Status.UNAVAILABLE
    assert text in str(met)


@pytest.mark.parametrize(
    "answer",
    [
        ok(bytes(101)),
        reply(200, body=bytes(101)),
        reply(200, "Transfer-Encoding: chunked", body=b"65\r\n" + bytes(101) + b"\r\n0\r\n\r\n"),
        reply(200, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"65\r\n" + bytes(101) + b"\r\n0\r\n\r\n"),
        reply(200, "Content-Length: 99999999999999999999", body=b"x"),
    ],
)
async def test_E055_ET68_ref_http_too_large(answer: bytes) -> None:
    """Whatever the answer says about its length."""
    met = await failed(answer, most=100)
    assert met.status is Status.RESOURCE_EXHAUSTED
    assert str(met).startswith("Invoker: Limit Exceeded: ")


async def test_exactly_the_limit_passes() -> None:
    """One byte more would not."""
    assert await answered(ok(bytes(100)), most=100) == bytes(100)
    assert await answered(reply(200, body=bytes(100)), most=100) == bytes(100)


async def test_a_host_without_addresses_is_unavailable() -> None:
    """The resolver's own words are kept here."""

    def nothing(host: str, port: int) -> list[Address]:
        raise socket.gaierror(-2, "Name or service not known by 10.0.0.53")

    for resolve in (nothing, lambda *_: []):
        fetching = Fetcher(FetchPolicy(http="public"), resolve=resolve)
        met = await error(fetching, "http://nowhere.example/")
        await fetching.close()
        assert met.status is Status.UNAVAILABLE
        assert str(met) == "Invoker: Reference Failed: the host 'nowhere.example' has no address"


async def test_a_refused_connection_is_unavailable() -> None:
    """The text names the URI, not the address."""
    async with peer(ok(b"")) as served:
        port = served.port
    async with fetcher(port) as fetching:
        met = await error(fetching, f"http://example.org:{port}/")
    assert met.status is Status.UNAVAILABLE
    assert str(met).endswith("it cannot be reached")
    assert "127.0.0.1" not in str(met)


# TLS.


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def encrypted(authority: trustme.CA, answers: dict[str, Answer], *names: str) -> AsyncIterator[tuple[Peer, list]]:
    """A TLS server with a certificate for these names, and the names that clients asked it for."""
    seen: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    context.sni_callback = lambda connection, name, context: seen.append(name)
    async with peer(answers, tls=context) as served:
        yield served, seen


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_E055_tls_verifies_the_name_that_was_written(authority: trustme.CA) -> None:
    """Not the address that was connected to; and says it to the server."""
    async with encrypted(authority, {"/": ok(bytes(200_000))}, "example.org") as (served, seen):
        async with fetcher(served.port, tls=trusting(authority)) as fetching:
            assert await get(fetching, f"https://example.org:{served.port}/") == bytes(200_000)
            assert seen == ["example.org"]
            met = await error(fetching, f"https://other.example:{served.port}/")
        assert met.status is Status.UNAVAILABLE
        assert "its certificate is not accepted" in str(met)
        assert len(served.requests) == 1


async def test_E055_tls_verifies_an_address_that_was_written(authority: trustme.CA) -> None:
    """The certificate must be for the address."""
    async with (
        encrypted(authority, {"/": ok(b"x")}, "127.0.0.1") as (served, _),
        fetcher(served.port, tls=trusting(authority)) as fetching,
    ):
        assert await get(fetching, f"https://127.0.0.1:{served.port}/") == b"x"


async def test_E055_a_certificate_of_an_unknown_authority_is_not_accepted(authority: trustme.CA) -> None:
    """By default those of the system count."""
    async with encrypted(authority, {"/": ok(b"x")}, "example.org") as (served, _):
        async with fetcher(served.port) as fetching:
            met = await error(fetching, f"https://example.org:{served.port}/")
        assert "its certificate is not accepted" in str(met)


async def test_E055_a_redirect_never_leaves_encryption(authority: trustme.CA) -> None:
    """From http to https is fine."""
    answers: dict[str, Answer] = {}
    async with peer(answers) as plain, encrypted(authority, answers, "example.org") as (served, _):
        answers["/up"] = redirect(f"https://example.org:{served.port}/end")
        answers["/down"] = redirect(f"http://example.org:{plain.port}/end")
        answers["/end"] = ok(b"end")
        async with fetcher(plain.port, served.port, tls=trusting(authority)) as fetching:
            assert await get(fetching, f"http://example.org:{plain.port}/up") == b"end"
            met = await error(fetching, f"https://example.org:{served.port}/down")
        assert met.status is Status.PERMISSION_DENIED
        assert "is not encrypted" in str(met)


async def test_plain_http_where_tls_was_expected_is_unavailable() -> None:
    """The server's answer to our greeting is no TLS."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(reply(400))
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with fetcher(port) as fetching:
        met = await error(fetching, f"https://example.org:{port}/")
    server.close()
    assert met.status is Status.UNAVAILABLE
    assert str(met).endswith("TLS cannot be spoken with it")
