"""`invoker.transports.http.handshake`: which handshakes are right, and what becomes of the others."""

from __future__ import annotations

import pytest

from invoker.core.http import RequestHead
from invoker.transports.http.handshake import offered
from tests.transports.served import Served, until
from tests.transports.socketed import upper
from tests.transports.sockets import serving

KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
VERSION = "Sec-WebSocket-Version: 13"
HIDDEN = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nhidden"


async def echo(x: bytes) -> bytes:
    return x


def head(*fields: str, path: str = "/echo/ws", method: str = "GET", version: str = "1.1") -> str:
    lines = (f"{method} {path} HTTP/{version}", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade", *fields)
    return "\r\n".join((*lines, "", ""))


async def test_the_answer_is_that_of_the_rfc() -> None:
    """To its own example; frames may stand right behind the handshake."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(head(KEY, VERSION), b"\x82\x81\0\0\0\0x")
        status, headers, _ = await wire.answer()
        assert status == 101
        assert headers == {
            "upgrade": "websocket",
            "connection": "upgrade",
            "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        }
        assert b"application/octet-stream" in await wire.reader.readuntil(b"\x82\x01x")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ((KEY,), 426),
        ((KEY, "Sec-WebSocket-Version: 8"), 426),
        ((KEY, VERSION, VERSION), 426),
        ((KEY, "Sec-WebSocket-Version: 13, 8"), 426),
        ((VERSION,), 400),
        ((KEY, KEY, VERSION), 400),
        (("Sec-WebSocket-Key: AAAA", VERSION), 400),
        (("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ", VERSION), 400),
        (("Sec-WebSocket-Key: dGhl!HNhbXBsZSBub25jZQ==", VERSION), 400),
        (("Sec-WebSocket-Key: \u00fc", VERSION), 400),
        ((KEY, VERSION, "Content-Length: 1"), 400),
        ((KEY, VERSION, "Transfer-Encoding: chunked"), 400),
    ],
)
async def test_H055_a_handshake_that_is_not_right_is_refused(fields: tuple[str, ...], status: int) -> None:
    """Nothing behind it is served: who is on the way may take the connection for a tunnel by now."""
    async with Served.at(echo) as served, served.wire() as wire:
        body = {"Content-Length: 1": "x", "Transfer-Encoding: chunked": "0\r\n\r\n"}.get(fields[-1], "")
        await wire.send(head(*fields), body, HIDDEN)
        got, headers, why = await wire.answer()
        assert (got, why.startswith(b"Invoker: Bad Handshake: ")) == (status, True)
        assert headers.get("sec-websocket-version") == ("13" if status == 426 else None)
        assert b"hidden" not in await wire.ended()
        assert not served.driver.engine.counters.opened


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"path": "/nothing/ws"}, 404),
        ({"path": "/"}, 404),
        ({"method": "POST"}, 404),  # no GET, so it is a request like any other
        ({"version": "1.0"}, 404),
    ],
)
async def test_H055_a_handshake_elsewhere_is_refused(given: dict[str, str], status: int) -> None:
    """And by another method, or with HTTP/1.0, it is none."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(head(KEY, VERSION, **given))
        assert (await wire.answer())[0] == status
        assert not served.driver.conversations


async def test_a_kept_connection_may_shake_hands() -> None:
    """Requests before that are answered; behind a refused one nothing is."""
    async with Served.at(echo) as served:
        request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
        async with served.wire() as wire:
            await wire.send(request, request, head(KEY, VERSION))
            assert [(await wire.answer())[0] for _ in range(3)] == [200, 200, 101]
        async with served.wire() as wire:
            await wire.send(request, head(KEY, VERSION, "Origin: http://evil.example"), HIDDEN)
            assert [(await wire.answer())[0] for _ in range(2)] == [200, 403]
            assert b"hidden" not in await wire.ended()


def test_offered_subprotocols_are_listed() -> None:
    """Of one field or of several."""
    fields = [("sec-websocket-protocol", "a, b"), ("sec-websocket-protocol", "c")]
    assert offered(RequestHead("GET", "/", headers=fields)) == ["a", "b", "c"]
    assert offered(RequestHead("GET", "/")) == []


async def test_sessions_have_their_path() -> None:
    """Another one is 404, with a text."""
    async with serving(upper, path="/sessions") as served:
        async with served.peer("/sessions?a=1") as peer:
            assert peer.status == 101
        async with served.peer("/") as peer:
            assert peer.status == 404


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ((), "", 101),
        ((), "http://{address}", 101),
        ((), "https://evil.example", 403),
        ((), "null", 403),
        (("https://good.example",), "https://good.example", 101),
        (("https://good.example",), "https://good.example.evil", 403),
        (("*",), "https://any.example", 101),
    ],
)
async def test_pages_may_not_connect(origins: tuple[str, ...], origin: str, status: int) -> None:
    """But those of this transport, and of listed origins; what is no browser says none."""
    async with (
        serving(upper, origins=origins) as served,
        served.peer(origin=origin.format(address=served.address)) as peer,
    ):
        assert peer.status == status


async def test_sessions_at_once_are_limited() -> None:
    """One more is 503, until one ends."""
    async with serving(upper, sessions=1) as served:
        async with served.peer() as peer:
            assert peer.status == 101
            async with served.peer() as other:
                assert other.status == 503
        await until(lambda: served.app.running == 0)
        async with served.peer() as peer:
            assert peer.status == 101
