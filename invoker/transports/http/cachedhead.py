"""`CachedHead`: a parsed head of a request; `Heads` reads those of one HTTP/1.1 connection, `SharedHeads` all others.

A connection of HTTP/1.1 caches its last parsed head, because the next head often has the same bytes. Requests over
HTTP/2 or from an ASGI server are interleaved, so all of them share one cache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import msgspec

from invoker.execution.driver import Driver
from invoker.transports.http.answering import BodyFirst, begin_unary
from invoker.transports.http.app import FAULT, Begin, Handler, HttpApp, prompt_of, whole_of
from invoker.transports.http.handshake import closing, shake_hands
from invoker.transports.http.heads import Head, check_begun, read_head
from invoker.transports.http.origins import Verdict
from invoker.transports.http.request import Request

log = logging.getLogger(__name__)

_END: Final = b"\r\n\r\n"
_MOST_KNOWN: Final = 64
_Sent = TypeVar("_Sent", bound=Hashable)


class CachedHead:
    """A parsed head, valid for all requests with the same bytes.

    Args:
        head: The head.
        app: Decides whether the client may call, and has the handlers.
        is_local: Whether it came by a Unix socket.
        data: Its bytes.

    Attributes:
        data: The bytes of the head.
        head: The head for the handler.
        verdict: Whether the client may call.
        handler: The handler of the path; None: there is none.
        begin: Begins to answer a request without a task; None: the handler needs a task.
        packed: The codings of the body.
        choice: The coding of the response.
        is_traced: Whether it is valid only for this request.
        prepared: The prepared request by which a request that has come whole is answered on the loop; None: a listener
            answers it.
    """

    __slots__ = ("begin", "choice", "data", "handler", "head", "is_traced", "packed", "prepared", "verdict")

    def __init__(self, head: Head, app: HttpApp, *, is_local: bool, data: bytes = b"") -> None:
        self.data = data
        request = head.request
        verdict = app.judge(request, host=head.host, is_local=is_local, is_socket=head.is_socket)
        self.handler: Handler | None = app.handler(request.path)
        self.verdict, request, self.packed, self.choice, self.is_traced = app.coded(request, self.handler, verdict)
        self.head: Head = head if request is head.request else msgspec.structs.replace(head, request=request)
        handler = self.handler
        self.begin: Begin | None = prompt_of(handler, request)
        prepared = None if self.packed or self.head.is_socket else whole_of(handler, request)
        self.prepared = prepared if prepared is not None and not prepared.is_stream else None
        if self.head.is_socket:
            self.begin = shake_hands(app, self.head)
            if self.verdict.response is not None:
                self.verdict = Verdict(closing(self.verdict.response), self.verdict.headers)

    def meet(self, request: Request, app: HttpApp) -> Handler | None:
        """Answer a request with this head, or give it a listener; otherwise return its handler, which needs a task."""
        request.headers, request.choice = self.verdict.headers, self.choice
        if self.verdict.response is not None:
            request.answer(app.judged(self.verdict.response, request.head))
        elif self.begin is not None and (full := app.full(request.head)) is not None:
            request.answer(full)
        elif self.begin is not None:
            try:
                if not self._is_unary(request, app.driver):
                    request.listen(self.begin(request))
            except Exception:
                log.exception("a request failed")
                request.answer(FAULT)
        elif self.handler is None:
            request.answer(app.not_found(request.head))
        else:
            return self.handler
        return None

    def _is_unary(self, request: Request, driver: Driver) -> bool:
        """Answer a request without a session if that is possible; returns whether it is."""
        prepared = self.prepared
        if prepared is None or self.begin is None:
            return False
        if request.is_whole:
            return begin_unary(request, prepared, request.body(), driver)
        if prepared.timeout_s is not None:
            return False  # the request's time limit began when its head came
        request.listen(BodyFirst(request, prepared, self.begin, driver))
        return True


class Heads:
    """Reads the heads of one connection.

    Args:
        app: Judges the heads, and has the handlers.
        is_local: Whether they come by a Unix socket.
    """

    __slots__ = ("_app", "_is_local", "_last")

    def __init__(self, app: HttpApp, *, is_local: bool) -> None:
        self._app = app
        self._is_local = is_local
        self._last: CachedHead | None = None

    def read(self, data: bytes, seen: int) -> tuple[CachedHead, int] | None:
        """The head with which these bytes begin, and its size; None if it is not whole.

        Args:
            data: The bytes that came, from the first byte of a request.
            seen: How many bytes at the beginning of ``data`` are known to have no end of a head.

        Raises:
            RefusedError: The bytes are not the beginning of a valid head.
        """
        end = data.find(_END, max(0, seen + 1 - len(_END)))
        if end < 0:
            check_begun(data, seen)
            return None
        end += len(_END)
        head, last = data[:end], self._last
        if last is None or last.data != head or last.is_traced:
            last = self._last = CachedHead(read_head(head), self._app, is_local=self._is_local, data=head)
        return last, end


class SharedHeads:
    """Parsed heads that all connections share.

    Args:
        app: Judges the heads, and has the handlers.
    """

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._known: dict[tuple[bool, Hashable], CachedHead] = {}

    def get(self, sent: _Sent, read: Callable[[_Sent], Head], *, is_local: bool = False) -> CachedHead:
        """The parsed head; cached, unless it is traced.

        Args:
            sent: The bytes or fields that the client has sent.
            read: Parses it.
            is_local: Whether it came by a Unix socket.

        Raises:
            RefusedError: As ``read`` does.
        """
        known = self._known.get((is_local, sent))
        if known is None:
            known = CachedHead(read(sent), self._app, is_local=is_local)
            if not known.is_traced:
                if len(self._known) >= _MOST_KNOWN:  # clients choose the heads, so a full cache is emptied
                    self._known.clear()
                self._known[is_local, sent] = known
        return known
