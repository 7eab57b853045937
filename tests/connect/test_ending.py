"""Tests of how the peer's status is told from a made-up one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from invoker.connect import ending
from invoker.connect.ending import Ending
from invoker.errors import Status


class Rpc:
    """Reports as grpc.aio does: the first status to a callback, from whatever task sets it; later ones to nobody."""

    def __init__(self) -> None:
        self.callback: Callable[[Any], None] = lambda _: None
        self.now: tuple[grpc.StatusCode, str] | None = None

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback

    def report(self, code: grpc.StatusCode, detail: str = "") -> None:
        first, self.now = self.now is None, (code, detail)
        if first:
            self.callback(self)

    async def code(self) -> grpc.StatusCode:
        assert self.now is not None
        return self.now[0]

    async def details(self) -> str:
        assert self.now is not None
        return self.now[1]


@pytest.fixture
def rpc() -> Rpc:
    return Rpc()


@pytest.fixture
def watched(rpc: Rpc) -> Ending:
    one = Ending()
    one.watch(rpc)  # type: ignore[arg-type]
    return one


def fail_a_write(rpc: Rpc, watched: Ending) -> None:
    with watched.writing():
        rpc.report(grpc.StatusCode.INTERNAL, "Internal error from Core")


async def test_status_that_came_before_a_failed_write_stays(rpc: Rpc, watched: Ending) -> None:
    """The later one was made up."""
    rpc.report(grpc.StatusCode.OK)
    fail_a_write(rpc, watched)
    assert await watched.status() == (Status.OK, "")


async def test_status_that_comes_after_a_failed_write_counts(rpc: Rpc, watched: Ending) -> None:
    """It is waited for."""
    fail_a_write(rpc, watched)
    waiting = asyncio.ensure_future(watched.status())
    await asyncio.sleep(0)
    rpc.report(grpc.StatusCode.NOT_FOUND, "no such")
    assert await waiting == (Status.NOT_FOUND, "no such")


async def test_internal_error_of_the_peer_is_believed(rpc: Rpc, watched: Ending) -> None:
    """It was not reported by a task that writes."""

    async def receive() -> None:
        rpc.report(grpc.StatusCode.INTERNAL, "Internal error from Core")

    with watched.writing():
        await asyncio.create_task(receive())
    assert await watched.status() == (Status.INTERNAL, "Internal error from Core")


async def test_made_up_status_is_the_last_resort(rpc: Rpc, watched: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the peer's never comes."""
    monkeypatch.setattr(ending, "STATUS_GRACE_S", 0.01)
    fail_a_write(rpc, watched)
    assert await watched.status() == (Status.INTERNAL, "Internal error from Core")
