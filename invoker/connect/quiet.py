"""`quieten`: keeps an event loop from logging a harmless error of grpc.aio's poller."""

from __future__ import annotations

import asyncio
from typing import Any


def quieten(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop of ours ignore the BlockingIOError of grpc.aio's poller; any other error is logged as usual.

    All loops of grpc.aio in a process wait at one descriptor, and the second one finds it empty: grpc#25364; drop when
    grpcio has grpc#36096. Loops of other programs are not changed.
    """
    loop.set_exception_handler(_tell)


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    is_idle = isinstance(context.get("exception"), BlockingIOError) and "PollerCompletionQueue" in str(context)
    if not is_idle:
        loop.default_exception_handler(context)
