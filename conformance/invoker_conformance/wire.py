"""Writes to a ``grpc.aio`` call that the peer may end at any moment, without losing the peer's status."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio


async def send(call: Any, message: bytes) -> bool:
    """Write a message to a ``grpc.aio`` call without a serialiser; returns False if the call has already ended."""
    # If the call ends during a write, write() of grpc.aio replaces the peer's status by INTERNAL; the layer below does
    # not. Use write() again when grpc.aio keeps the status.
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
        return False  # grpc.aio raises this if the call was cancelled
    return True


async def end_sending(call: Any) -> None:
    """Half-close a ``grpc.aio`` call, unless it has already ended."""
    with suppress(asyncio.InvalidStateError, grpc.aio.InternalError, grpc.RpcError):
        await call.done_writing()
