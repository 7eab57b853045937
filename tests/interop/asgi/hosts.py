"""Applications of FastAPI and Starlette into which functions are mounted, and one that is nothing else."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount

import invoker

MARKS: list[str] = []
GATES: dict[str, asyncio.Event] = {}


class Model:
    """Writes its life to a file."""

    def __enter__(self) -> None:
        _note("entered")

    def __call__(self, x: int) -> int:
        return x * x

    def __exit__(self, *exc: object) -> None:
        _note("left")


def _note(text: str) -> None:
    if path := os.environ.get("MARKS"):
        with Path(path).open("a") as file:
            file.write(f"{text}\n")


def note(x: bytes) -> bytes:
    _note(x.decode())
    return x


def square(x: int) -> int:
    return x * x


def thread(x: int) -> str:
    return threading.current_thread().name


async def gated(name: str) -> AsyncIterator[str]:
    """One item, and another one once `open_gate` was called."""
    gate = GATES.setdefault(name, asyncio.Event())
    yield "first"
    await gate.wait()
    yield "second"


async def open_gate(name: str) -> bool:
    GATES.setdefault(name, asyncio.Event()).set()
    return True


async def double(items: AsyncIterator[int]) -> AsyncIterator[int]:
    async for item in items:
        yield 2 * item


async def endless(name: str) -> AsyncIterator[int]:
    """Items for ever; `ended` tells that it was cancelled."""
    gate = GATES.setdefault(name, asyncio.Event())
    try:
        for number in range(1_000_000):
            yield number
            await asyncio.sleep(0.01)
    finally:
        gate.set()


async def silent(name: str) -> int:
    """Nothing for ever."""
    gate = GATES.setdefault(name, asyncio.Event())
    try:
        await asyncio.Event().wait()
    finally:
        gate.set()
    return 0


async def ended(name: str) -> bool:
    """Waits until `endless` or `silent` was cancelled."""
    await GATES.setdefault(name, asyncio.Event()).wait()
    return True


def large(size: int) -> Iterator[bytes]:
    for _ in range(size):
        yield b"x" * 65536


FUNCTIONS = (Model, square, thread, gated, open_gate, double, endless, silent, ended, large)

inner = invoker.asgi(*FUNCTIONS, max_message_bytes=1000)
fast = FastAPI(lifespan=inner.lifespan)
fast.mount("/fn", inner)


@fast.middleware("http")
async def noted(request: Request, call_next: Any) -> Response:
    """What many applications have: it puts streams of its own between the server and what is mounted."""
    response: Response = await call_next(request)
    response.headers["X-Noted"] = "yes"
    return response


@fast.get("/hello")
def hello() -> str:
    return "hello"


other = invoker.asgi(square)
star = Starlette(
    routes=[Mount("/a", other), Mount("/fn", invoker.asgi(*FUNCTIONS, max_message_bytes=1000))],
    middleware=[Middleware(GZipMiddleware, minimum_size=10)],
)

bare = invoker.asgi(*FUNCTIONS, max_message_bytes=1000)

guarded = Starlette(
    routes=[Mount("/fn", invoker.asgi(square, allowed_origins="https://friend.example"))],
    middleware=[
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1"]),
        Middleware(CORSMiddleware, allow_origins=["https://friend.example"], allow_methods=["POST"]),
    ],
)

closed = Starlette(routes=[Mount("/fn", invoker.asgi(note, page="on"))])
open_to_all = Starlette(routes=[Mount("/fn", invoker.asgi(note, page="on", allowed_origins="*"))])

judged = invoker.asgi("functions.conformance")
if port := os.environ.get("RIFF_PORT"):  # the judge asks by riff what functions have done
    riff = invoker.serve("functions.conformance", block=False, grpc_port=int(port), protocols="riff")
