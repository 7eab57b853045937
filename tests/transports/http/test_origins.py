"""`invoker.transports.http.origins`: which pages may call, and under which names the transport answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from invoker import Message
from invoker.core.http import RequestHead
from invoker.errors import StartupError
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.heads import target_host
from invoker.transports.http.origins import Origins
from tests.transports.models import serving_models
from tests.transports.served import Served
from tests.transports.sockets import serving as serving_sockets

EVIL = "https://evil.example"
GOOD = "https://good.example"
CROSS = {"sec-fetch-site": "cross-site"}
HOST = "localhost:8080"


def judged(
    *, origins: tuple[str, ...] = (), hosts: tuple[str, ...] = (), bound: str = "127.0.0.1", **scope: Any
) -> tuple[int, dict[str, str]]:
    """The status of what is refused or answered, else 0, and the headers to be added."""
    method, kind, target = (
        scope.pop(name, usual) for name, usual in (("method", "POST"), ("type", "http"), ("target", "/"))
    )
    server = scope.pop("server", ("127.0.0.1", 8080))
    one = Origins(origins, hosts, has_credentials=scope.pop("has_credentials", False))
    headers = [(name.replace("_", "-"), value) for name, value in {"host": HOST, **scope}.items()]
    one.bind(bound, is_loopback=bound != "0.0.0.0")
    head = RequestHead(method, "/", headers=headers)
    verdict = one.judge(head, host=target_host(target), is_local=server is None, is_socket=kind == "websocket")
    return (verdict.response.status if verdict.response else 0), dict(verdict.headers)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 0),  # curl
        ({"sec_fetch_site": "same-origin"}, 0),
        ({"sec_fetch_site": "none"}, 0),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin, cross-site"}, 403),
        ({"sec_fetch_site": "same-origin", "origin": EVIL}, 0),  # who has the first needs no second
        ({"sec_fetch_site": "cross-site", "origin": f"http://{HOST}"}, 403),
        ({"origin": f"http://{HOST}"}, 0),
        ({"origin": f"https://{HOST}"}, 0),  # a proxy ended TLS
        ({"origin": "http://LOCALHOST:8080"}, 0),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "http://127.0.0.1:8080"}, 403),
        ({"origin": "https://localhost", "host": "localhost"}, 0),
        ({"origin": "http://localhost", "host": "localhost:80"}, 0),
        ({"origin": "https://localhost", "host": "localhost:80"}, 403),
        ({"origin": "http://[::1]:8080", "host": "[::1]:8080"}, 0),
        ({"origin": "http://[::1]:8081", "host": "[::1]:8080"}, 403),
        ({"origin": "http://[::2]:8080", "host": "[::1]:8080"}, 403),
        ({"origin": EVIL}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": f"http://{HOST}, {EVIL}"}, 403),
        ({"origin": f"http://{HOST}.evil.example"}, 403),
        ({"origin": f"http://evil@{HOST}"}, 403),
    ],
)
def test_pages_of_other_origins_are_refused(fields: dict[str, str], status: int) -> None:
    """By Sec-Fetch-Site, and without it by Origin and Host, whose scheme does not matter."""
    assert judged(**fields) == (status, {})


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"method": "GET"}, 0),
        ({"method": "POST"}, 403),
        ({"method": "HEAD"}, 403),
        ({"method": "GET", "sec_fetch_dest": "iframe"}, 403),
        ({"method": "GET", "sec_fetch_mode": "no-cors"}, 403),
        ({"method": "GET", "type": "websocket"}, 403),
    ],
)
def test_a_link_may_lead_here(fields: dict[str, str], status: int) -> None:
    """A GET of a whole tab; a form that posts, a frame and a picture are no such thing."""
    given = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document", **fields}
    assert judged(sec_fetch_site="cross-site", **given)[0] == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 0),
        ("localhost:1", 0),
        ("LocalHost:8080", 0),
        ("127.0.0.1:8080", 0),
        ("[::1]", 0),
        ("[::1]:8080", 0),
        ("", 0),  # HTTP/1.0 knows none
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8080", 403),
        ("evil.example@localhost", 403),
        ("localhost:80@evil.example", 403),
        ("localhost/evil.example", 403),
        ("evil.example/localhost", 403),
        ("localhost:x", 403),
        ("::1", 403),
        ("[::1", 403),
        ("[::2]:8080", 403),
        ("127.0.0.2", 403),
    ],
)
def test_names_that_were_made_to_lead_here_are_refused(host: str, status: int) -> None:
    """A transport on loopback has three names, with any port, whatever else the head says."""
    assert judged(host=host)[0] == status
    assert judged(host=host, sec_fetch_site="same-origin")[0] == status
    assert judged(host=host, bound="0.0.0.0")[0] == 0


def test_further_names_are_listed() -> None:
    """With any port, or with one; so is the name that the transport was bound by; `*` is any, also an IPv6 address."""
    assert judged(host="a.example:1", hosts=("A.example",))[0] == 0
    assert judged(host="a.example:1", hosts=("a.example:1",))[0] == 0
    assert judged(host="a.example:2", hosts=("a.example:1",))[0] == 403
    assert judged(host="b.example", hosts=("a.example",))[0] == 403
    assert judged(host="b.example", hosts=("*",))[0] == 0
    assert judged(host="box.lan:8080", bound="box.lan")[0] == 0
    assert judged(host="[::1]:8080", bound="::1")[0] == 0
    assert judged(host="[fe80::1]:8080", bound="fe80::1")[0] == 0


def test_a_target_that_is_a_whole_uri_has_the_host() -> None:
    """It counts instead of Host, for this rule and for the one of Origin (RFC 9112, 3.2.2)."""
    assert judged(target="http://evil.example/")[0] == 403
    assert judged(target="http://evil.example?localhost/", host="localhost")[0] == 403
    assert judged(target="http://localhost:1/", host="evil.example")[0] == 0
    assert judged(target="http://localhost:1/", origin="http://localhost:1")[0] == 0
    assert judged(target="http://localhost:1/", origin=f"http://{HOST}")[0] == 403


def test_a_unix_socket_has_no_name() -> None:
    """No browser connects to one; a proxy that passes on what a browser says is told from a program all the same."""
    assert judged(server=None, host="any.example")[0] == 0
    assert judged(server=None, host="any.example", sec_fetch_site="cross-site")[0] == 403


def test_listed_origins_get_the_headers_of_cors() -> None:
    """Whatever Sec-Fetch-Site says; those that are not listed are told apart by caches."""
    shared = {"Access-Control-Allow-Origin": GOOD, "Vary": "Origin", "Access-Control-Expose-Headers": "*"}
    assert judged(origins=(GOOD,), origin=GOOD, sec_fetch_site="cross-site") == (0, shared)
    assert judged(origins=(GOOD,), origin=EVIL) == (403, {"Vary": "Origin"})
    assert judged(origins=(GOOD,)) == (0, {"Vary": "Origin"})
    assert judged(origins=("*",), origin="null")[1]["Access-Control-Allow-Origin"] == "null"
    assert judged(origins=(GOOD,), origin=GOOD, host="evil.example")[0] == 403
    assert judged(origins=(GOOD,), origin=f"{GOOD}.evil.example")[0] == 403


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"origin": f"http://{HOST}"}, 0),
        ({"origin": f"https://{HOST}"}, 0),  # a proxy ended TLS
        ({"origin": f"http://{HOST}", "sec_fetch_site": "cross-site"}, 0),  # ws: is another scheme than http:
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "http://127.0.0.1:8080"}, 403),
        ({"origin": f"http://{HOST}.evil.example"}, 403),
        ({"origin": f"http://{HOST}, {EVIL}"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": EVIL}, 403),
        ({"origin": EVIL, "sec_fetch_site": "same-origin"}, 403),
        ({"origin": "http://evil.example:8080", "host": "evil.example:8080"}, 403),  # a name that was made to lead here
        ({"origin": GOOD}, 0),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({}, 0),
    ],
)
def test_H057_pages_of_this_transport_may_open_a_websocket(fields: dict[str, str], status: int) -> None:
    """And those of listed origins, and programs; the Origin decides, and the name of the transport comes first."""
    assert judged(origins=(GOOD,), type="websocket", method="GET", **fields)[0] == status


# Through a transport


class Noted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, x: bytes) -> bytes:
        self.calls += 1
        return x


async def asked(served: Any, method: str, path: str, *, http2: bool, host: str = "", **fields: str) -> httpx.Response:
    base = f"http://{served.address}"
    headers = {"host": host} if host else {}
    headers |= {name.replace("_", "-"): value for name, value in fields.items()}
    async with httpx.AsyncClient(http1=not http2, http2=http2, base_url=base, trust_env=False) as client:
        return await client.request(method, path, content=b"x" if method == "POST" else None, headers=headers)


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("path", ["/", "/graphpipe", "/nothing", "/livez", "/readyz", "/control/is_alive"])
async def test_every_path_refuses_foreign_pages_and_names(path: str, http2: bool) -> None:
    """By HTTP/1.1 and by h2c, where the name is :authority; nothing is invoked."""
    noted = Noted()
    async with serving_models(noted.run) as served:
        method = "POST" if path in ("/", "/graphpipe") else "GET"
        port = served.address.rpartition(":")[2]
        for fields in (CROSS, {"origin": EVIL}, {"origin": "null"}, {"host": f"evil.example:{port}"}):
            response = await asked(served, method, path, http2=http2, **fields)
            assert (response.status_code, response.headers["content-type"]) == (403, "text/plain; charset=utf-8")
            assert response.text.startswith("Invoker: Forbidden: ")
            assert response.headers["x-content-type-options"] == "nosniff"
        assert noted.calls == 0
        for fields in ({}, {"origin": f"http://{served.address}"}, {"host": f"[::1]:{port}"}, {"host": "localhost"}):
            response = await asked(served, method, path, http2=http2, **fields)
            assert response.status_code != 403
            assert response.headers["x-content-type-options"] == "nosniff"
        assert noted.calls == (path == "/") * 4


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("path", ["/", "/graphpipe", "/livez"])
async def test_preflights_of_listed_origins_are_answered(path: str, http2: bool) -> None:
    """Without running anything; what follows gets its headers, also with an error; other origins are refused."""
    noted = Noted()
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "content-type, x-a"}
    async with serving_models(noted.run, http=HttpSettings(origins=(GOOD,))) as served:
        response = await asked(served, "OPTIONS", path, http2=http2, origin=GOOD, **CROSS, **asks)
        assert (response.status_code, response.content) == (204, b"")
        allowed = {name: value for name, value in response.headers.items() if name.startswith("access-control-")}
        assert allowed == {
            "access-control-allow-origin": GOOD,
            "access-control-allow-methods": "GET, HEAD, POST",
            "access-control-allow-headers": "content-type, x-a",
            "access-control-max-age": "600",
        }
        assert (await asked(served, "OPTIONS", path, http2=http2, origin=EVIL, **CROSS, **asks)).status_code == 403
        assert (await asked(served, "OPTIONS", path, http2=http2, origin=GOOD)).status_code == 405
        for method in ("GET", "POST"):
            response = await asked(served, method, path, http2=http2, origin=GOOD, **CROSS)
            assert response.status_code != 403
            assert response.headers["access-control-allow-origin"] == GOOD
            assert "Origin" in response.headers["vary"]
        assert noted.calls == (path == "/")


async def test_what_a_function_says_of_cors_gives_way() -> None:
    """A header stands once; its Vary stays beside ours."""

    async def bold(x: bytes) -> Message[bytes]:
        told = {"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "sniff", "Vary": "Accept"}
        return Message(x, headers=told)

    async with Served.at(bold, settings=HttpSettings(origins=(GOOD,))) as served:
        response = await asked(served, "POST", "/", http2=False, origin=GOOD)
    assert response.headers.get_list("access-control-allow-origin") == [GOOD]
    assert response.headers.get_list("x-content-type-options") == ["nosniff"]
    assert response.headers.get_list("vary") == ["Accept", "Origin"]


async def test_a_refused_body_is_not_read() -> None:
    """The refusal comes for the head; who waits for the word is not told to go on."""
    async with Served.at(Noted().run) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: evil.example\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (403, "close")


async def upper(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        yield one.upper()


async def test_handshakes_have_the_same_rules() -> None:
    """Of WebSockets, by name and by page; the refusal is a response."""
    async with serving_sockets(upper, origins=(GOOD,)) as served:
        port = served.address.rpartition(":")[2]
        for how, status in (
            ({"origin": GOOD}, 101),
            ({"origin": GOOD, "headers": CROSS}, 101),
            ({"headers": CROSS}, 403),
            ({"origin": EVIL}, 403),
            ({}, 101),
        ):
            async with served.peer(**how) as peer:
                assert peer.status == status
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        try:
            writer.write(
                b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert head.startswith("http/1.1 403")
            assert "x-content-type-options: nosniff" in head
        finally:
            writer.transport.abort()


async def test_ipv6_loopback_is_loopback() -> None:
    """A transport on ::1 checks names, too, and answers to its own."""
    try:
        async with Served.at(Noted().run, host="::1") as served:
            for host, status in ((served.address, 200), ("localhost", 200), ("evil.example", 403)):
                assert (await asked(served, "POST", "/", http2=False, host=host)).status_code == status
    except StartupError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_H157_credentials_are_for_origins_that_are_named() -> None:
    """Headers that pages may read are named then, too, since a star is no wildcard with credentials."""
    shared = judged(origins=(GOOD,), origin=GOOD, has_credentials=True)[1]
    assert (shared["Access-Control-Allow-Origin"], shared["Access-Control-Allow-Credentials"]) == (GOOD, "true")
    assert "traceparent" in shared["Access-Control-Expose-Headers"]
    assert "*" not in shared["Access-Control-Expose-Headers"]
    for told in (
        judged(origins=("*",), origin=GOOD, has_credentials=True),
        judged(origins=(GOOD,), origin=GOOD),
        judged(origins=(GOOD,), origin=EVIL, has_credentials=True),
    ):
        assert "Access-Control-Allow-Credentials" not in told[1]


async def test_H157_a_function_cannot_let_credentials_in() -> None:
    """Whatever it says, the list of origins decides."""

    async def bold(x: bytes) -> Message[bytes]:
        return Message(x, headers={"Access-Control-Allow-Credentials": "true"})

    for settings, told in (
        (HttpSettings(origins=("*",)), None),
        (HttpSettings(origins=(GOOD,)), None),
        (HttpSettings(origins=(GOOD,), has_credentials=True), "true"),
    ):
        async with Served.at(bold, settings=settings) as served:
            response = await asked(served, "POST", "/", http2=False, origin=GOOD)
            assert response.headers.get("access-control-allow-credentials") == told


async def counted(to: int = 2) -> AsyncIterator[int]:
    for one in range(to):
        yield one


@pytest.mark.parametrize("http2", [False, True])
async def test_H158_functions_and_streams_can_be_called_by_listed_pages(http2: bool) -> None:
    """With a preflight, with each stream, and with what went wrong."""
    asks = {"access-control-request-headers": "content-type, traceparent"}
    async with Served.at(counted, settings=HttpSettings(origins=(GOOD,), has_credentials=True)) as served:
        for path in ("/counted", "/", "/functions", "/openapi.json", "/counted/ws"):
            for method in ("GET", "POST"):
                fields = {**asks, "access-control-request-method": method, "origin": GOOD}
                response = await asked(served, "OPTIONS", path, http2=http2, **fields)
                assert response.status_code == 204
                assert response.headers["access-control-allow-credentials"] == "true"
                assert response.headers["access-control-allow-headers"] == "content-type, traceparent"
                fields["origin"] = EVIL
                assert (await asked(served, "OPTIONS", path, http2=http2, **fields)).status_code == 403
        for accept in ("text/event-stream", "application/x-ndjson", "multipart/mixed", "image/png"):
            fields = {"origin": GOOD, "accept": accept, "accept-encoding": "gzip", **CROSS}
            response = await asked(served, "POST", "/counted", http2=http2, **fields)
            assert (response.status_code == 406) == (accept == "image/png")
            assert response.headers["access-control-allow-origin"] == GOOD
            assert set(", ".join(response.headers.get_list("vary")).split(", ")) >= {"Origin"}


@pytest.mark.parametrize("http2", [False, True])
async def test_H158_OPTIONS_that_is_no_preflight_is_405(http2: bool) -> None:
    """With what is allowed; no page has asked."""
    async with Served.at(counted) as served:
        for path, allow in (("/counted", "POST"), ("/", "POST"), ("/livez", "GET, HEAD")):
            response = await asked(served, "OPTIONS", path, http2=http2)
            assert (response.status_code, response.headers["allow"]) == (405, allow)
            assert not [name for name in response.headers if name.startswith("access-control-")]
