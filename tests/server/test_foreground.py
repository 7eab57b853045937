"""A server in the main thread of a program; whole programs are in tests/e2e/test_serve.py."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import threading
import time

import pytest

from invoker.errors import StartupError
from invoker.server import life
from invoker.server.building import build
from invoker.server.foreground import run_here
from invoker.server.table import TABLE


def served(*functions, **more):
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, protocols=("http",), **more)
    return build(config, *(functions or ("functions.square:square",)))


@pytest.fixture
def _fresh(thawed):
    """As in a process in which no server has run."""
    before, thresholds = resource.getrlimit(resource.RLIMIT_NOFILE), gc.get_threshold()
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def state() -> tuple[object, ...]:
    return (
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        gc.get_threshold(),
        gc.get_freeze_count() > 0,
        resource.getrlimit(resource.RLIMIT_NOFILE),
        [(one.level, list(one.handlers)) for one in (logging.getLogger(), logging.getLogger("invoker"))],
    )


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_H091_H095_a_signal_ends_it_and_all_is_as_before(monkeypatch, number):
    """While it serves, the process is its own."""
    during = []

    def announced(line: str) -> None:
        if line.startswith("ready: square on http="):
            during.append(state())
            os.kill(os.getpid(), number)

    monkeypatch.setattr(life, "announce", announced)
    before = state()
    assert run_here(served())
    assert state() == before
    until_s = time.monotonic() + 5  # the guard ends on its own, a moment later
    while (
        left := [one for one in threading.enumerate() if one.name == "invoker-guard"]
    ) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert not left
    for ours, theirs in list(zip(during[0], before, strict=True))[:4]:
        assert ours != theirs


def test_H091_a_stop_hook_that_fails_is_told():
    """By the answer."""

    def fn(x: int) -> int:
        return x

    def broken() -> None:
        raise ValueError("no")

    fn.init, fn.destroy = lambda: os.kill(os.getpid(), signal.SIGTERM), broken
    assert not run_here(served(fn))


def test_H095_a_start_that_fails_leaves_all_as_before():
    """The error is the caller's."""

    def fn(x: int) -> int:
        return x

    def broken() -> None:
        raise ValueError("no model")

    fn.init = broken
    before = state()
    with pytest.raises(StartupError, match="no model"):
        run_here(served(fn))
    assert state() == before
