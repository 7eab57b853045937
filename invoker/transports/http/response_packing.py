"""Prepares responses for sending: unchanged or packed, as `invoker.transports.http.packing` decides.

Short responses are packed at once, long ones in a thread, so that the loop continues meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Final

import msgspec

from invoker.core.http import RequestHead, Response, ResponseHead
from invoker.transports.http.codings import IDENTITY, Choice
from invoker.transports.http.packing import (
    AT_ONCE_BYTES,
    LEAST_BYTES,
    Packer,
    coding_for,
    headers_for,
    not_modified,
    pack,
)
from invoker.transports.http.writing import size_of

_BUSY: Final = frozenset({429, 503})
_RETRY: Final = ("Retry-After", "1")


def ready(response: Response, choice: Choice, head: RequestHead, *, most: int = AT_ONCE_BYTES) -> Response | None:
    """A whole response in the form that is sent.

    None if packing takes too long for the loop and should be done in a thread.

    Args:
        response: The response as a handler has made it.
        choice: The coding that the client prefers.
        head: The head of its request.
        most: A longer body takes too long to pack at once.
    """
    if response.status in _BUSY:
        response = _with_time(response)
    size = size_of(response)
    if size < LEAST_BYTES and not choice.is_forced:
        return response if response.status != 304 else not_modified(response, head)
    coding = coding_for(response, choice, size)
    if coding is None:
        return response
    return pack(response, coding) if coding == IDENTITY or size <= most else None


def _with_time(response: Response) -> Response:
    """Add the header Retry-After to a refusal after which the client may try again."""
    if any(name.lower() == "retry-after" for name, _ in response.headers):
        return response
    return msgspec.structs.replace(response, headers=(*response.headers, _RETRY))


async def packed(response: Response, choice: Choice, head: RequestHead) -> Response:
    """A whole response in the form that is sent, of any length."""
    at_once = ready(response, choice, head)
    return at_once if at_once is not None else await asyncio.to_thread(pack, response, choice.coding)


def begun(head: ResponseHead, choice: Choice) -> tuple[ResponseHead, Packer | None]:
    """The head of a streamed response in the form that is sent, and the packer of its body; None: it is not packed."""
    coding, headers = _leaving(head.status, head.headers, choice)
    if coding is None:
        return head, None
    return ResponseHead(head.status, headers), None if coding == IDENTITY else Packer(coding)


@lru_cache(256)
def _leaving(
    status: int, headers: tuple[tuple[str, str], ...], choice: Choice
) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """The coding of a stream, and its headers; most streams of a process have the same ones."""
    coding = coding_for(ResponseHead(status, headers), choice, LEAST_BYTES)
    return coding, headers if coding is None else headers_for(headers, coding)


async def flushed(packer: Packer, data: bytes) -> bytes:
    """Pack a piece of a streamed response, so that the client can read all of it."""
    return _flushed(packer, data) if len(data) <= AT_ONCE_BYTES else await asyncio.to_thread(_flushed, packer, data)


def _flushed(packer: Packer, data: bytes) -> bytes:
    return packer.pack(data) + packer.flush()
