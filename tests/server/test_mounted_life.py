"""Functions as an ASGI application: its life, from who starts it to what is left of it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

import invoker
from invoker.server.mounted import Mounted
from tests.asgis import Caller, scope_of
from tests.mounts import MARK, Model, ask, client, no_models, square, thread, worker  # noqa: F401 - a fixture


async def test_H097_the_lifespan_of_a_server_starts_and_stops_it():
    """Start hooks run before the startup is complete, stop hooks before the shutdown is."""
    app = invoker.asgi(Model)
    caller = Caller(app, {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}})
    caller.say(type="lifespan.startup")
    assert await caller.sent.get() == {"type": "lifespan.startup.complete"}
    assert (await ask(app)).text == "7"
    assert Model.made[0].marks == ["entered"]
    caller.say(type="lifespan.shutdown")
    assert await caller.sent.get() == {"type": "lifespan.shutdown.complete"}
    await caller.task
    assert Model.made[0].marks == ["entered", "left"]
    assert len(Model.made) == 1


async def test_H097_a_start_that_fails_fails_the_startup():
    """The server says why, and ends."""

    def broken() -> None:
        raise ValueError("no model")

    def fn(x: int) -> int:
        return x

    fn.init = broken
    caller = Caller(invoker.asgi(fn), {"type": "lifespan", "asgi": {"version": "3.0"}})
    caller.say(type="lifespan.startup")
    message = await caller.sent.get()
    assert message["type"] == "lifespan.startup.failed"
    place = f"tests/server/test_mounted_life.py:{broken.__code__.co_firstlineno + 1}"
    assert message["message"] == f"invoker: the init hook of 'fn' raised ValueError: no model at {place}"
    await caller.task


def test_H097_without_a_lifespan_the_first_request_starts_it(caplog):
    """Once, whoever comes meanwhile; the end of the loop stops it. The log says how to do better."""
    app = invoker.asgi(Model)

    async def main() -> list[str]:
        return [one.text for one in await asyncio.gather(*(ask(app, value=value) for value in range(5)))]

    assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]
    assert [one.marks for one in Model.made] == [["entered", "left"]]
    assert "Give the application's lifespan to its host: FastAPI(lifespan=app.lifespan)" in caplog.text
    assert asyncio.run(main())[0] == "0"
    assert [one.marks for one in Model.made] == [["entered", "left"]] * 2


async def test_H097_a_host_enters_the_lifespan_in_its_own(caplog):
    """As FastAPI does with what it is given; the block may be entered more than once."""
    app = invoker.asgi(Model)
    async with app.lifespan(object()):
        async with app:
            await ask(app)
        assert Model.made[0].marks == ["entered"]
        await ask(app)
    assert Model.made[0].marks == ["entered", "left"]
    assert "lifespan" not in caplog.text


async def test_H097_a_request_that_finds_no_start_is_told_so(caplog):
    """With 503; requests of the next second are not let to try it again."""
    attempts = []

    def load() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("no model yet")

    def fn(x: int) -> int:
        return x

    fn.init = load
    app = invoker.asgi(fn)
    answers = await asyncio.gather(ask(app), ask(app))
    answers.append(await ask(app))
    assert [one.status_code for one in answers] == [503] * 3
    assert answers[0].headers["retry-after"] == "1"
    assert "the functions could not be started; see the log" in answers[0].text
    assert "no model yet" not in answers[0].text
    assert "the init hook of 'fn' raised ValueError: no model yet" in caplog.text
    assert attempts == [1]
    app._failed = (app._failed[0], 0.0, app._failed[2])
    assert (await ask(app)).text == "7"
    assert attempts == [1, 1]


async def test_H097_a_client_that_leaves_does_not_stop_the_start():
    """Others wait for it, too."""
    entered, go = threading.Event(), threading.Event()

    def load() -> None:
        entered.set()
        go.wait()

    def fn(x: int) -> int:
        return x

    fn.init = load
    app = invoker.asgi(fn)
    first = asyncio.create_task(ask(app))
    await asyncio.to_thread(entered.wait)
    second = asyncio.create_task(ask(app))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()
    assert (await second).text == "7"


async def test_H097_the_shutdown_lets_invocations_end():
    """New ones are refused meanwhile."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(x: int) -> int:
        entered.set()
        await go.wait()
        return x

    app = invoker.asgi(slow)
    async with app:
        running = asyncio.create_task(ask(app))
        await entered.wait()
        leaving = asyncio.create_task(app.__aexit__(None, None, None))
        while not next(iter(app._runs.values())).server.engine.is_draining:  # noqa: ASYNC110 - a turn or two
            await asyncio.sleep(0)
        assert (await ask(app)).status_code == 503
        go.set()
        await leaving
        assert (await running).text == "7"


