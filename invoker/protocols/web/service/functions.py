"""`FunctionsService`: serves a list of the functions and an OpenAPI document over HTTP.

Both are made on the first request and then kept in memory. They only change when transports open or close, so the
protocols and their addresses are the key of the cache.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from invoker.attach.service import Service, Surroundings
from invoker.core.http import Response
from invoker.core.problems import only_read

if TYPE_CHECKING:
    from invoker.author.lift import Function
    from invoker.core.engine import Engine
    from invoker.core.http import RequestHead
    from invoker.protocols.web.openapi import Document
    from invoker.settings import Config
    from invoker.transports.http.exchange import Exchange

FUNCTIONS: Final = "/functions"
OPENAPI: Final = "/openapi.json"

Spoken = tuple[tuple[str, str], ...]
"""Names of protocols, each with the address where it is served."""


class FunctionsService(Service):
    """Describes the inputs and outputs of the functions, while the setting ``reflection`` is on (H-060)."""

    name = "functions"
    on_http = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._handler = FunctionsHandler(around.driver.engine, around.spoken, around.hides)

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:
        """Whether the service is served: only over HTTP, and only while ``reflection`` is on."""
        return is_chosen and has_http and config.reflection

    def http_handler(self, path: str) -> FunctionsHandler | None:
        """The handler of ``/functions`` and ``/openapi.json``; None for other paths."""
        return self._handler if path in self._handler.paths else None


class Page(NamedTuple):
    """A document as it is sent.

    Attributes:
        body: The JSON document.
        tag: The ETag of the body, in quotes.
    """

    body: bytes
    tag: str


class FunctionsHandler:
    """Answers ``/functions`` and ``/openapi.json``.

    Args:
        engine: The engine, which has the functions and their codecs.
        spoken: Returns the protocols that are served now, with their addresses.
        hides: Returns whether a function has no path, because something else is served at the path of its name.

    Attributes:
        paths: For each path that is served, the method that makes the document.
    """

    def __init__(self, engine: Engine, spoken: Callable[[], Spoken], hides: Callable[[str], bool]) -> None:
        self.paths: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
            FUNCTIONS: self._functions,
            OPENAPI: self._openapi,
        }
        self._engine = engine
        self._spoken = spoken
        self._hides = hides
        self._pages: dict[str, tuple[Spoken, Page]] = {}

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with the document of the path; methods other than GET and HEAD get 405."""
        head = exchange.head
        if head.method not in ("GET", "HEAD"):
            return only_read(head)
        page = await self.page(head.path)
        headers = (("ETag", page.tag), ("Cache-Control", "no-cache"))
        if _is_known(head, page.tag):
            return Response(304, headers, b"")
        return Response(200, (("Content-Type", "application/json"), *headers), page.body)

    async def page(self, path: str) -> Page:
        """The document of a path; it is made anew if transports have opened or closed meanwhile."""
        spoken = self._spoken()
        known = self._pages.get(path)
        if known is None or known[0] != spoken:
            from hashlib import sha256  # the import takes 2 ms, which the start is spared

            made = await self.paths[path]()
            body = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            known = self._pages[path] = spoken, Page(body, f'"{sha256(body).hexdigest()[:32]}"')
        return known[1]

    async def _functions(self) -> dict[str, Any]:
        from invoker.author.described import described, listed
        from invoker.version import __version__

        functions = []
        for one in self._engine.catalog:
            functions.append(self._placed(listed(described(one.spec))))
            # to describe a function takes up to some milliseconds, and other tasks need the loop
            await asyncio.sleep(0)
        protocols = [{"name": name, "address": address} for name, address in self._spoken()]
        return {"functions": functions, "protocols": protocols, "version": __version__}

    async def _openapi(self) -> dict[str, Any]:
        from invoker.protocols.web.openapi import Document

        document = Document()
        for one in self._engine.catalog:
            if not self._hides(one.spec.name):
                _add(document, one, self._engine)
                await asyncio.sleep(0)
        return document.finished()

    def _placed(self, function: dict[str, Any]) -> dict[str, Any]:
        """The description of a function, with its paths."""
        from invoker.protocols.web.openapi import path_of

        name = function["name"]
        path = path_of(name)
        return {"name": name, "path": None if self._hides(name) else path, "socket": f"{path}/ws", **function}


def openapi_of(engine: Engine) -> dict[str, Any]:
    """The OpenAPI document of all functions that an engine runs."""
    from invoker.protocols.web.openapi import Document

    document = Document()
    for one in engine.catalog:
        _add(document, one, engine)
    return document.finished()


def _add(document: Document, function: Function, engine: Engine) -> None:
    from invoker.author.described import described
    from invoker.protocols.web.fields import signature_of

    document.add(described(function.spec), signature_of(function.spec, engine.registry_for(function)))


def _is_known(head: RequestHead, tag: str) -> bool:
    """Whether the client already has the current document (RFC 9110, 13.1.2)."""
    known = [one.strip().removeprefix("W/") for one in head.value("if-none-match").split(",")]
    return tag in known or "*" in known
