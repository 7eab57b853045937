"""Serve from a program: what is served, how it ends, and what is left of it. Whole programs live in tests/e2e."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
import types

import httpx
import pytest

import invoker
from invoker.client import RiffClient
from invoker.errors import ConfigError, HookError, LoadError, SpecError, StartupError
from invoker.server import serving
from invoker.server.background import Background
from tests.conftest import SLOW


def square(x: int) -> int:
    return x * x


class Model:
    """Notes its life."""

    def __init__(self) -> None:
        self.marks = ["made"]
        MADE.append(self)

    def __enter__(self) -> None:
        self.marks.append("entered")

    def __call__(self, x: int) -> int:
        return x + len(self.marks)

    def __exit__(self, *exc: object) -> None:
        self.marks.append("left")


MADE: list[Model] = []


def start(*functions, **settings) -> serving.Serving:
    return invoker.serve(*functions, block=False, **settings)


def ask(served: serving.Serving, value: object = 7, path: str = "/", **options) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.post(served.http_url + path, json=value, **options)


@pytest.fixture
def session(monkeypatch) -> None:
    """An interactive session, as a notebook is one."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)


def test_H090_functions_are_given_as_they_are():
    """A function of a module, a closure, a lambda, a partial, a method, an instance and a class; by name, too."""
    offset = 3

    def add(x: int) -> int:
        return x + offset

    class Shop:
        def price(self, x: int) -> int:
            return x * offset

    class Twice:
        def __call__(self, x: int) -> int:
            return 2 * x

    given = [
        square,
        add,
        lambda x: x,
        functools.partial(pow, 2),
        Shop().price,
        Twice(),
        Model,
        "functions.repeat:repeat",
    ]
    with start(*given) as served:
        assert served.functions == ("square", "add", "lambda", "pow", "price", "Twice", "Model", "repeat")
        for name, expected in zip(served.functions, ("49", "10", "7", "128", "21", "14", "9"), strict=False):
            answer = ask(served, headers={"Invoker-Function": name, "Accept": "application/json"})
            assert (name, answer.text) == (name, expected)
    assert MADE.pop().marks == ["made", "entered", "left"]


async def test_H090_both_ports_serve_and_the_loop_of_the_program_goes_on():
    """gRPC and HTTP; nothing of it runs on the loop of the caller."""
    async with invoker.serve(square) as served:
        assert served.is_running
        async with RiffClient(served.grpc_address) as client:
            assert [one.value for one in await client.invoke([[3]]).collect()] == [9]
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(served.http_url, json=7)).text == "49"
        assert [one.get_name() for one in asyncio.all_tasks() if one is not asyncio.current_task()] == []
        assert repr(served) == f"<Serving square on {served.http_url}, grpc {served.grpc_address}>"
    assert not served.is_running
    assert repr(served) == "<Serving square, stopped>"


def test_H093_isolated_functions_need_no_name():
    """They are sent to their children; one that cannot be sent says so."""

    @invoker.function(isolation="process")
    def pid(x: int) -> int:
        return os.getpid() + x

    with start(pid) as served:
        assert ask(served, 0).json() not in (0, os.getpid())
    lock = threading.Lock()

    @invoker.function(isolation="process")
    def locked(x: int) -> int:
        with lock:
            return x

    with pytest.raises(
        StartupError, match=r"'locked' cannot be sent to a child process: .*; name it by its entrypoint"
    ):
        start(locked)


@pytest.mark.usefixtures("session")
def test_H091_in_a_session_a_new_server_takes_the_place_of_the_old_one():
    """That of functions of the same names, and that on the same port; on the same ports; others are left alone."""
    first = invoker.serve(square)
    with invoker.serve(lambda x: x) as other:
        second = invoker.serve(types.FunctionType((lambda x: x + 1).__code__, {}, "square"))
        assert (first.is_running, second.is_running, other.is_running) == (False, True, True)
        assert (first.http_url, first.grpc_address) == (second.http_url, second.grpc_address)
        assert ask(second).text == "8"
        assert other.http_url != second.http_url
        with pytest.raises(SpecError):
            invoker.serve(types.FunctionType((lambda x: x + 1).__code__, {}, "square"), len.__class__)
        assert second.is_running
        third = invoker.serve(Model, port=int(second.http_url.rpartition(":")[2]))
        assert (second.is_running, third.is_running) == (False, True)
        third.stop()


def test_H091_outside_of_a_session_servers_stand_side_by_side():
    """A port that is taken is taken."""
    with start(square) as first:
        with start(square) as second:
            assert first.is_running
            assert first.http_url != second.http_url
        with pytest.raises(StartupError, match=r"in use; set port$"):
            start(square, port=int(first.http_url.rpartition(":")[2]))


def test_H094_a_stop_lets_invocations_end_and_can_be_repeated():
    """In any thread; the answer is what became of them."""
    entered, go = threading.Event(), threading.Event()

    def slow(x: int) -> int:
        entered.set()
        go.wait()
        return x

    served, answers, stops = start(slow), [], []
    asking = threading.Thread(target=lambda: answers.append(ask(served).text))
    asking.start()
    entered.wait()
    stopping = threading.Thread(target=lambda: stops.append(served.stop()))
    stopping.start()
    go.set()
    stopping.join()
    asking.join()
    assert (answers, stops, served.stop()) == (["7"], [True], True)


