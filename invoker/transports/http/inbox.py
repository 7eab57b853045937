"""`Inbox`: what the client of one HTTP/2 stream has sent and nobody has taken yet; `Inboxes` gives each stream its own.

Hypercorn gives a request a queue of ten frames, and reads nothing more of the whole connection while it is full: no
other stream, no RST_STREAM, no end. Here putting never waits. A client may send more only for what was taken, so the
window of its stream bounds what is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from hypercorn.asyncio.task_group import TaskGroup

from invoker.transports.http.asgiexchange import INBOX

__all__ = ["Inbox", "Inboxes"]

_STEP_BYTES: Final = 16 * 1024
"""The client's window is opened in steps of this many taken bytes; it has four times as many."""


class Inbox:
    """The body of one request, and whether its client has left.

    Args:
        taken: Called with how many more bytes were taken.

    Attributes:
        on_gone: Called when the client has left, whether or not anybody asks; None: no notice is wanted.
    """

    def __init__(self, taken: Callable[[int], None]) -> None:
        self.on_gone: Callable[[], None] | None = None
        self._taken = taken
        self._untold = 0  # bytes that were taken
        self._body = bytearray()
        self._is_whole = self._is_over = self._is_gone = False
        self._news = asyncio.Event()

    async def put(self, message: Any) -> None:
        """Keep a message of ASGI; bytes that come before they are asked for become one message."""
        if message["type"] == "http.disconnect":
            self._is_gone = True
            self._body.clear()
            if self.on_gone is not None:
                self.on_gone()
        elif not self._is_gone:
            self._body += message["body"]
            self._is_whole = not message["more_body"]
        self._news.set()

    async def get(self) -> Any:
        """The next message: the body as far as it has come, or that the client has left, which does not wait."""
        while not (self._is_gone or self._body or (self._is_whole and not self._is_over)):
            self._news.clear()
            await self._news.wait()
        if self._is_gone:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        self._is_over = self._is_whole
        self._untold += len(body)
        if self._untold >= _STEP_BYTES:
            self._taken(self._untold)
            self._untold = 0
        return {"type": "http.request", "body": body, "more_body": not self._is_over}


class Inboxes:
    """Runs the application for each stream of one connection, with an inbox instead of hypercorn's queue.

    Args:
        tasks: The tasks of the connection.
        taken: Called with a stream, and how many more of its bytes were taken.

    Attributes:
        stream: The stream whose request begins now.
    """

    def __init__(self, tasks: TaskGroup, taken: Callable[[int, int], None]) -> None:
        self.stream = 0
        self._tasks = tasks
        self._taken = taken

    async def spawn_app(self, app: Any, config: Any, scope: Any, send: Any) -> Callable[[Any], Awaitable[None]]:
        """Begin a request; returns what puts messages into its inbox."""
        scope[INBOX] = inbox = Inbox(partial(self._taken, self.stream))
        self.spawn(_run, app, config, scope, inbox.get, send)
        return inbox.put

    def spawn(self, func: Callable[..., Any], *args: Any) -> None:
        """Begin a task of the connection."""
        self._tasks.spawn(func, *args)


async def _run(app: Any, config: Any, scope: Any, receive: Any, send: Any) -> None:
    """Run the application; one that is cancelled says nothing, because then nobody sends what it says any more."""
    try:
        await app(scope, receive, send, None, None)
    except Exception:  # noqa: BLE001 - as hypercorn does, whose part this takes
        await config.log.exception("the application failed")
    await send(None)
