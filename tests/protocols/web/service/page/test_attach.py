"""Whether there is a page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from invoker.errors import ConfigError
from invoker.protocols.web.service.page.attach import PageService
from invoker.server.building import build
from invoker.server.table import TABLE
from tests.attach.around import around

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def square(x: int) -> int:
    return x * x


def service(address: str | None, **settings: Any) -> PageService:
    return PageService(replace(around(square, **settings), http_address=lambda: address))


@pytest.mark.parametrize(
    ("page", "address", "is_on"),
    [
        ("auto", "127.0.0.1:8080", True),
        ("auto", "[::1]:8080", True),
        ("auto", "0.0.0.0:8080", False),
        ("auto", "192.0.2.1:8080", False),
        ("auto", "[::]:8080", False),
        ("auto", "", False),
        ("auto", None, False),
        ("on", "0.0.0.0:8080", True),
        ("on", None, True),
    ],
)
def test_H071_the_page_is_there_where_only_this_machine_sees_it(page: str, address: str | None, is_on: bool) -> None:
    """Unless the setting says otherwise; where nobody knows what is bound, there is none."""
    one = service(address, page=page)
    below = object()
    assert (one.http_handler("/invocations") is not None) is is_on
    assert (one.http_handler("/_page/main.js") is not None) is is_on
    assert (one.http_over("/", below) is not below) is is_on


def test_H071_the_setting_has_three_values() -> None:
    """A fourth stops the start; with `off` nothing is served."""
    with pytest.raises(ConfigError, match="INVOKER_PAGE"):
        TABLE.read({"INVOKER_PAGE": "maybe"})
    for page in ("auto", "on", "off"):
        config = TABLE.read({}, {"page": page})
        assert (PageService in TABLE.own(config)) is (page != "off")
    assert PageService not in TABLE.own(TABLE.read({}, {"http": False}))


def test_only_its_own_paths_are_claimed() -> None:
    """Others are for functions, also those with similar names."""
    one, below = service("127.0.0.1:1"), object()
    for path in ("/invocations/", "/invocation", "/_page", "/page", "/_pagemain.js"):
        assert one.http_handler(path) is None
    for path in ("", "/square", "//", "/index.html"):
        assert one.http_over(path, below) is below


async def test_H070_a_server_gives_the_page_to_a_browser_only() -> None:
    """All else at / is as before: functions are called, and a GET without HTML gets its 405."""
    server = build(
        TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, protocols=("http",)), "functions.square:square"
    )
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client:
        page = await client.get("/", headers=HTML)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.text.startswith("<!doctype html>")
        assert "Accept" in page.headers["vary"]
        for path in ("main.js", "page.css", "icon.svg"):
            assert (await client.get(f"/_page/{path}")).status_code == 200
        assert (await client.post("/", content=b"7", headers=HTML | {"Accept": "text/html, */*"})).text == "49"
        assert (await client.get("/")).status_code == 405
        assert (await client.get("/invocations")).json()["counts"]["opened"] == 1
    await server.stop(drain_s=0)


async def test_H071_without_the_page_everything_is_as_it_was() -> None:
    """GET / is 405 for a browser, too, and the paths of the page are nobody's."""
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, protocols=("http",), page="off")
    server = build(config, "functions.square:square")
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client:
        assert (await client.get("/", headers=HTML)).status_code == 405
        assert (await client.get("/_page/main.js")).status_code in (404, 405)
        assert (await client.get("/invocations")).status_code in (404, 405)
    await server.stop(drain_s=0)
