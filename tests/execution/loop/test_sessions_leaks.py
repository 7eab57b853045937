"""Hundreds of mixed Evergreen sessions leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.core.invocation import Invocation
from invoker.errors import ShuttingDown
from invoker.execution.bodies.loop import LoopRunner
from invoker.execution.bodies.thread import ThreadRunner
from invoker.execution.driver import Driver
from invoker.execution.loop.sessions import SessionReactor
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.nodes import Node
from invoker.protocols.evergreen.running import RunningAction
from invoker.protocols.evergreen.session import EvergreenSession
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.sessionlines import EvergreenCall
from tests.transports.evergreen import act, leaf

KINDS = (EvergreenSession, Graph, Node, RunningAction, SessionReactor, LoopRunner, ThreadRunner, Invocation)


async def echo(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        if "bad" in one:
            raise ValueError("on purpose")
        yield one


def sync_echo(x: Iterator[str]) -> Iterator[str]:
    for one in x:
        if "bad" in one:
            raise ValueError("on purpose")
        yield one


async def deaf(x: AsyncIterator[str]) -> AsyncIterator[str]:
    """Ignores that it is cancelled, once."""
    for _ in range(2):
        try:
            async for one in x:
                yield one
        except (Exception, asyncio.CancelledError):
            continue


def blocks(x: Iterator[str]) -> Iterator[str]:
    """Does not listen for a while."""
    for one in x:
        time.sleep(0.01)
        yield one


NAMES = ("echo", "sync_echo", "deaf", "blocks")


def alive() -> Counter[str]:
    """Objects of a session that somebody holds on to, by class."""
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, KINDS))


async def one_of_each(driver: Driver) -> None:
    """Ends by half-close, failure, cancel, broken rules, a cut, and with a reader that reads nothing."""
    peers = [EvergreenCall(driver, is_full=number == 5) for number in range(6)]
    for peer in peers:
        peer.say(*(act(name, {"x": "p"}, {"out": f"r{name}"}) for name in NAMES), leaf("p", b"a" * 1000, more=True))
    ok, fails, gone, broken, cut, deafened = peers
    ok.say(leaf("p", b"b", seq=1)).half_close()
    fails.say(leaf("p", b"bad", seq=1, more=True))
    await until(lambda: gone.size)
    gone.reactor.gone()
    broken.say(leaf("p", b"", seq=-1))
    cut.reactor.fail(ShuttingDown("cut"))
    await until(lambda: deafened.size)
    deafened.half_close()
    deafened.reactor.gone()
    await asyncio.gather(*(peer.closed for peer in peers))
    assert await driver.left(5)


@pytest.mark.timeout(60)
async def test_E003_mixed_sessions_leave_tasks_threads_and_memory_flat(request: pytest.FixtureRequest):
    """180 sessions of four actions: nothing of them stays, and memory does not grow with their number."""
    request.addfinalizer(lambda: logging.disable(logging.NOTSET))
    logging.disable(logging.INFO)  # pytest would keep each line of the log
    driver = driver_of(echo, sync_echo, deaf, blocks)
    gc.collect()
    others = alive()
    for _ in range(10):
        await one_of_each(driver)
    gc.collect()
    tracemalloc.start()
    tasks, threads, (before, _) = len(asyncio.all_tasks()), threading.active_count(), tracemalloc.get_traced_memory()
    for _ in range(30):
        await one_of_each(driver)
    await asyncio.sleep(0.05)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(asyncio.all_tasks()) <= tasks
    assert threading.active_count() <= threads + 8  # idle threads of the pool
    assert not driver.engine.running
    assert not driver.conversations
    assert not driver.drains
    assert not driver.leaving
    assert driver.threads.busy == driver.threads.stuck == 0
    more = alive() - others  # other tests of this process may have left some behind
    assert not {name: count for name, count in more.items() if count > 8}  # what an idle thread's frame may hold
    assert grown < 150_000


async def one_of_many_nodes(driver: Driver, how: str) -> None:
    peer = EvergreenCall(driver)
    children = [leaf(f"n{number}", b"x") for number in range(500)]
    root = pb.NodeFragment(id="root", child_ids=[one.id for one in children])
    peer.say(root, *children, act("echo", {"x": "root"}, {"out": "r"}))
    await until(lambda: peer.size > 500)
    if how == "gone":
        peer.reactor.gone()
    elif how == "broken":
        peer.reactor.arrived(b"\xff\xff")
    else:
        peer.half_close()
    await peer.closed
    assert await driver.left(5)


@pytest.mark.parametrize("how", ["half-close", "gone", "broken"])
async def test_E003_nodes_of_ended_sessions_need_no_collector(how):
    """They are the most of what a session holds, and cycles of them would wait long for a collection."""
    driver = driver_of(echo)
    gc.collect()
    gc.disable()
    try:
        await one_of_many_nodes(driver, how)
        await asyncio.sleep(0)
        left = sum(type(one) is Node for one in gc.get_objects())
    finally:
        gc.enable()
    assert left <= 8  # roots, which their action keeps until it is collected
