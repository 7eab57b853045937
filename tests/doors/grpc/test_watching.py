"""The thread that watches an epoll for a loop that sleeps elsewhere."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator

import pytest

from invoker.doors.grpc.watching import Watcher
from tests.conftest import SLOW
from tests.doors.riff import eventually


class Watched:
    """An epoll with one bell, and who is woken by it."""

    def __init__(self) -> None:
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.epoll = select.epoll()
        self.epoll.register(self.bell, select.EPOLLIN)
        self.woken = threading.Semaphore(0)
        self.watcher = Watcher(self.epoll.fileno(), self.woken.release)

    def ring(self) -> None:
        os.eventfd_write(self.bell, 1)

    def is_woken(self) -> bool:
        return self.woken.acquire(timeout=2 * SLOW)


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.watcher.close()
    made.epoll.close()
    os.close(made.bell)


def test_it_wakes_once_for_each_time_that_it_is_armed(watched):
    """Also when there is something already; and never otherwise."""
    watched.ring()
    assert not watched.woken.acquire(timeout=0.02)
    for _ in range(2):
        watched.watcher.arm()
        assert watched.is_woken()
        assert not watched.watcher.is_armed
    assert not watched.woken.acquire(timeout=0.02)


def test_it_stays_armed_while_nothing_comes(watched):
    """To arm it again changes nothing."""
    watched.watcher.arm()
    watched.watcher.arm()
    assert watched.watcher.is_armed
    watched.ring()
    assert watched.is_woken()
    assert not watched.woken.acquire(timeout=0.02)


def test_it_sees_what_is_registered_later(watched):
    """A function opens a socket while the loop sleeps."""
    watched.watcher.arm()
    read, write = os.pipe()
    watched.epoll.register(read, select.EPOLLIN)
    os.write(write, b"x")
    assert watched.is_woken()
    os.close(read)
    os.close(write)


def test_no_thread_is_left_when_it_is_closed():
    """Armed or not."""
    before = threading.active_count()
    made = Watched()
    made.watcher.arm()
    made.watcher.close()
    assert eventually(lambda: threading.active_count() == before)
    made.epoll.close()
    os.close(made.bell)