def test_H097_the_end_of_the_loop_cuts_what_runs(caplog):
    """There is nobody left who could wait; the stop hooks run all the same."""
    marks = []

    async def endless(x: int) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            marks.append("cancelled")
        return x

    endless.destroy = lambda: marks.append("destroyed")
    app = invoker.asgi(endless)

    async def main() -> None:
        caller = Caller(app, scope_of(headers={"content-type": "application/json"}))
        caller.give(b"7")
        while not (app._runs and next(iter(app._runs.values())).server.engine.running):  # noqa: ASYNC110 - a turn or two
            await asyncio.sleep(0)

    asyncio.run(main())
    assert marks == ["cancelled", "destroyed"]


def test_H097_the_end_of_the_loop_gives_up_a_start(caplog):
    """What has been begun is undone."""
    marks = []

    async def load() -> None:
        marks.append("loading")
        await asyncio.Event().wait()

    def fn(x: int) -> int:
        return x

    fn.init, fn.destroy = load, lambda: marks.append("destroyed")
    app = invoker.asgi(fn)

    async def main() -> None:
        caller = Caller(app, scope_of())
        caller.give()
        while not marks:  # noqa: ASYNC110 - a turn or two
            await asyncio.sleep(0)

    asyncio.run(main())
    assert marks == ["loading", "destroyed"]
    assert not app._runs


def test_H097_a_loop_that_was_closed_under_it_is_given_up(caplog):
    """As some test clients do; the next loop starts it anew, and no thread is left of the other."""
    app = invoker.asgi(worker)
    for _ in range(2):
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(ask(app)).status_code == 200
        tasks = asyncio.all_tasks(loop)
        loop.close()
        for task in tasks:
            task._log_destroy_pending = False  # that this is the fault of who closed the loop is known
    assert "an event loop was closed while it served worker; their stop hooks have not run" in caplog.text
    next(iter(app._runs.values())).abandon()


def test_H097_loops_of_several_threads_have_runs_of_their_own():
    """Each starts the functions for itself, and stops them."""
    app, texts = invoker.asgi(Model), []
    together = threading.Barrier(3)

    async def main() -> None:
        async with app:
            texts.append((await ask(app)).text)
            await asyncio.to_thread(together.wait)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert texts == ["7"] * 3
    assert [one.marks for one in Model.made] == [["entered", "left"]] * 3
    assert not app._runs


def test_H097_a_loop_that_is_not_asyncios_is_refused():
    """By a sentence; trio has servers, too."""
    with pytest.raises(RuntimeError, match="needs an event loop of asyncio"):
        invoker.asgi(square)(scope_of(), None, None).send(None)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # who closes a loop so leaves its transports
def test_H097_children_of_a_loop_that_was_closed_are_killed():
    """Nobody else would."""

    @invoker.function(isolation="process")
    def pid(x: int) -> int:
        return os.getpid()

    app = invoker.asgi(pid, warm_children=1)
    loop = asyncio.new_event_loop()
    child = loop.run_until_complete(_pid(app))
    tasks = asyncio.all_tasks(loop)
    loop.close()
    for task in tasks:
        task._log_destroy_pending = False
    run = next(iter(app._runs.values()))
    processes = [one._process for one in run.server.driver.children._all]
    assert child in [one.pid for one in processes]
    run.abandon()
    assert [one.wait() for one in processes] == [-9] * len(processes)
    del app, run, loop, tasks, task, processes
    gc.collect()


async def _pid(app: Mounted) -> int:
    return int((await ask(app)).text)
