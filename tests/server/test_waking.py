"""`invoker.server.waking`: a signal that does not interrupt the main thread is heard all the same."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from invoker.server.waking import Waker

NUMBER = signal.SIGUSR1


class Heard(Exception):
    pass


@pytest.fixture
def waker() -> Iterator[Waker]:
    """One that is closed behind the test; its signal raises in the main thread."""
    made = Waker()

    def heard(*_: object) -> None:
        raise Heard

    before = signal.signal(NUMBER, heard)
    yield made
    made.close()
    signal.signal(NUMBER, before)


def taken_by_another(delay_s: float = 0.1) -> threading.Thread:
    """A thread that gets the signal while the main one sleeps."""

    def take() -> None:
        time.sleep(delay_s)
        signal.pthread_kill(threading.get_ident(), NUMBER)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


@pytest.mark.parametrize("count", [1, 3])
def test_R026_a_signal_that_another_thread_took_is_heard(waker: Waker, count: int) -> None:
    """Each time, and whatever the main thread waits for."""
    waker.start([NUMBER])
    for _ in range(count):
        thread = taken_by_another()
        with pytest.raises(Heard):
            time.sleep(3600)
        thread.join()


def test_the_descriptor_of_another_has_each_byte_and_comes_back(waker: Waker) -> None:
    """It is the loop's, which hears of its own signals by it; SIGURG is nobody's again."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno())
    try:
        waker.start([NUMBER])
        thread = taken_by_another()
        with pytest.raises(Heard):
            time.sleep(3600)
        thread.join()
        assert ours.recv(1) == bytes((NUMBER,))
        waker.close()
        assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
        assert signal.set_wakeup_fd(-1) == theirs.fileno()
    finally:
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()


def test_what_an_author_has_made_of_SIGURG_stays(waker: Waker) -> None:
    """Then signals are heard as Python hears them."""
    said: list[int] = []
    before = signal.signal(signal.SIGURG, lambda number, _: said.append(number))
    try:
        waker.start([NUMBER])
        os.kill(os.getpid(), signal.SIGURG)
        assert said == [signal.SIGURG]
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGURG, before)
