"""`invoker.fetch.transfer`: bytes from a thread to the loop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable

import pytest

from invoker.errors import InternalError, InvocationError
from invoker.fetch.errors import ReferenceFailed
from invoker.fetch.transfer import HIGH_BYTES, Stopped, Transfer


class Started:
    """A transfer whose thread runs, and its end."""

    def __init__(self, work: Callable[[Transfer], None], most: int = 10_000_000) -> None:
        self.ended = asyncio.Event()
        self.transfer = Transfer(work, most, self.ended.set)
        self.transfer.start()

    async def all(self) -> list[bytes]:
        pieces = []
        while piece := await self.transfer.take():
            pieces.append(piece)
        return pieces


async def test_what_a_thread_gives_is_taken_in_order() -> None:
    """Small gifts are joined when the loop is busy; none is lost."""

    def work(transfer: Transfer) -> None:
        for number in range(1000):
            transfer.give(b"%d," % number)

    started = Started(work)
    assert b"".join(await started.all()) == b"".join(b"%d," % number for number in range(1000))
    assert await started.transfer.take() == b"", "the end stays the end"
    await started.ended.wait()


async def test_a_thread_that_gives_nothing_ends() -> None:
    """Empty is complete."""
    assert await Started(lambda transfer: None).all() == []


async def test_an_error_comes_after_what_was_given() -> None:
    """Nothing that arrived is lost."""

    def work(transfer: Transfer) -> None:
        transfer.give(b"some")
        raise ReferenceFailed("gone")

    transfer = Started(work).transfer
    assert await transfer.take() == b"some"
    with pytest.raises(InvocationError, match="gone"):
        await transfer.take()


async def test_our_own_faults_are_logged_and_withheld(caplog: pytest.LogCaptureFixture) -> None:
    """The peer does not see what went wrong inside."""

    def work(transfer: Transfer) -> None:
        raise ZeroDivisionError("secret")

    with caplog.at_level(logging.ERROR), pytest.raises(InternalError) as caught:
        await Started(work).all()
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


async def test_the_limit_counts_what_was_given_in_all() -> None:
    """Exactly as much as is allowed passes."""

    def work(transfer: Transfer) -> None:
        transfer.give(b"abc")
        transfer.give(b"de")

    assert b"".join(await Started(work, most=5).all()) == b"abcde"
    with pytest.raises(InvocationError, match="Limit Exceeded: a reference exceeds the limit of 4 bytes"):
        await Started(work, most=4).all()


async def test_the_thread_waits_for_a_slow_loop() -> None:
    """Not more than twice the mark is held, and a piece is not larger."""
    given = threading.Semaphore(0)

    def work(transfer: Transfer) -> None:
        for _ in range(16):
            transfer.give(bytes(HIGH_BYTES // 2))
            given.release()

    started = Started(work)
    for _ in range(2):
        assert await asyncio.to_thread(given.acquire, timeout=5)
    assert not await asyncio.to_thread(given.acquire, timeout=0.05), "a third gift waits"
    pieces = await started.all()
    assert sum(map(len, pieces)) == 8 * HIGH_BYTES
    assert max(map(len, pieces)) < 2 * HIGH_BYTES


async def test_stopping_wakes_a_thread_that_waits_for_room() -> None:
    """It gets `Stopped` and ends; nobody hears of it."""
    raised: list[BaseException] = []
    waits = threading.Event()

    def work(transfer: Transfer) -> None:
        transfer.give(bytes(HIGH_BYTES))
        waits.set()
        try:
            transfer.give(b"x")
        except Stopped as error:
            raised.append(error)
            raise

    started = Started(work)
    assert await asyncio.to_thread(waits.wait, 5)
    started.transfer.stop()
    started.transfer.stop()
    await started.ended.wait()
    assert len(raised) == 1


async def test_stopping_wakes_a_thread_that_reads_a_socket() -> None:
    """The connection is shut down, whoever else may have closed or wrapped it."""
    near, far = socket.socketpair()
    watched = threading.Event()
    read: list[bytes] = []

    def work(transfer: Transfer) -> None:
        transfer.watch(near)
        watched.set()
        read.append(near.recv(1))

    with near, far:
        started = Started(work)
        assert await asyncio.to_thread(watched.wait, 5)
        started.transfer.stop()
        await started.ended.wait()
    assert read == [b""]


async def test_stopping_resets_a_connection() -> None:
    """A peer that still sends is told at once, whatever room its messages have."""
    watched = threading.Event()

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as near:
        far, _ = listener.accept()

        def work(transfer: Transfer) -> None:
            transfer.watch(near)
            watched.set()
            near.recv(1)
            near.close()

        with far:
            started = Started(work)
            assert await asyncio.to_thread(watched.wait, 5)
            started.transfer.stop()
            await started.ended.wait()
            assert far.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPIPE  # 0 where only the end has come


async def test_a_connection_made_after_stopping_is_not_used() -> None:
    """`watch` comes too late."""
    go = threading.Event()
    reached = []

    def work(transfer: Transfer) -> None:
        go.wait(5)
        with socket.socket() as late:
            transfer.watch(late)
            reached.append(late)

    started = Started(work)
    started.transfer.stop()
    go.set()
    await started.ended.wait()
    assert not reached


async def test_a_connection_that_is_not_watched_any_more_is_left_alone() -> None:
    """What is stopped later does not reach it."""
    near, far = socket.socketpair()

    def work(transfer: Transfer) -> None:
        transfer.watch(near)
        transfer.unwatch()
        transfer.unwatch()

    with near, far:
        started = Started(work)
        await started.ended.wait()
        started.transfer.stop()
        near.sendall(b"x")
        assert far.recv(1) == b"x"


def test_a_thread_outlives_its_loop_without_a_word() -> None:
    """The loop was closed under it; the thread ends all the same."""
    go = threading.Event()
    ended = threading.Event()

    def work(transfer: Transfer) -> None:
        go.wait(5)
        transfer.give(b"x")
        ended.set()

    async def leave() -> None:
        Started(work)

    asyncio.run(leave())
    go.set()
    assert ended.wait(5)
