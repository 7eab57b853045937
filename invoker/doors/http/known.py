"""`Known`: what a head means to a door.

A connection keeps what its last head meant, because the next one often has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from invoker.core.http import RequestHead
from invoker.doors.http.app import Begin, Front, HttpApp
from invoker.doors.http.heads import Head, read_head
from invoker.doors.http.origins import Verdict

__all__ = ["Known"]


class Known:
    """What a head means to this door; the same bytes mean the same again.

    Args:
        data: Of the head.
        app: Judges it, and knows who answers.
        is_local: Whether it came by a Unix socket.

    Attributes:
        data: Of the head.
        head: As it is read.
        verdict: Whether it may call.
        front: Who answers; None: nobody.
        begin: The same, if it needs no task for that.

    Raises:
        RefusedError: It is none.
    """

    __slots__ = ("begin", "data", "front", "head", "verdict")

    def __init__(self, data: bytes, app: HttpApp, *, is_local: bool) -> None:
        self.data = data
        self.head: Head = read_head(data)
        request = self.head.request
        self.verdict: Verdict = app.judge(request, host=self.head.host, is_local=is_local)
        self.front: Front | None = app.front(request.path)
        prompt: Callable[[RequestHead], Begin | None] | None = getattr(self.front, "prompt", None)
        self.begin = None if prompt is None else prompt(request)
