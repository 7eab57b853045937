"""`Caller`: an ASGI server of which a test sees each message, and whose client leaves when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any


def scope_of(
    path: str = "/", *, method: str = "POST", headers: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """The scope of a request, with no more in it than ASGI 3 asks for."""
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()], **more,
    }  # fmt: skip


class Caller:
    """One request, or one WebSocket.

    Args:
        app: Is called.
        scope: Of the request.
        takes: Whether what the application sends is taken; else it waits until `take`.

    Attributes:
        sent: What the application has sent.
        task: It runs in.
    """

    def __init__(self, app: Any, scope: Mapping[str, Any], *, takes: bool = True) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._takes = asyncio.Event()
        self._has_left = asyncio.Event()
        if takes:
            self._takes.set()
        self.task = asyncio.create_task(app(dict(scope), self._receive, self._send), name="request")

    def give(self, body: bytes = b"", *, more: bool = False) -> None:
        """Send some of the body."""
        self._coming.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def say(self, **message: Any) -> None:
        """Send any message."""
        self._coming.put_nowait(message)

    def leave(self) -> None:
        """The client disconnects."""
        self._has_left.set()
        self._takes.set()
        self._coming.put_nowait({"type": "http.disconnect"})

    def take(self) -> None:
        """From now on, take what is sent."""
        self._takes.set()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the response."""
        message = await self.sent.get()
        assert message["type"].endswith("http.response.start"), message
        return message["status"], {name.decode(): value.decode() for name, value in message["headers"]}

    async def rest(self) -> bytes:
        """The rest of the body."""
        body = b""
        while True:
            message = await self.sent.get()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                await self.task
                return body

    async def answer(self) -> tuple[int, bytes]:
        """Status and whole body."""
        status, _ = await self.head()
        return status, await self.rest()

    async def _receive(self) -> dict[str, Any]:
        return await self._coming.get()

    async def _send(self, message: dict[str, Any]) -> None:
        await self._takes.wait()
        if self._has_left.is_set():
            raise OSError("the client has left")
        self.sent.put_nowait(message)
