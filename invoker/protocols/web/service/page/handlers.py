"""The handlers of the page.

`PageHandler` answers at ``/`` and passes calls on to the handler below it. `FilesHandler` and `NumbersHandler` serve
what the page loads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from invoker.core.http import RequestHead, Response, ResponseHead
from invoker.core.problems import only_read
from invoker.execution.driver import Driver
from invoker.mediatypes import rank
from invoker.protocols.web.service.page.assets import INDEX, Assets
from invoker.telemetry.live import Live
from invoker.telemetry.pressure import flows
from invoker.transports.http.app import (
    Begin,
    Handler,
    PreparedRequest,
    PromptHandler,
    WholeHandler,
    prompt_of,
    whole_of,
)
from invoker.transports.http.exchange import Exchange

MOST_WATCHERS: Final = 8

_HTML: Final = "text/html"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PERIOD_S: Final = 0.25
_BEAT: Final = 60
"""After this many periods without news a comment is sent, so that the client sees that the server is alive."""


class PageHandler(PromptHandler, WholeHandler):
    """Sends the page to clients that ask for HTML, and passes all other requests on to another handler.

    Args:
        assets: The files of the page.
        below: The handler that answers all other requests.
    """

    def __init__(self, assets: Assets, below: Handler) -> None:
        self._assets = assets
        self._below = below

    async def answer(self, exchange: Exchange) -> Response | None:
        """Answer one request."""
        if wants_page(exchange.head):
            return self._assets.answer(exchange.head, INDEX, (("Vary", "Accept"),))
        return await self._below.answer(exchange)

    def prompt(self, head: RequestHead) -> Begin | None:
        """Return the callback of the handler below; None for the page, which needs a task."""
        return None if wants_page(head) else prompt_of(self._below, head)

    def whole(self, head: RequestHead) -> PreparedRequest | None:
        """Return the prepared requests of the handler below; None for the page, which is answered on the event loop."""
        return None if wants_page(head) else whole_of(self._below, head)


def wants_page(head: RequestHead) -> bool:
    """Whether the client wants HTML: Accept lists HTML, and ranks it before all types of functions' values."""
    accept = head.value("accept").lower()
    if head.method not in ("GET", "HEAD") or _HTML not in accept:
        return False
    found = rank(accept, [_HTML, _JSON, _EVENTS])
    return bool(found) and found[0][0] == _HTML


class FilesHandler(Handler):
    """Serves the files of the page.

    Args:
        assets: The files.
        folder: The path below which they are served.
    """

    def __init__(self, assets: Assets, folder: str) -> None:
        self._assets = assets
        self._folder = folder

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one request."""
        return self._assets.answer(exchange.head, exchange.path.removeprefix(self._folder))


class NumbersHandler(Handler):
    """Sends the live numbers: as server-sent events, four times a second while anything changes, or once as JSON.

    Args:
        driver: The driver of the invocations; its drain ends the streams.
        workers: The number of processes that share the port, this one included.
    """

    def __init__(self, driver: Driver, *, workers: int = 1) -> None:
        self._live = Live(driver.engine, workers=workers, flows=partial(flows, driver))
        self._driver = driver
        self._leaving: set[asyncio.Event] = set()

    async def answer(self, exchange: Exchange) -> Response | None:
        """Answer one request."""
        head = exchange.head
        if head.method not in ("GET", "HEAD"):
            return only_read(head)
        found = rank(head.value("accept") or "*/*", [_JSON, _EVENTS])
        if not found:
            text = f"the numbers are {_JSON} or {_EVENTS}, and Accept allows neither\n"
            return Response(406, (("Content-Type", "text/plain"),), text.encode())
        vary = (("Cache-Control", "no-store"), ("Vary", "Accept"))
        if found[0][0] == _JSON:
            return Response(200, (("Content-Type", _JSON), *vary), self._live.encoded(self._live.snapshot()))
        if len(self._leaving) >= MOST_WATCHERS or self._driver.engine.is_draining:
            refused = (("Content-Type", "text/plain"), ("Retry-After", "5"))
            return Response(503, refused, b"too many watch already, or the process drains\n")
        exchange.begin(ResponseHead(200, (("Content-Type", _EVENTS), *vary)))
        if head.method == "GET":
            await self._stream(exchange)
        exchange.end()
        return None

    async def _stream(self, exchange: Exchange) -> None:
        leaving = asyncio.Event()
        self._leaving.add(leaving)
        leave: Callable[[], None] = leaving.set
        self._driver.drains.add(leave)
        try:
            with self._live.watching():
                await self._tell(exchange, leaving)
        finally:
            self._driver.drains.discard(leave)
            self._leaving.discard(leaving)

    async def _tell(self, exchange: Exchange, leaving: asyncio.Event) -> None:
        """Write snapshots until the client leaves or the drain begins.

        A slow client gets fewer snapshots, but never old ones.
        """
        last: object = None
        quiet = 0
        while not (exchange.is_gone or leaving.is_set()):
            snapshot = self._live.snapshot()
            news = (snapshot["invocations"], snapshot["counts"])
            quiet = 0 if news != last else quiet + 1
            if not quiet or quiet % _BEAT == 0:
                data = b"data: %b\n\n" % self._live.encoded(snapshot) if not quiet else b": still here\n\n"
                if not exchange.write(data):
                    await exchange.room()
            last = news
            try:
                async with asyncio.timeout(_PERIOD_S):
                    await leaving.wait()
            except TimeoutError:
                continue
