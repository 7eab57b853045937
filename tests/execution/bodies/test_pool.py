"""The pool of threads for sync functions."""

import asyncio
import threading
import time
from typing import ClassVar

import pytest

from invoker.errors import LimitExceeded, Overloaded
from invoker.execution.bodies.pool import Threads, off_loop


def test_each_work_has_a_thread_and_idle_ones_are_used_again():
    """Work never waits for other work."""
    pool, names = Threads(8), []
    barrier = threading.Barrier(4, timeout=5)
    done = threading.Semaphore(0)

    def meet():
        names.append(threading.current_thread().name)
        barrier.wait()
        done.release()

    for _ in range(3):
        pool.start(meet)
    barrier.wait()
    for _ in range(3):
        assert done.acquire(timeout=5)
    assert len(set(names)) == 3
    pool.close()


class _Gated(threading.Thread):
    """Starts like any other, but does nothing before the gate opens."""

    gate = threading.Event()
    most = 1000
    started: ClassVar[list[threading.Thread]] = []

    def start(self):
        if len(self.started) >= self.most:
            raise RuntimeError("can't start new thread")
        self.started.append(threading.current_thread())
        super().start()

    def run(self):
        assert self.gate.wait(5)
        super().run()


@pytest.fixture
def gated(monkeypatch):
    monkeypatch.setattr(threading, "Thread", _Gated)
    monkeypatch.setattr(_Gated, "gate", threading.Event())
    monkeypatch.setattr(_Gated, "started", [])
    monkeypatch.setattr(_Gated, "most", 1000)
    return _Gated


def test_a_burst_waits_for_the_start_of_one_thread(gated):
    """While functions compute, each start takes several turns of them: 100 starts held a loop for 3 s."""
    pool, all_run = Threads(20), threading.Barrier(21, timeout=5)
    for _ in range(20):
        pool.start(all_run.wait)
    assert len(gated.started) == 1
    gated.gate.set()
    all_run.wait()
    while pool.busy:
        time.sleep(0)
    pool.close()
    assert gated.started.count(threading.current_thread()) == 1
    assert len(set(gated.started)) == len(gated.started) == 21  # one is ready for more


def test_whoever_gives_work_starts_no_thread_while_others_work(gated):
    """Work that comes bit by bit finds a thread that is ready, which starts the next one before it works."""
    pool, go = Threads(30), threading.Event()
    gated.gate.set()
    for count in range(20):
        running = threading.Event()
        pool.start(lambda running=running: running.set() or go.wait(5))
        assert running.wait(5)
        assert len(gated.started) == count + 2
        while not pool._idle:
            time.sleep(0)
    assert gated.started.count(threading.current_thread()) == 1
    go.set()
    while pool.busy:
        time.sleep(0)
    pool.close()


def test_a_thread_is_ready_as_long_as_others_work(monkeypatch):
    """Then all leave."""
    monkeypatch.setattr("invoker.execution.bodies.pool._IDLE_S", 0.01)
    pool, go = Threads(8), threading.Event()
    for _ in range(4):
        pool.start(lambda: go.wait(5) and None)
    while len(pool._threads) < 5:
        time.sleep(0)
    time.sleep(0.05)
    assert (len(pool._threads), pool._idle) == (5, 1)
    go.set()
    until = time.monotonic() + 5
    while pool._threads:
        assert time.monotonic() < until
        time.sleep(0.001)
    pool.close()


def test_work_waits_for_another_where_no_more_threads_start(gated, caplog):
    """All of a burst is done by the one thread that there is; what comes while there is none is refused."""
    pool, done = Threads(20), threading.Semaphore(0)
    gated.most = 1
    for _ in range(5):
        pool.start(done.release)
    gated.gate.set()
    for _ in range(5):
        assert done.acquire(timeout=5)
    while pool.busy:
        time.sleep(0)
    assert caplog.messages == [
        "no thread can be started for a sync function, which waits for a free thread: can't start new thread"
    ]
    pool.close()
    with pytest.raises(Overloaded, match="no thread can be started for a sync function: can't start new thread"):
        Threads(1).start(lambda: None)


def test_no_slot_left_is_a_clear_refusal():
    """The text says how many there are and how many are stuck."""
    pool, go = Threads(1), threading.Event()
    pool.start(lambda: go.wait(5) and None)
    with pytest.raises(Overloaded, match=r"all 1 threads .* busy \(0 of them stuck\)"):
        pool.start(lambda: None)
    go.set()
    pool.close()


def test_how_long_it_has_been_full_counts_from_the_first_refusal():
    """A slot that is given back begins anew; later refusals do not."""
    pool = Threads(1)
    pool.enter()
    assert pool.full_since == 0
    for _ in range(2):
        with pytest.raises(Overloaded):
            pool.enter()
        first = pool.full_since
        assert first > 0
        with pytest.raises(Overloaded):
            pool.enter()
        assert pool.full_since == first
        pool.leave()
        assert pool.full_since == 0
        pool.enter()


def test_half_of_the_slots_stuck_is_failing():
    """Then this process should get no more traffic."""
    pool = Threads(4)
    pool.stuck = 1
    assert not pool.is_failing
    pool.stuck = 2
    assert pool.is_failing


async def test_work_off_the_loop():
    """Its result, its exception, a cancel of who waits for it, and no thread to be had."""
    threads = Threads(8)
    assert await off_loop(threads, threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await off_loop(threads, lambda: 1 // 0)
    held = threading.Event()
    task = asyncio.ensure_future(off_loop(threads, lambda: held.wait(5)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    held.set()

    def none(_: object) -> None:
        raise LimitExceeded("no thread")

    threads.spawn = none
    with pytest.raises(LimitExceeded):
        await off_loop(threads, int)
    threads.close()


def test_H095_idle_threads_have_left_when_it_is_closed():
    """A working one is not waited for; what closes the pool may run in it."""
    before = set(threading.enumerate())
    for _ in range(20):
        pool, done = Threads(4), threading.Barrier(4)
        for _ in range(3):
            pool.start(done.wait)
        done.wait()
        while pool.busy:
            time.sleep(0)
        pool.close()
        assert set(threading.enumerate()) == before
    pool, go, closed = Threads(4), threading.Event(), threading.Event()
    pool.start(go.wait)
    pool.close()
    go.set()
    pool = Threads(4)
    pool.spawn(lambda: (pool.close(), closed.set()))
    closed.wait()
