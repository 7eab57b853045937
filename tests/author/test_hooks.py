"""The life of a function: made, entered, initialised, destroyed, left; each once."""

from __future__ import annotations

import asyncio
import linecache
import re
import threading
import time
from typing import Any, Self

import pytest

from invoker.author.decorator import function
from invoker.author.hooks import Hooks, run_hook
from invoker.author.reader import read
from invoker.errors import HookError


def hooks_of(fn: Any, **kwargs: Any) -> Hooks:
    return Hooks(fn, read(fn), **kwargs)


def decorated(**options: Any) -> Hooks:
    return hooks_of(function(name="f", **options)(lambda x: x))


@pytest.fixture
def marks() -> list[str]:
    return []


def marking(marks: list[str], name: str, is_async: bool) -> Any:
    async def hook_async() -> None:
        marks.append(name)

    return hook_async if is_async else lambda: marks.append(name)


@pytest.mark.parametrize("is_async", [False, True])
async def test_R017_init_runs_once_before_the_first_invocation(marks: list[str], is_async: bool) -> None:
    """A second start does nothing."""
    hooks = decorated(init=marking(marks, "init", is_async))
    await hooks.start()
    await hooks.start()
    assert marks == ["init"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_R018_destroy_runs_once(marks: list[str], is_async: bool) -> None:
    """A second stop does nothing."""
    hooks = decorated(destroy=marking(marks, "destroy", is_async))
    await hooks.start()
    await hooks.stop()
    await hooks.stop()
    assert marks == ["destroy"]


async def test_R018_a_function_that_was_never_started_is_not_destroyed(marks: list[str]) -> None:
    """Nothing was made, so nothing is undone."""
    await decorated(destroy=marking(marks, "destroy", False)).stop()
    assert marks == []


async def test_R019_a_sync_hook_does_not_block_the_loop() -> None:
    """The loop turns while the hook waits, and its thread is not the loop's."""
    release, threads = threading.Event(), []

    def init() -> None:
        threads.append(threading.current_thread())
        assert release.wait(5)

    start = asyncio.create_task(decorated(init=init).start())
    while not threads:  # noqa: ASYNC110 - it is the turning of the loop that is tested
        await asyncio.sleep(0)
    release.set()
    await start
    assert threads[0] is not threading.current_thread()


@pytest.mark.parametrize("is_async", [False, True])
async def test_R020_a_hook_that_takes_too_long_aborts_with_the_timeout_in_ms(is_async: bool) -> None:
    """Sync and async alike; the text holds the milliseconds."""
    release = threading.Event()

    async def wait_async() -> None:
        await asyncio.Event().wait()

    hooks = decorated(init=wait_async if is_async else release.wait, hook_timeout_s=0.02)
    with pytest.raises(HookError, match=r"The hook took too long to run \(timeout: 20ms\): init hook of 'f'"):
        await hooks.start()
    release.set()


async def test_R020_ten_seconds_unless_configured() -> None:
    """The author's figure goes before the operator's."""
    assert decorated().timeout_s == 10
    assert hooks_of(lambda x: x, timeout_s=3).timeout_s == 3
    assert hooks_of(function(hook_timeout_s=2)(lambda x: x), timeout_s=3).timeout_s == 2


@pytest.mark.parametrize("error", [ValueError("no model"), SystemExit(3), StopIteration("no model")])
async def test_R021_a_raising_hook_aborts_with_its_cause(error: BaseException) -> None:
    """Whatever it raises, the process ends by our doing."""

    def init() -> None:
        raise error

    with pytest.raises(HookError, match=rf"the init hook of 'f' raised {type(error).__name__}: ") as caught:
        await decorated(init=init).start()
    assert caught.value.__cause__ is error


async def test_R023_destroy_runs_when_init_fails_and_the_init_error_is_reported(marks: list[str]) -> None:
    """Even when destroy fails too."""

    def init() -> None:
        marks.append("init")
        raise ValueError("first")

    def destroy() -> None:
        marks.append("destroy")
        raise ValueError("second")

    hooks = decorated(init=init, destroy=destroy)
    with pytest.raises(HookError, match="first"):
        await hooks.start()
    await hooks.stop()
    assert marks == ["init", "destroy"]


async def test_R023_destroy_runs_when_init_times_out(marks: list[str]) -> None:
    """With a timeout of its own."""

    async def init() -> None:
        await asyncio.Event().wait()

    hooks = decorated(init=init, destroy=marking(marks, "destroy", True), hook_timeout_s=0.01)
    with pytest.raises(HookError, match="took too long"):
        await hooks.start()
    assert marks == ["destroy"]


class Sync:
    def __init__(self) -> None:
        self.marks = ["made"]

    def __enter__(self) -> Self:
        self.marks.append("entered")
        return self

    def __call__(self, x: int) -> int:
        return x

    def __exit__(self, *exc: object) -> None:
        self.marks.append(f"left {exc}")


class Async(Sync):
    async def __aenter__(self) -> Self:
        self.marks.append("entered")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.marks.append(f"left {exc}")


@pytest.mark.parametrize("kind", [Sync, Async])
@pytest.mark.parametrize("is_instance", [True, False])
async def test_context_managers_are_entered_once_and_left_at_the_end(kind: type[Sync], is_instance: bool) -> None:
    """Classes are instantiated first; async twins go before sync ones."""
    hooks = hooks_of(kind() if is_instance else kind)
    assert hooks.is_context_manager
    await hooks.start()
    await hooks.start()
    assert hooks.target.marks == ["made", "entered"]
    await hooks.stop()
    assert hooks.target.marks[2:] == ["left (None, None, None)"]


async def test_the_order_of_a_life(marks: list[str]) -> None:
    """Made, entered, init; destroy, left."""

    class Model:
        def __init__(self) -> None:
            marks.append("made")

        def __enter__(self) -> None:
            marks.append("entered")

        def __exit__(self, *exc: object) -> None:
            marks.append("left")

        def __call__(self, x: int) -> int:
            return x

    hooks = hooks_of(function(init=marking(marks, "init", False), destroy=marking(marks, "destroy", True))(Model))
    await hooks.start()
    await hooks.stop()
    assert marks == ["made", "entered", "init", "destroy", "left"]


async def test_a_failed_enter_is_not_left(marks: list[str]) -> None:
    """As the with statement does."""

    class Broken:
        def __enter__(self) -> None:
            raise OSError("no disk")

        def __exit__(self, *exc: object) -> None:
            marks.append("left")

        def __call__(self, x: int) -> int:
            return x

    with pytest.raises(HookError, match=r"the __enter__ of 'Broken' raised OSError: no disk"):
        await hooks_of(Broken).start()
    assert marks == []


@pytest.mark.parametrize("way", ["constructor", "__enter__", "init hook"])
async def test_R021_an_error_of_a_hook_says_where_it_was_raised(way: str) -> None:
    """By file and line of the author's own code, whichever hook it is."""

    class Broken:
        def __init__(self) -> None:
            self.fail("constructor")

        def __enter__(self) -> None:
            self.fail("__enter__")

        def __exit__(self, *exc: object) -> None: ...

        def __call__(self, x: int) -> int:
            return x

        def fail(self, where: str) -> None:
            if way == where:
                raise KeyError(where)

    def init() -> None:
        int("no number")

    hooks = decorated(init=init) if way == "init hook" else hooks_of(Broken)
    with pytest.raises(HookError) as caught:
        await hooks.start()
    line = re.search(r" at (?:\S*/)?test_hooks\.py:(\d+)$", str(caught.value))
    assert line, str(caught.value)
    text = linecache.getline(__file__, int(line[1]))
    assert ("int(" if way == "init hook" else "raise KeyError(where)") in text


async def test_a_constructor_that_raises_is_named() -> None:
    """It counts as a failed start."""

    class Broken:
        def __init__(self) -> None:
            raise KeyError("path")

        def __call__(self, x: int) -> int:
            return x

    with pytest.raises(HookError, match="the constructor of 'Broken' raised KeyError"):
        await hooks_of(Broken).start()


async def test_stop_does_the_rest_after_a_failure_and_raises_the_first() -> None:
    """Left although destroy failed."""
    model = Sync()

    def destroy() -> None:
        raise ValueError("stuck")

    hooks = Hooks(model, read(function(destroy=destroy)(Sync())))
    await hooks.start()
    hooks.spec = read(function(destroy=destroy)(model))
    with pytest.raises(HookError, match="stuck"):
        await hooks.stop()
    assert model.marks[-1].startswith("left")


async def test_ready_asks_the_hook() -> None:
    """No hook: ready once started; false, or an exception: not ready."""

    def broken() -> bool:
        raise ValueError

    async def ready() -> bool:
        return True

    for hook, answer in ((None, True), (ready, True), (lambda: False, False), (broken, False), (lambda: None, True)):
        hooks = decorated(ready=hook)
        assert not await hooks.is_ready()
        await hooks.start()
        assert await hooks.is_ready() is answer
        await hooks.stop()
        assert not await hooks.is_ready()


async def test_a_sync_hook_may_return_an_awaitable() -> None:
    """It is awaited on the loop."""

    async def inner() -> int:
        return 5

    assert await run_hook(lambda: inner(), "t", timeout_s=1) == 5  # noqa: PLW0108 - a sync function it must be


async def test_a_hook_that_ends_after_it_was_given_up_harms_nobody() -> None:
    """Its result goes nowhere."""
    release = threading.Event()
    with pytest.raises(HookError, match="took too long"):
        await run_hook(release.wait, "t", timeout_s=0.01)
    before = time.monotonic()
    release.set()
    await asyncio.sleep(0.01)
    assert time.monotonic() - before < 5


async def test_cancelling_a_start_is_no_hook_error() -> None:
    """A signal during the start must not be reported as a broken hook."""

    async def init() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(decorated(init=init).start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_H094_where_no_thread_can_be_started_a_hook_runs_all_the_same(monkeypatch):
    """At the interpreter's exit, from Python 3.12 on."""

    def refuse(self) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await run_hook(lambda: 7, "a hook", timeout_s=1.0) == 7
