"""docs/reference/http.md: its numbers are those of the code, and its paths are answered as it says."""

from __future__ import annotations

import re

import pytest

from invoker.transports import sockets
from invoker.transports.http import exchange, h2limits, heads
from invoker.transports.http import socketconnection as socketline
from invoker.transports.http import transport as http
from invoker.transports.http.app import SocketSettings
from tests.pages import ROOT
from tests.transports.models import serving_models

PAGE = (ROOT / "docs/reference/http.md").read_text()


def limit(what: str) -> list[int]:
    """The numbers of one row of the table of limits."""
    found = re.search(rf"^\| {re.escape(what)}[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)
    assert found is not None, what
    return [int(one) for one in re.findall(r"\d+", found[1].replace("HTTP/1", "").replace("HTTP/2", ""))]


def test_the_limits_are_those_of_the_code() -> None:
    """Each of those that have no setting."""
    settings = exchange.HttpSettings()
    sizes = [heads.MOST_BYTES >> 10, h2limits.MOST_HEAD_BYTES >> 10]
    assert limit("the head of a request") == sizes
    assert limit("a connection without a request") == [settings.idle_s]
    assert limit("a client that takes nothing") == [settings.write_s]
    alive = dict(sockets._ALIVE)
    assert limit("a peer whose machine is gone") == [
        alive["TCP_KEEPIDLE"] + alive["TCP_KEEPINTVL"] * alive["TCP_KEEPCNT"]
    ]
    assert limit("requests at once on a connection") == [h2limits.MOST_STREAMS]
    counted = [h2limits._ALLOWANCE, h2limits._PER_SECOND, h2limits._RESET_FRAMES, h2limits._SETTING_BYTES]
    assert limit("frames of HTTP/2 that ask for nothing") == counted
    assert limit("CONTINUATION frames") == [h2limits._CONTINUATIONS]
    body_time = f"{settings.body_s:g} s, and a second more for each {settings.body_bytes_per_s:g} bytes |"
    assert f"| a body that is one value, in time | {body_time}" in PAGE
    socket = SocketSettings()
    assert limit("a WebSocket that takes nothing") == [socket.write_s]
    assert (f"three pings, of which one is sent every {socket.ping_s:g} s" in PAGE, socketline._SILENCES) == (True, 3)
    assert ("half of the file descriptors" in PAGE, http._SHARE) == (True, 2)


async def echo(x: bytes) -> bytes:
    return x


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_the_paths_take_the_methods_that_the_page_lists(method: str) -> None:
    """Those that it does not list are 405, and a path that it does not list is 404."""
    table = PAGE.partition("## Call a function")[0]
    rows = re.findall(r"^\| (`/[^|]*) \| ([A-Z, ]+) \| ([^|]*) \|", table, re.MULTILINE)
    listed: dict[str, set[str]] = {}
    for paths, methods, what in rows:
        if "the page" in what:
            continue  # it is not served here
        for path in re.findall(r"`(/[^`]*)`", paths):
            listed.setdefault(path, set()).update(methods.split(", "))
    assert len(listed) >= 12, "the table has another form"
    async with serving_models(echo) as served, served.client() as client:
        served.transport.app._metrics = lambda: ("text/plain", b"")
        for path, methods in listed.items():
            if "NAME" in path or "METHOD" in path:  # these are patterns
                continue
            status = (await client.request(method, path, content=b"x")).status_code
            assert (status == 405) == (method not in methods), path
        assert (await client.request(method, "/nowhere", content=b"x")).status_code == 404
