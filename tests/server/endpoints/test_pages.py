"""`invoker.server.endpoints.pages`: what the process itself answers, with the real machinery behind it."""

from __future__ import annotations

import asyncio

import pytest

from invoker.server.endpoints.pages import PagesService
from tests.attach.around import around
from tests.transports.served import Served


def square(x: int) -> int:
    return x * x


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_R156_probes_do_not_touch_the_function(path: str) -> None:
    """They read only, and answer at once."""
    async with Served.at(square) as served, served.client() as client:
        response = await client.get(path)
        assert (response.status_code, response.text) == (200, "ok\n")
        assert (await client.head(path)).status_code == 200
        response = await client.post(path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
        assert served.driver.engine.counters.opened == 0


async def test_R156_readiness_is_asked_for() -> None:
    """Live is not ready: only /readyz follows the callable."""

    async def is_ready() -> bool:
        return False

    async with Served.at(square, is_ready=is_ready) as served, served.client() as client:
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/healthz")).status_code == 200


async def test_metrics_are_what_the_process_has_counted() -> None:
    """In the media type that they come in."""
    async with Served.at(square, metrics=lambda: ("text/x", b"up 1\n")) as served, served.client() as client:
        response = await client.get("/metrics")
        assert (response.headers["content-type"], response.content) == ("text/x", b"up 1\n")
        refused = await client.post("/metrics")
        assert refused.status_code == 405
        assert "a function 'metrics' is called at '/' with the header Invoker-Function" in refused.text


async def test_R156_a_ready_check_that_takes_too_long_says_no(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is cancelled after its time, and the log has it; the next one is asked anew."""
    monkeypatch.setattr("invoker.server.endpoints.pages._READY_S", 0.05)
    hangs = True
    cancelled = asyncio.Event()

    async def is_ready() -> bool:
        if hangs:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        return True

    async with Served.at(square, is_ready=is_ready) as served, served.client() as client:
        response = await client.get("/readyz")
        assert (response.status_code, response.text) == (503, "not ready\n")
        assert cancelled.is_set()
        assert "the ready check took longer than 0.05 s" in caplog.text
        hangs = False
        assert (await client.get("/readyz")).status_code == 200


def test_only_its_own_paths_are_claimed() -> None:
    """Others are for protocols."""
    service = PagesService(around(square))
    assert [path for path in ("/", "/metrics", "/metric", "/readyz/", "/livez") if service.http_handler(path)] == [
        "/metrics",
        "/livez",
    ]


def test_the_metrics_are_those_of_the_process() -> None:
    """As Prometheus reads them."""
    handler = PagesService(around(square)).http_handler("/metrics")
    assert handler is not None
    media_type, body = handler._metrics()
    assert media_type.startswith("text/plain")
    assert b"invoker_frames_in_total 3.0" in body
