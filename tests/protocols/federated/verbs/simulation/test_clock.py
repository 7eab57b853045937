"""Simulated time: it leaps over waiting, and stands still while somebody computes."""

from __future__ import annotations

import asyncio
import threading
import time

from invoker.protocols.federated.verbs.simulation.clock import SimulatedLoop


def test_waiting_takes_no_real_time() -> None:
    loop = SimulatedLoop()
    began = time.monotonic()
    loop.run_until_complete(asyncio.sleep(10_000.0))
    assert loop.time() >= 10_000.0
    assert time.monotonic() - began < 60.0
    loop.close()


def test_what_is_due_happens_in_its_order() -> None:
    loop = SimulatedLoop()
    seen: list[tuple[int, float]] = []
    for delay in (3, 1, 2):
        loop.call_later(delay, lambda delay=delay: seen.append((delay, round(loop.time(), 6))))
    loop.run_until_complete(asyncio.sleep(4))
    assert seen == [(1, 1.0), (2, 2.0), (3, 3.0)]
    loop.close()


def test_time_stands_still_while_a_thread_computes() -> None:
    loop = SimulatedLoop()
    is_computing = threading.Event()
    is_computing.set()
    loop.is_computing = is_computing.is_set
    times: list[float] = []

    def compute() -> None:
        time.sleep(0.05)
        loop.call_soon_threadsafe(lambda: times.append(loop.time()))
        is_computing.clear()

    thread = threading.Thread(target=compute)
    thread.start()
    loop.run_until_complete(asyncio.sleep(100.0))
    thread.join()
    assert times == [0.0]
    assert loop.time() >= 100.0
    loop.close()