def test_H094_a_drain_that_is_over_cuts_what_runs():
    """And the answer says so."""
    entered = threading.Event()

    async def endless(x: int) -> int:
        entered.set()
        await asyncio.Event().wait()
        return x

    served, answers = start(endless), []
    asking = threading.Thread(target=lambda: answers.append(ask(served).status_code))
    asking.start()
    entered.wait()
    assert not served.stop(0.0)
    asking.join()
    assert answers == [503]


def test_H094_a_server_that_does_not_end_is_left_behind(monkeypatch, caplog):
    """Nothing ends the process by force; the log says what hangs."""
    entered, go = threading.Event(), threading.Event()

    async def deaf(x: int) -> int:
        entered.set()
        go.wait()
        return x

    served = start(deaf)
    asking = threading.Thread(target=lambda: ask(served))
    asking.start()
    entered.wait()
    monkeypatch.setattr(Background, "_limit_s", 0.05)
    assert not served.stop(0.0)
    assert "a server has not ended within 0.05 s and continues in its thread" in caplog.text
    monkeypatch.undo()
    go.set()
    asking.join()
    served.stop()


@pytest.mark.usefixtures("thawed")
def test_H095_a_start_that_fails_leaves_nothing():
    """Its stop hooks have run, and its ports are free."""
    marks = []

    def fn(x: int) -> int:
        return x

    def broken() -> None:
        raise ValueError("no model")

    fn.init, fn.destroy = broken, lambda: marks.append("destroyed")
    with pytest.raises(HookError, match="no model"):
        start(fn)
    marks.clear()
    before = counted()
    with pytest.raises(HookError, match="no model"):
        start(fn)
    assert marks == ["destroyed"]
    assert settled(before) == before


@pytest.mark.usefixtures("thawed")
def test_H095_after_the_stop_nothing_is_left():
    """No thread, descriptor or handler; signals, collector and limits were not touched."""
    for protocols in ("http", "riff,http"):  # gRPC and uvloop keep some of what they take the first time
        with start(square, protocols=protocols) as served:
            ask(served)
    before = counted()
    for _ in range(3):
        with start(square, protocols="http") as served:
            ask(served)
            assert state() == before[2:]
        with start(square) as served:
            ask(served)
    assert settled(before) == before


def settled(before: tuple[int, *tuple[object, ...]]) -> tuple[object, ...]:
    """What is left, once gRPC has closed descriptors in its own threads; those of other tests may go, too."""
    until = time.monotonic() + SLOW
    while (now := counted()) != before and time.monotonic() < until:
        if now[0] < before[0] and now[1:] == before[1:]:
            return before
        time.sleep(0.01)
    return now


def counted() -> tuple[int, *tuple[object, ...]]:
    gc.collect()
    threads = [one.name for one in threading.enumerate() if not one.name.startswith("Thread-")]
    return (len(os.listdir("/proc/self/fd")), threads, *state())  # noqa: PTH208


def state() -> tuple[object, ...]:
    loggers = [logging.getLogger(), logging.getLogger("invoker"), logging.getLogger("asyncio")]
    return (
        [(one.level, list(one.handlers)) for one in loggers],
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        gc.get_threshold(),
        gc.get_freeze_count() > 0,
        resource.getrlimit(resource.RLIMIT_NOFILE),
        dict(os.environ),
    )


@pytest.mark.parametrize(
    ("functions", "settings", "error", "text"),
    [
        ((), {}, TypeError, "at least one function"),
        ((square,), {"prot": 1}, TypeError, "there is no setting 'prot'; did you mean 'port'?"),
        ((square,), {"workers": 4}, ConfigError, "run: python -m invoker module:function --workers 4"),
        (
            ("functions.square:square",),
            {"workers": "auto"},
            ConfigError,
            "invoker functions.square:square --workers auto",
        ),
        (("no.such:thing",), {}, LoadError, "no.such"),
        ((square, square), {}, SpecError, "two functions are named 'square'"),
        ((3,), {}, SpecError, "int"),
    ],
)
def test_H092_what_cannot_be_served_is_said_at_once(functions, settings, error, text):
    """In the words of the command line, or of Python."""
    with pytest.raises(error) as raised:
        start(*functions, **settings)
    assert text in str(raised.value)


async def test_H091_who_has_a_loop_cannot_block():
    """It would never run again."""
    with pytest.raises(RuntimeError, match="needs the main thread and no running event loop"):
        invoker.serve(square, block=True)


def test_H091_a_thread_serves_in_the_background():
    """Only the main thread gets signals."""
    made: list[serving.Serving] = []
    thread = threading.Thread(target=lambda: made.append(invoker.serve(square)))
    thread.start()
    thread.join()
    assert ask(made[0]).text == "49"
    made[0].stop()


def test_H092_the_loopback_address_unless_somebody_says_otherwise(monkeypatch):
    """Also in a container, where the command line takes all interfaces."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("INVOKER_HOST", raising=False)
    for told, expected in (({}, "127.0.0.1"), ({"host": "0.0.0.0"}, "0.0.0.0")):
        server = _server_of(monkeypatch, **told)
        assert server.config.bind_host()[0] == expected
    monkeypatch.setenv("INVOKER_HOST", "0.0.0.0")
    assert _server_of(monkeypatch).config.bind_host()[0] == "0.0.0.0"


def _server_of(monkeypatch, **settings):
    made = []

    class Noted(Background):
        def __init__(self, server, factory):
            made.append(server)
            super().__init__(server, factory)

    monkeypatch.setattr(serving, "Background", Noted)
    with start(square, protocols="http", **settings):
        return made[0]
