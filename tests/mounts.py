"""What the tests of mounted transports serve, and how they ask."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from typing import ClassVar

import httpx
import pytest

from invoker.server.mounted import Mounted

MARK = contextvars.ContextVar("MARK", default="none")


def square(x: int) -> int:
    return x * x


async def thread(x: int) -> str:
    return threading.current_thread().name


def worker(x: int) -> str:
    return threading.current_thread().name


class Model:
    """Notes its life."""

    made: ClassVar[list[Model]] = []

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.made.append(self)

    def __enter__(self) -> None:
        self.marks.append("entered")

    def __call__(self, x: int) -> int:
        return x

    def __exit__(self, *exc: object) -> None:
        self.marks.append("left")


@pytest.fixture(autouse=True)
def no_models() -> Iterator[None]:
    yield
    Model.made.clear()


def client(app: Mounted, **options) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, **options), base_url="http://testserver")


async def ask(app: Mounted, path: str = "/", value: object = 7, **options) -> httpx.Response:
    async with client(app) as one:
        return await one.post(path, json=value, **options)
