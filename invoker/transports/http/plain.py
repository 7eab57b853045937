"""`PlainHeads`: reads the heads of plain requests, which a thread can answer.

A plain request needs no reads after its body and no writes but one response, whole or streamed: it is a POST of
HTTP/1.1 with a short body of a known length, on a connection that is kept, for a handler that can answer in a thread.
All other requests are left to the loop's server, which reads them from the first byte, and which sends all refusals.

Equal bytes have an equal result, and clients repeat their heads. So the result of a head is cached: whether the client
may call (`Origins`), the handler, and the request as the protocol has prepared it.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from invoker.core.cache import Cache
from invoker.core.http import RequestHead
from invoker.transports.http.app import HandlerOf, PreparedRequest, whole_of
from invoker.transports.http.codings import PACKED, PLAIN, Choice, chosen
from invoker.transports.http.heads import MOST_BYTES, RefusedError, read_head
from invoker.transports.http.origins import Origins
from invoker.transports.http.traced import traced

MOST_BODY_BYTES: Final = 64 * 1024
"""The most bytes of a body that is not counted against the memory of the process (`invoker.core.budget`)."""

_KEPT: Final = 256
_KEPT_BYTES: Final = 1024 * 1024
_TIMES: Final = 8
"""The memory of a cached head, as a multiple of its bytes."""

_END: Final = b"\r\n\r\n"
_STRANGE: Final = frozenset({"content-encoding", "expect", "http2-settings", "transfer-encoding", "upgrade"})


class Plain(NamedTuple):
    """The result of a plain head.

    Attributes:
        size: Bytes of the head, with its empty line.
        whole: Bytes of the whole request.
        prepared: The prepared request by which the request is answered.
        headers: The headers to be added to the response.
        head: The head for the handler.
        choice: The coding of the response.
        is_traced: Whether the head belongs to a trace, so that its result must not be cached.
    """

    size: int
    whole: int
    prepared: PreparedRequest
    headers: tuple[tuple[str, str], ...]
    head: RequestHead = RequestHead("POST", "/")
    choice: Choice = PLAIN
    is_traced: bool = False


class PlainHeads:
    """Reads heads, and caches the results.

    Args:
        handler: Gives the handler of a path.
        origins: Decides whether a caller is allowed.
        is_local: Whether they come by a Unix socket.
        codings: The codings that responses may have.
    """

    def __init__(
        self, handler: HandlerOf, origins: Origins, *, is_local: bool = False, codings: tuple[str, ...] = PACKED
    ) -> None:
        self._handler = handler
        self._origins = origins
        self._is_local = is_local
        self._codings = codings
        self._kept: Cache[bytes, Plain] = Cache(_KEPT, _KEPT_BYTES, threading.Lock())

    def read(self, data: bytes) -> Plain | None:
        """Read the head at the beginning of these bytes; None if it is not plain, or not whole."""
        end = data.find(_END, 0, MOST_BYTES)
        if end < 0:
            return None
        head = data[: end + len(_END)]
        plain = self._kept.find(head)
        if plain is None:
            plain = self._read(head)
            if plain is not None and not plain.is_traced:
                self._kept.keep(head, plain, _TIMES * len(head))
        return plain

    def _read(self, data: bytes) -> Plain | None:
        try:
            head = read_head(data)
        except RefusedError:
            return None
        request, length = head.request, head.length
        if length is None or length > MOST_BODY_BYTES or head.host or not head.is_kept or not _is_plain(request):
            return None
        verdict = self._origins.judge(request, is_local=self._is_local)
        request, told = traced(request)
        handler = None if verdict.response is not None else self._handler(request.path)
        prepared = whole_of(handler, request)
        choice = chosen(request, self._codings)
        if prepared is None or prepared.on_loop or choice is None:
            return None
        return Plain(len(data), len(data) + length, prepared, (*verdict.headers, *told), request, choice, bool(told))


def _is_plain(head: RequestHead) -> bool:
    return (
        head.method == "POST" and head.http_version == "1.1" and _STRANGE.isdisjoint(name for name, _ in head.headers)
    )
