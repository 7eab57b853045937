"""The catalogue of `tools.served.sync`, and one async function."""

from __future__ import annotations

from invoker import function
from tools.served.sync import reply, same, stream, ticks

__all__ = ["async_reply", "reply", "same", "stream", "ticks"]


@function
async def async_reply(value: str) -> str:
    """Return the text."""
    return value
