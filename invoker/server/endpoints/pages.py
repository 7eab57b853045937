"""`PagesService`: attaches the process's own pages to its HTTP transport: its health, and its metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from invoker.attach.service import IsReady, Service, Surroundings
from invoker.core.http import Response
from invoker.core.problems import only_read

if TYPE_CHECKING:
    from invoker.settings import Config
    from invoker.transports.http.exchange import Exchange

log = logging.getLogger(__name__)

PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/metrics"})
_TEXT: Final = ("Content-Type", "text/plain")
_READY_S: Final = 5.0


class PagesService(Service):
    """The pages of the process, which call no function (R-156)."""

    name = "pages"
    on_http = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        from invoker.telemetry.metrics import Metrics

        self._handler = PagesHandler(around.is_ready, Metrics(around.numbers, around.families).render)

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """Whether the pages are chosen, and there is an HTTP transport to serve them."""
        return is_chosen and has_http

    def http_handler(self, path: str) -> PagesHandler | None:
        """The handler of the pages' paths; None for any other path."""
        return self._handler if path in PATHS else None


class PagesHandler:
    """Answers ``/healthz``, ``/livez``, ``/readyz`` and ``/metrics``.

    Args:
        is_ready: Whether this process should get traffic.
        metrics: Gives the media type and body of ``/metrics``.
    """

    def __init__(self, is_ready: IsReady, metrics: Callable[[], tuple[str, bytes]]) -> None:
        self._is_ready = is_ready
        self._metrics = metrics

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one request for a page; other methods than GET and HEAD get 405."""
        head = exchange.head
        if head.method not in ("GET", "HEAD"):
            return only_read(head)
        if head.path == "/metrics":
            media_type, body = self._metrics()
            return Response(200, (("Content-Type", media_type), ("Cache-Control", "no-store")), body)
        is_well = head.path != "/readyz" or await self._ready()
        status, text = (200, b"ok\n") if is_well else (503, b"not ready\n")
        return Response(status, (_TEXT, ("Cache-Control", "no-store")), text)

    async def _ready(self) -> bool:
        try:
            async with asyncio.timeout(_READY_S):
                return await self._is_ready()
        except TimeoutError:
            log.warning("the ready check took longer than %s s", _READY_S)
            return False
