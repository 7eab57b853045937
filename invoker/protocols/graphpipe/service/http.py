"""GraphPipe over HTTP: models at ``/graphpipe``, ``/graphpipe/NAME`` and, by a setting, ``/``; and readiness checks.

A POST is an inference. A GET returns the description of the model, as JSON with the keys of the Go implementation, or
as HTML if the client prefers that. Errors of an inference are buffers with any HTTP status (G-082); errors of HTTP are
text.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from invoker.attach.service import IsReady
from invoker.core.budget import Share
from invoker.core.http import RequestHead, Response
from invoker.errors import DeadlineExceeded, InvocationError, Overloaded
from invoker.execution.placement import Placement, placement_of
from invoker.mediatypes import rank
from invoker.message import Headers
from invoker.protocols.graphpipe.answer import Reply
from invoker.protocols.graphpipe.errors import translated
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.page import page
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.protocols.graphpipe.service.prompt import PromptInference
from invoker.protocols.graphpipe.service.told import ToldSession, can_tell
from invoker.protocols.graphpipe.wire import ERROR_HEADER, OCTETS
from invoker.tensors import Code, GraphPipeError, http_status, listing
from invoker.transports.http.app import Begin, PreparedRequest, PromptHandler, RequestSession, WholeHandler
from invoker.transports.http.exchange import Exchange

log = logging.getLogger(__name__)

_ALLOW: Final = (("Allow", "GET, HEAD, POST"),)
_JSON: Final = "application/json"
_HTML: Final = "text/html"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_BUSY: Final = frozenset({Code.OVERLOADED, Code.NOT_READY})
_LARGEST_DIGITS: Final = 18
_MOST_BYTES: Final = 1 << 16
"""The largest size of a small body, in bytes."""


class GraphPipeHandler(PromptHandler, WholeHandler):
    """Answers requests for models.

    Args:
        inferences: Runs the inferences.
        path: The path of the first model; those of the others are below it.
        is_ready: Returns whether this process should get traffic.
    """

    takes_packed = False
    """A buffer that is packed is refused here (G-006)."""

    def __init__(self, inferences: Inferences, *, path: str, is_ready: IsReady) -> None:
        self._inferences = inferences
        self._path = path
        self._is_ready = is_ready

    async def answer(self, exchange: Exchange) -> Response:
        """Run an inference, describe a model, or report readiness, depending on the path and the method."""
        head = exchange.head
        if exchange.path.startswith("/control/"):
            return await self._control(head)
        model = self._model(exchange.path)
        if model is None:
            return _logged(
                head, _text(404, f"{exchange.path!a} is not a path of this server; models are at {self._where()}")
            )
        if head.method in ("GET", "HEAD"):
            if not model.is_told:
                return _logged(head, _text(404, "models are not described here; POST infers"))
            return _logged(head, self._described(model, head), request="description")
        if head.method != "POST":
            return _logged(head, _text(405, f"{head.method!a} is not allowed; POST infers, GET describes", _ALLOW))
        if (refused := self._refused(head)) is not None:
            return refused
        return await self._infer(exchange, model, head)

    def prompt(self, head: RequestHead) -> Begin | None:
        """The callback for a small inference with this head, which needs no task; None for others (G-102)."""
        found = self.whole(head)
        return None if found is None else found.listen

    def whole(self, head: RequestHead) -> Inferring | None:
        """Prepare for small inferences with this head, which a thread can answer; None for others."""
        model = self._model(head.path) if head.method == "POST" else None
        size = _announced(head)
        if model is None or size is None or not can_tell(model) or _misfit(head) is not None:
            return None
        if size > min(_MOST_BYTES, self._inferences.limit_bytes):
            return None
        return Inferring(self._inferences, model, head, self._reply)

    async def _infer(self, exchange: Exchange, model: Model, head: RequestHead) -> Response:
        try:
            body = await exchange.whole(self._inferences.limit_bytes)
            if body is None:
                return self._too_large(head)
            metadata = _metadata(head)
            return self._reply(
                await self._inferences.infer(
                    model, body, exchange.share, metadata=metadata, transport=_transport(head), peer=exchange.peer
                )
            )
        except Overloaded as error:
            return self._reply(self._inferences.refuse(translated(error), transport=_transport(head)), close=True)
        except DeadlineExceeded as error:
            return _logged(head, _text(408, error.detail, close=True))  # G-014

    def _refused(self, head: RequestHead) -> Response | None:
        """The refusal of a request by its head, before the body is read; None if the head is valid."""
        if (refused := _misfit(head)) is not None:
            return _logged(head, refused)
        announced = _announced(head)
        return self._too_large(head) if announced is not None and announced > self._inferences.limit_bytes else None

    def _too_large(self, head: RequestHead) -> Response:
        error = GraphPipeError(Code.TOO_LARGE, f"the request has more than {self._inferences.limit_bytes} bytes")
        return self._reply(self._inferences.refuse(error, transport=_transport(head)), close=True)

    def _reply(self, answered: Reply, *, close: bool = False) -> Response:
        headers = [("Content-Type", OCTETS)]
        status = 200
        if (error := answered.error) is not None:
            headers.append((ERROR_HEADER, str(int(error.code))))
            status = 200 if self._inferences.settings.plain_status else http_status(error.code)
            if error.code in _BUSY:
                headers.append(("Retry-After", "1"))
        return Response(status, tuple(headers), b"", answered.pieces, close)

    def _described(self, model: Model, head: RequestHead) -> Response:
        """The response with the metadata, as JSON unless the client prefers HTML; there is no invocation (G-092)."""
        found = rank(head.value("accept").strip() or "*/*", [_JSON, _HTML])
        if not found:
            return _text(406, f"the metadata is {_JSON} or {_HTML}, and Accept allows neither")
        vary = ("Vary", "Accept")
        if found[0][0] == _HTML:
            headers = (("Content-Type", f"{_HTML}; charset=utf-8"), vary, ("Content-Security-Policy", _POLICY))
            return Response(200, headers, page(model.metadata, head.path).encode("utf-8", "replace"))
        text = json.dumps(listing(model.metadata), indent=4, ensure_ascii=False)
        return Response(200, (("Content-Type", _JSON), vary), f"{text}\n".encode("utf-8", "replace"))

    async def _control(self, head: RequestHead) -> Response:
        """G-010, G-011: Answer the readiness checks, which are the only paths below ``/control/``."""
        question = head.path.removeprefix("/control/")
        if question not in ("is_ready", "is_alive"):
            return _text(404, "there are /control/is_ready and /control/is_alive")
        if head.method not in ("GET", "HEAD"):
            return _text(405, "use GET to read this", (("Allow", "GET, HEAD"),))
        is_well = question == "is_alive" or await self._is_ready()
        return _text(200, "ok") if is_well else _text(503, "not ready")

    def _model(self, path: str) -> Model | None:
        if path.rstrip("/") == self._path or (self._inferences.settings.is_root and path == "/"):
            return self._inferences.first
        if not path.startswith(f"{self._path}/"):
            return None
        return self._inferences.models.get(path.removeprefix(f"{self._path}/").rstrip("/"))

    def _where(self) -> str:
        names = self._inferences.driver.engine.catalog.told
        return ", ".join([self._path, *(f"{self._path}/{name}" for name in names if len(names) > 1)])


class Inferring(PreparedRequest):
    """Small inferences that share a head; `listen` answers one on the event loop.

    Args:
        inferences: The inferences, with their limits.
        model: The model of the requests.
        head: The head of the requests.
        make: Makes a response from a reply; ``close``: whether the connection is closed after it.
    """

    def __init__(self, inferences: Inferences, model: Model, head: RequestHead, make: Callable[..., Response]) -> None:
        self.timeout_s = inferences.settings.timeout_s or None
        self.on_loop = placement_of(model.spec) is not Placement.CALL
        self._inferences = inferences
        self._model = model
        self._head = head
        self._make = make
        self._transport = _transport(head)
        self._metadata = _metadata(head)

    def begin(self, body: bytes) -> tuple[RequestSession, Sequence[Any]]:
        """A session for one request, which will receive the body next."""
        return self._session(), (body,)

    def listen(self, request: Exchange) -> PromptInference:
        """Start to answer one request; its frames are handled in callbacks."""
        session = self._session(request.share)
        return PromptInference(request, session, self._inferences.driver, self.timeout_s, self._refuse)

    def refusal(self, error: InvocationError) -> Response:
        """The response to a request that is refused before a session exists."""
        return self._make(self._inferences.refuse(translated(error), transport=self._transport))

    def _session(self, share: Share | None = None) -> ToldSession:
        return ToldSession(
            self._inferences, self._model, self._make, transport=self._transport, metadata=self._metadata, share=share
        )

    def _refuse(self, error: InvocationError) -> Response:
        """The response to a request whose body could not be read."""
        if isinstance(error, DeadlineExceeded):
            return _logged(self._head, _text(408, error.detail, close=True))  # G-014
        return self._make(self._inferences.refuse(translated(error), transport=self._transport), close=True)


def _transport(head: RequestHead) -> str:
    """The description of a request for the log: its method and path."""
    return f"{head.method} {head.path if head.path.isprintable() else ascii(head.path)}"


def _announced(head: RequestHead) -> int | None:
    """The length of the body that the head announces; None if it announces none."""
    digits = head.value("content-length").strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits[-_LARGEST_DIGITS:]) if not digits[:-_LARGEST_DIGITS].strip("0") else sys.maxsize


def _misfit(head: RequestHead) -> Response | None:
    """The refusal of a request whose head shows that it is not an inference; None if it may be one."""
    encoding = head.value("content-encoding").strip().lower()
    if encoding not in ("", "identity"):
        text = f"a body with Content-Encoding {encoding!a} is not supported; send it uncompressed"
        return _text(415, text, (("Accept-Encoding", "identity"),))
    if (accept := head.value("accept").strip()) and not rank(accept, [OCTETS]):
        return _text(406, f"a response is {OCTETS}, which Accept does not allow")
    return None


def _logged(head: RequestHead, response: Response, *, request: str = "nothing") -> Response:
    """Write the log line for a response without a buffer (G-105), and return the response."""
    told = {"request": request, "status": response.status, "bytes": len(response.body)}
    log.info("%s answered", _transport(head), extra=told)
    return response


def _text(status: int, text: str, headers: tuple[tuple[str, str], ...] = (), *, close: bool = False) -> Response:
    always = (("Content-Type", "text/plain"), ("Cache-Control", "no-store"))
    return Response(status, (*always, *headers), f"{text}\n".encode(), close=close)


def _metadata(head: RequestHead) -> Headers:
    """The headers of a request that functions can read (G-108)."""
    joined: dict[str, str] = {}
    for name, value in head.headers:
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return Headers(joined)
