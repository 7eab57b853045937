"""Loops that drain grpcio's queue: calls beside timers, sockets and threads, on its own loop and on another kind."""

from __future__ import annotations

import asyncio
import gc
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.execution.bodies.loop import LoopRunner
from invoker.execution.loop.reactor import Reactor
from invoker.transports.grpc.cygrpc import cygrpc
from invoker.transports.grpc.loopcall import LoopCall
from invoker.transports.grpc.queue_poller import QueuePoller, QueuePollingLoop
from tests.conftest import SLOW
from tests.transports.riff import Riff, eventually


@pytest.fixture(params=["lending", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


def gen(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


def named(name: str) -> tuple[tuple[str, str]]:
    return (("invoker-function", name),)


def test_a_polling_loop_without_a_poller_is_an_asyncio_loop():
    """Timers, threads and sockets."""

    async def main() -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(3))
            writer.close()

        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(await asyncio.to_thread(lambda: b"abc"))
            await asyncio.sleep(0.01)
            data = await reader.read()
            writer.close()
            return data

    with asyncio.Runner(loop_factory=QueuePollingLoop) as runner:
        assert runner.run(main()) == b"abc"


def test_functions_with_io_of_their_own_are_served(kind):
    """A socket, a timer and a thread within one function, many at once."""

    async def busy(x: bytes) -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(len(x)))
            writer.close()

        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(await asyncio.to_thread(lambda: x))
            await asyncio.sleep(0.002)
            data = await reader.read()
            writer.close()
            return data

    with Riff(kind, busy, agen) as riff:
        calls = [riff.call(*[b"%d" % number] * 5, metadata=named("busy")) for number in range(10)]
        assert riff.call(b"x", metadata=named("agen")).rest() == [b"x"]
        assert [call.rest() for call in calls] == [[b"%d" % number] * 5 for number in range(10)]


def test_sleeping_loops_are_woken_by_each_event(kind):
    """Ping-pong: each frame finds the loop asleep, and none waits for a timer."""
    with Riff(kind, agen) as riff:
        call = riff.call()
        waits = []
        for number in range(200):
            if number % 20 == 0:
                time.sleep(0.01)
            began = time.monotonic()
            call.data(b"x")
            assert call.read() == b"x"
            waits.append(time.monotonic() - began)
        assert sorted(waits)[len(waits) // 2] < 0.01 * SLOW
        assert max(waits) < 0.05 * SLOW
        assert call.rest() == []


def test_a_loop_that_never_sleeps_takes_events_too(kind):
    """A task that yields without end keeps the loop awake; calls are served all the same."""
    with Riff(kind, agen) as riff:
        stop = threading.Event()

        async def spin() -> None:
            while not stop.is_set():  # noqa: ASYNC110 - it is set by another thread
                await asyncio.sleep(0)

        spinning = asyncio.run_coroutine_threadsafe(spin(), riff.loop)
        for _ in range(20):
            assert riff.call(b"x", timeout=5).rest() == [b"x"]
        stop.set()
        spinning.result(5)


@pytest.mark.timeout(15)
def test_R109_holds_on_a_loop_that_never_sleeps(kind):
    """The loop and its thread take events at the same time then; a cancel still never looks like an end."""
    committed, left = [], threading.Semaphore(0)

    async def total(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            committed.append(len([x async for x in xs]))
            yield b""
        finally:
            left.release()

    with Riff(kind, total) as riff:
        stop = threading.Event()

        async def spin() -> None:
            while not stop.is_set():  # noqa: ASYNC110 - it is set by another thread
                await asyncio.sleep(0.0001)

        spinning = asyncio.run_coroutine_threadsafe(spin(), riff.loop)
        for _ in range(150):
            call = riff.call(b"x", b"y")
            call.rpc.initial_metadata()
            call.cancel()
            call.half_close()
            assert left.acquire(timeout=5)
        stop.set()
        spinning.result(5)
        assert committed == []


def test_a_sync_function_beside_async_ones_is_served_in_a_thread(kind):
    """It blocks; the async one does not wait for it."""
    go, blocked = threading.Event(), threading.Event()

    def block(xs: Iterator[bytes]) -> Iterator[bytes]:
        blocked.set()
        go.wait(10)
        yield from xs

    with Riff(kind, agen, block) as riff:
        slow = riff.call(b"s", metadata=named("block"))
        assert blocked.wait(2 * SLOW)
        for _ in range(10):
            assert riff.call(b"x", timeout=5, metadata=named("agen")).rest() == [b"x"]
        go.set()
        assert slow.rest() == [b"s"]
        assert eventually(lambda: riff.driver.threads.busy == 0)


def test_no_poller_outlives_its_transport(kind):
    """Opened and closed several times, with calls still running."""
    for _ in range(5):
        with Riff(kind, agen) as riff:
            call = riff.call(b"x")
            assert call.read() == b"x"
        assert not [one for one in threading.enumerate() if one.name == "invoker-poller"]


class Queue:
    """A completion queue on which nothing ever happens."""

    def poll(self, _: float = 0) -> None:
        raise AssertionError("nobody looks")


async def test_a_queue_poller_knows_when_its_calls_have_ended():
    """Whoever shuts the queue waits for that, for a call that posts on it then would end the process."""
    queue_poller = QueuePoller(Queue(), asyncio.get_running_loop())
    await queue_poller.quiet()
    queue_poller.opened()
    queue_poller.opened()
    waiting = asyncio.ensure_future(queue_poller.quiet())
    await asyncio.sleep(0)
    queue_poller.closed()
    await asyncio.sleep(0)
    assert not waiting.done()
    queue_poller.closed()
    await asyncio.wait_for(waiting, 5)


async def test_a_closed_queue_poller_calls_nobody():
    """What is left when the queue is shut down may post on it."""
    queue_poller = QueuePoller(Queue(), asyncio.get_running_loop())
    called: list[str] = []
    queue_poller.later(lambda: called.append("flush"))
    queue_poller.close()
    queue_poller.dispatch()
    await asyncio.sleep(0.01)
    assert called == []


def test_a_function_that_never_waits_runs_in_a_task_of_its_own(kind):
    """Its first step finds what asyncio promises to a task, and what it leaves there is gone with it."""
    seen: list[tuple[asyncio.Task[None] | None, str]] = []
    state: ContextVar[str] = ContextVar("state", default="untouched")

    async def whole(x: bytes) -> bytes:
        seen.append((asyncio.current_task(), state.get()))
        state.set("touched")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            made = group.create_task(asyncio.sleep(0, x))
        return made.result()

    with Riff(kind, whole) as riff:
        calls = [riff.call(b"%d" % number) for number in range(20)]
        assert [call.rest() for call in calls] == [[b"%d" % number] for number in range(20)]
    tasks = {task for task, _ in seen if task is not None}
    assert len(tasks) == 20
    assert all(task.get_name().startswith("body ") for task in tasks)
    assert {before for _, before in seen} == {"untouched"}


def test_an_ended_call_needs_no_garbage_collector(kind):
    """Nothing that belongs to it holds itself."""

    def parts() -> list[object]:
        return [one for one in gc.get_objects() if type(one) in {Reactor, LoopRunner, LoopCall}]

    with Riff(kind, agen) as riff:
        assert riff.call(b"x").rest() == [b"x"]
        gc.collect()
        gc.disable()
        others = len(parts())  # of tests before this one
        try:
            for _ in range(20):
                assert riff.call(b"x").rest() == [b"x"]
            assert eventually(lambda: len(parts()) <= others)
        finally:
            gc.enable()


def test_a_loop_that_has_lent_its_queue_hears_sockets_threads_and_timers(kind):
    """A call has come before, so it looks after the queue; and timers are neither early nor rounded."""
    with Riff(kind, agen) as riff:
        call = riff.call(b"x")
        assert call.read() == b"x"
        waits = []
        for number in range(10):
            time.sleep(0.005)
            heard = threading.Event()
            riff.loop.call_soon_threadsafe(heard.set)
            assert heard.wait(5)
            delay_s = 0.001 + number * 0.005
            began = time.monotonic()
            asyncio.run_coroutine_threadsafe(asyncio.sleep(delay_s), riff.loop).result(5)
            waits.append(time.monotonic() - began - delay_s)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.setblocking(False)
                reading = asyncio.run_coroutine_threadsafe(wrapped(riff.loop, ours), riff.loop)
                time.sleep(0.005)
                theirs.send(b"y")
                assert reading.result(5) == b"y"
        assert min(waits) > -0.001
        assert sorted(waits)[len(waits) // 2] < 0.005 * SLOW
        assert call.rest() == []


async def wrapped(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    return await loop.sock_recv(sock, 1)


class Lent:
    """A completion queue whose events are put by the test, and which counts how often a loop has looked at it."""

    def __init__(self) -> None:
        self.looks = 0
        self.lent = threading.Event()
        self._events: queue.SimpleQueue[SimpleNamespace] = queue.SimpleQueue()

    def put(self, type_: Any, tag: Any = None) -> None:
        self._events.put(SimpleNamespace(completion_type=type_, tag=tag))

    def poll(self, deadline: float | None = None) -> SimpleNamespace:
        if deadline is None:
            self.lent.set()
            return self._events.get()
        self.looks += 1
        return SimpleNamespace(completion_type=None)


def test_a_loop_does_not_look_at_a_queue_where_its_thread_waits():
    """It wakes and sleeps for other work as often as that comes, and the thread's event reaches it all the same."""
    found = Lent()

    async def main() -> tuple[int, int]:
        queue_poller = QueuePoller(found, asyncio.get_running_loop())
        queue_poller.start()
        await asyncio.to_thread(found.lent.wait, 5)
        before = found.looks
        for _ in range(20):
            await asyncio.sleep(0.001)
        looks, told = found.looks - before, asyncio.Event()
        found.put(cygrpc.CompletionType.operation_complete, lambda _: told.set())
        await asyncio.wait_for(told.wait(), 5)
        await asyncio.sleep(0.001)  # before it sleeps it looks, as the thread waits for nothing any more
        after = found.looks
        found.put(cygrpc.CompletionType.queue_shutdown)
        queue_poller.close()
        return looks, after - before

    with asyncio.Runner(loop_factory=QueuePollingLoop) as runner:
        looks, later = runner.run(main())
    assert looks == 0
    assert later > 0


class Noted:
    """A body that says when it begins."""

    name = "noted"
    task: asyncio.Task[None] | None = None
    invocation = SimpleNamespace(context=None)

    def __init__(self, order: list[str]) -> None:
        self.order = order

    async def run(self) -> None:
        self.order.append("body")


@pytest.mark.parametrize("closes", [False, True])
def test_a_body_begins_at_the_end_of_the_turn_that_spawned_it(closes: bool):
    """Before what is put off to the next turn; in that one at latest if the queue poller is closed meanwhile."""
    found, order = Lent(), list[str]()

    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        queue_poller = QueuePoller(found, loop)
        queue_poller.start()

        def turn() -> None:
            loop.call_soon(order.append, "next turn")
            queue_poller.spawn(Noted(order))
            if closes:
                found.put(cygrpc.CompletionType.queue_shutdown)
                queue_poller.close()
            loop.call_later(0, over.set)

        await asyncio.to_thread(found.lent.wait, 5)
        loop.call_soon(turn)
        await over.wait()
        if not closes:
            found.put(cygrpc.CompletionType.queue_shutdown)
            queue_poller.close()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=QueuePollingLoop) as runner:
        runner.run(main())
    assert sorted(order) == ["body", "next turn"]
    assert closes or order[0] == "body"
