"""A server in a thread, in somebody else's process; whole ones are served in tests/server/test_serving.py."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

import pytest

from invoker.errors import StartupError
from invoker.server.background import Background
from invoker.server.building import build
from invoker.server.table import TABLE


def background(*functions, **more) -> Background:
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, protocols=("http",), **more)
    return Background(build(config, *(functions or ("functions.square:square",)), is_guest=True))


def test_it_runs_from_its_start_to_its_stop():
    """On a loop that is closed behind it."""
    made = background()
    assert not made.is_running
    made.start()
    assert made.is_running
    assert made.stop()
    assert not made._thread.is_alive()
    assert not made.is_running
    assert made._loop.is_closed()
    assert made.stop()


async def test_an_async_program_goes_on_while_it_stops():
    """And who gives up the waiting does not give up the stop."""
    entered, go = threading.Event(), threading.Event()

    def fn(x: int) -> int:
        return x

    def destroy() -> None:
        entered.set()
        go.wait()

    fn.destroy = destroy
    made = background(fn)
    await asyncio.to_thread(made.start)
    stopping = asyncio.create_task(made.stop_async())
    await asyncio.to_thread(entered.wait)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    go.set()
    assert await made.stop_async()


def test_a_start_that_is_interrupted_is_given_up(monkeypatch):
    """By Ctrl-C in the main thread, while a model loads; nobody gets to hold the server."""
    entered, go = threading.Event(), threading.Event()

    def fn(x: int) -> int:
        return x

    def load() -> None:
        entered.set()
        go.wait()

    fn.init = load
    made = background(fn)

    def interrupt() -> None:
        entered.wait()
        go.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(made._started, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        made.start()
    assert not made._thread.is_alive()
    assert made._loop.is_closed()


def test_a_server_that_is_stopped_before_it_has_started_says_so():
    """Whoever waits for the start hears of it."""
    entered, go = threading.Event(), threading.Event()

    def fn(x: int) -> int:
        return x

    def load() -> None:
        entered.set()
        go.wait()

    fn.init = load
    made, errors = background(fn), []

    def begin() -> None:
        try:
            made.start()
        except StartupError as error:
            errors.append(error.detail)

    starting = threading.Thread(target=begin)
    starting.start()
    entered.wait()
    made.stop()
    starting.join()
    go.set()
    assert errors == ["the server was stopped before it had started"]


def test_a_function_that_stops_its_own_server_is_not_waited_for():
    """On the loop; the stop would wait for the function, and the function for the stop."""
    made, stops = background(), []
    made.start()
    made._loop.call_soon_threadsafe(lambda: stops.append(made.stop(0.0)))
    made._thread.join()
    assert stops == [False]
    assert not made.is_running


def test_an_exit_of_a_task_of_the_author_ends_that_task_only(caplog):
    """asyncio would end the loop with it."""
    made, over = background(), threading.Event()
    made.start()

    async def leave() -> None:
        over.set()
        raise SystemExit(3)

    kept = []
    made._loop.call_soon_threadsafe(lambda: kept.append(asyncio.ensure_future(leave())))
    over.wait()
    assert made.stop()
    assert "raised SystemExit, which ends that task only" in caplog.text
    assert isinstance(kept[0].exception(), SystemExit)


def test_a_failure_while_it_serves_is_logged(monkeypatch, caplog):
    """Nobody waits for the thread, so nobody else could tell."""
    made = background()
    made.start()

    real = made._server.stop

    async def fail(*, drain_s: float) -> bool:
        await real(drain_s=drain_s)
        raise ValueError("a defect")

    monkeypatch.setattr(made._server, "stop", fail)
    with caplog.at_level(logging.ERROR):
        assert not made.stop()
    assert "a server has failed" in caplog.text


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_H094_a_fork_does_not_stop_it():
    """It has no thread that could answer, and the handlers at its exit must not wait for one."""
    made = background()
    made.start()
    child = os.fork()
    if not child:
        is_fine = not made.is_running and not made.stop() and not asyncio.run(made.stop_async())
        os._exit(0 if is_fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert made.is_running
    assert made.stop()
