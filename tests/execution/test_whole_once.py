"""Plain functions that are called once: without iterators between, they answer as they do with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from invoker import Context, Message, Output, function
from invoker.author.lift import Function
from invoker.context import RUNNING
from invoker.errors import DeadlineExceeded, FunctionError, Status
from tests.execution.wholes import LIMIT_S, WholeCall
from tests.execution.wires import direct_driver


def generate(x: int) -> Any:
    yield x


def double(x: int) -> int:
    return 2 * x


def total(x: int, y: int) -> int:
    return x + y


def nothing() -> int:
    return 7


def addressed(x: int) -> Any:
    return Output(0, Message(x, headers={"a": "b"}))


def misaddressed(x: int) -> Any:
    return Output(3, x)


def stops(x: int) -> int:
    raise StopIteration(x)


def fails(x: int) -> int:
    raise KeyError(x)


def leaves(x: int) -> int:
    raise SystemExit(x)


def wrong(x: int) -> str:
    return x  # type: ignore[return-value]


def lists(x: int) -> Any:
    return next(map(generate, [x]))


def knows(x: int, context: Context) -> list[Any]:
    """The inputs of the context have ended; the thread runs this invocation."""
    context.outputs[0].send(["sent"])
    return [x, len(context.inputs), list(context.inputs[0]), RUNNING.get() is context, context.cancelled]


def ends(x: int, context: Context) -> int:
    context.outputs[0].end()
    return x


FUNCTIONS = [
    double, total, nothing, addressed, misaddressed, stops, fails, leaves, wrong, lists, knows, ends,
]  # fmt: skip


def outcome(
    target: Callable[..., Any], payload: bytes, *, has_turn: bool = True, is_unary: bool = True, **bounds: Any
) -> Any:
    """All that a peer and the counters see of one call."""
    driver = direct_driver(function(**bounds)(target))
    for one in driver.engine.catalog:
        one.is_unary = one.is_unary and is_unary
    call = WholeCall(driver, has_turn=has_turn).start()
    call.data(payload)
    if target is total:
        call.data(b"5", 1)
    error = call.end()
    counters = call.driver.engine.counters
    counted = (counters.finished, counters.frames_in, counters.frames_out, counters.bytes_in, counters.bytes_out)
    cause = None if error is None else (type(error.__cause__), str(error.__cause__))
    return [*call.outlet.left, *call.whole.sent], type(error), str(error), cause, counted


@pytest.mark.parametrize("bounds", [{}, {"timeout_s": 60.0}])
@pytest.mark.parametrize("payload", [b"3", b"{"])
@pytest.mark.parametrize("target", FUNCTIONS)
def test_R031_R033_a_function_that_is_called_once_answers_as_one_that_is_mapped(target, payload, bounds):
    """Also where the conversation is long from the beginning."""
    mapped = outcome(target, payload, is_unary=False, **bounds)
    for has_turn in (True, False):
        assert outcome(target, payload, has_turn=has_turn, **bounds) == mapped


@pytest.mark.parametrize("target", [double, total, nothing, knows])
def test_a_plain_function_is_called_without_iterators(monkeypatch, target):
    """Once for one message of each input; with more of them it is mapped."""
    opened: list[Function] = []
    real = Function.open

    def noting(self: Function, *args: Any) -> Any:
        opened.append(self)
        return real(self, *args)

    monkeypatch.setattr(Function, "open", noting)
    assert outcome(target, b"3")[4][0] == {Status.OK: 1}
    assert opened == []
    outcome(target, b"3", is_unary=False)
    assert len(opened) == 1
    call = WholeCall(direct_driver(double)).start().data(b"1").data(b"2")
    assert call.end() is None
    assert call.payloads() == [b"2", b"4"]
    assert len(opened) == 2


def test_what_a_function_gives_that_is_awaitable_is_awaited(monkeypatch):
    """By its context, as when it is mapped."""
    waited: list[object] = []

    class Later:
        def __await__(self) -> Any:
            yield

    def wait(self: Context, awaitable: object) -> int:
        waited.append(awaitable)
        return 4

    def gives(x: int) -> Any:
        return Later()

    monkeypatch.setattr(Context, "wait", wait)
    call = WholeCall(direct_driver(gives)).start().data(b"1")
    assert call.end() is None
    assert call.payloads() == [b"4"]
    assert type(waited[0]) is Later


def test_T054_a_function_that_is_called_once_is_ended_in_its_stead():
    """The peer hears of it while the function goes on, whose value comes too late."""
    inside, go = threading.Event(), threading.Event()

    @function(timeout_s=0.01)
    def sleeps(x: int) -> int:
        inside.set()
        go.wait(LIMIT_S)
        return x

    call = WholeCall(direct_driver(sleeps)).start().data(b"1").run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    time.sleep(0.02)
    assert call.whole.sweep(time.monotonic())
    assert isinstance(call.await_told().error, DeadlineExceeded)
    go.set()
    assert isinstance(call.end(), DeadlineExceeded)
    assert call.payloads() == []


def test_R115_a_peer_that_left_meanwhile_gets_nothing():
    """The invocation has not succeeded then, if its conversation has become long."""
    inside, go = threading.Event(), threading.Event()

    def sleeps(x: int) -> int:
        inside.set()
        go.wait(LIMIT_S)
        return x

    call = WholeCall(direct_driver(sleeps)).start().data(b"1").run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    call.outlet.gone = True
    go.set()
    assert call.end() is not None
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


def test_R033_what_it_raises_is_told():
    """As an error of production, with its cause."""
    call = WholeCall(direct_driver(stops)).start().data(b"1")
    error = call.end()
    assert isinstance(error, FunctionError)
    assert isinstance(error.__cause__, RuntimeError)
    assert isinstance(error.__cause__.__cause__, StopIteration)
