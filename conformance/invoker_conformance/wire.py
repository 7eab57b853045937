"""Writing to a ``grpc.aio`` call whose peer may end it at any moment, without losing the status of its end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio


async def send(call: Any, message: bytes) -> bool:
    """Write a message to a ``grpc.aio`` call without serialiser; False when the call has ended already."""
    # write() of grpc.aio puts INTERNAL in place of the peer's status when it loses the race against the end of the
    # call; the layer below it only fails. Use write() again when grpc.aio keeps the status.
    try:
        await call.wait_for_connection()
        if call.done():
            return False
        await call._cython_call.send_serialized_message(message)  # noqa: SLF001
    except (grpc.aio.InternalError, grpc.aio.UsageError, grpc.RpcError):
        return False
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return False  # grpc.aio reports in this way that the call was cancelled
    return True


async def end_sending(call: Any) -> None:
    """Half-close a ``grpc.aio`` call, unless it has ended already."""
    with suppress(asyncio.InvalidStateError, grpc.aio.InternalError, grpc.RpcError):
        await call.done_writing()
