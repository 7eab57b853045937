"""`invoker.execution.unary`: a sync function that was sent whole, in the thread that has read the request."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from invoker.context import RUNNING, Context
from invoker.core.invocation import Invocation
from invoker.core.steps import Open
from invoker.core.unary import UnaryCall, UnaryInvocation
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InternalError,
    InvocationError,
    ShuttingDown,
    Status,
    StopInvocation,
)
from invoker.execution.driver import Driver
from invoker.execution.unary import UnaryBody
from invoker.message import Message, Output
from tests.execution.memory import driver_of
from tests.execution.wholes import ByHand, MemoryOutlet

JSON = "application/json"
VARIABLE = ContextVar("variable", default="none")
SECOND = FunctionError("a second value")


class One:
    """One call, with its outlet and turn."""

    def __init__(self, driver: Driver, *, has_turn: bool = True) -> None:
        self.driver = driver
        self.outlet, self.turn = MemoryOutlet(), ByHand()
        self.body = UnaryBody(driver, self.outlet, self.turn if has_turn else None)  # type: ignore[arg-type]
        self.endings: list[UnaryInvocation] = []
        driver.engine.on_close = [self.endings.append]  # type: ignore[list-item]

    def run(self, payload: bytes = b"3", *, deadline: float | None = None) -> tuple[bytes | None, Any]:
        call = UnaryCall(Open("k", protocol="p"), [Message(payload, {}, JSON)])
        refused = self.body.begin(self.driver.engine.plan(call.open), call, lambda: SECOND, deadline=deadline)
        message, error = self.body.run() if refused is None else (None, refused)
        assert not self.driver.engine.running
        assert not self.driver.direct
        assert not self.outlet.left
        return None if message is None else message.payload, error


def run(function: Any, payload: bytes = b"3") -> tuple[bytes | None, Any]:
    return One(driver_of(function)).run(payload)


def test_it_calls_the_function_in_this_thread() -> None:
    """Which has a context of its own each time (R-012), and knows what it runs."""
    seen: list[Any] = []

    def noted(x: int) -> int:
        seen.append((threading.get_ident(), VARIABLE.get(), RUNNING.get()))
        VARIABLE.set("left over")
        until = time.thread_time_ns() + 2_000_000
        while time.thread_time_ns() < until:
            pass
        return x * x

    driver = driver_of(noted)
    for _ in range(2):
        one = One(driver)
        assert one.run() == (b"9", None)
        (ended,) = one.endings
        assert (ended.frames_in, ended.frames_out, ended.bytes_out) == (1, 1, 1)
        assert ended.cpu_ns >= 2_000_000
        assert ended.context.run is None  # it was released
        assert one.turn.busy is None
    assert [each[:2] for each in seen] == [(threading.get_ident(), "none")] * 2
    assert [each[2].invocation_id for each in seen] == ["i1", "i2"]
    assert VARIABLE.get() == "none"


def test_a_value_that_nobody_reads_is_dropped() -> None:
    """The function ends normally."""

    def elsewhere(x: int) -> Any:
        return Output("unlisted", x)

    one = One(driver_of(elsewhere))
    make = one.driver.engine.open

    def unlisted(*args: Any, **more: Any) -> Invocation:
        made = make(*args, **more)
        made.drops_unlisted = True
        return made

    one.driver.engine.open = unlisted  # type: ignore[method-assign]
    assert one.run() == (None, None)
    assert one.driver.engine.counters.finished == {Status.OK: 1}


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (StopIteration("s"), "RuntimeError: generator raised StopIteration"),
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
    ],
)
def test_R123_whatever_it_raises_ends_this_call_only(raised: BaseException, text: str) -> None:
    """With the error of a function that failed."""

    def fails(x: int) -> int:
        raise raised

    one = One(driver_of(fails))
    message, error = one.run()
    assert message is None
    assert type(error) is FunctionError
    assert text in str(error)
    assert one.endings[0].error is error
    assert error.__cause__.__traceback__ is None  # its frames would hold the value


def test_R123_a_stop_of_the_functions_own_making_ends_the_call() -> None:
    """It gave no value."""

    def stops(x: int) -> int:
        raise StopInvocation

    one = One(driver_of(stops))
    assert one.run() == (None, None)
    assert one.driver.engine.counters.finished == {Status.OK: 1}


def test_what_cannot_be_decoded_or_encoded_is_an_error() -> None:
    """The function is not called with the first, and its value is not sent with the second."""

    def strange(x: int) -> Any:
        return object()

    assert type(run(strange, b"x")[1]) is DecodeError
    assert type(run(strange)[1]) is EncodeError


def test_a_call_that_is_not_admitted_is_refused() -> None:
    """Nothing was opened, and nothing is to be left."""
    one = One(driver_of(lambda x: x))
    call = UnaryCall(Open("k"), [Message(b"3", {}, JSON)])
    plan = one.driver.engine.plan(call.open)
    one.driver.engine.is_draining = True
    error = one.body.begin(plan, call, lambda: SECOND)
    assert type(error) is ShuttingDown
    assert error.__traceback__ is None
    assert one.driver.engine.counters.refused == 1


@pytest.mark.parametrize("how", ["cut", "left", "late"])
@pytest.mark.parametrize("raises", [False, True])
def test_R115_a_call_that_nobody_waits_for(how: str, raises: bool) -> None:
    """A value is dropped, and the call ends with the reason; an error of the function is told."""
    begun, go = threading.Event(), threading.Event()

    def held(x: int) -> int:
        begun.set()
        go.wait(5)
        if raises:
            raise ValueError("boom")
        return x

    one, found = One(driver_of(held)), list[Any]()
    deadline = time.monotonic() + 0.05 if how == "late" else None
    thread = threading.Thread(target=lambda: found.append(one.run(deadline=deadline)))
    thread.start()
    assert begun.wait(5)
    one.body.beat()
    reason: InvocationError = ShuttingDown("cut")
    if how == "cut":
        (invocation,) = one.driver.engine.running.values()
        invocation.stop(reason)
        assert one.outlet.cuts == [reason]
    else:
        one.outlet.gone = True
        time.sleep(0.06)
    go.set()
    thread.join()
    ((message, error),) = found
    assert message is None
    kinds: dict[str, type[Exception]] = {"cut": ShuttingDown, "left": Cancelled, "late": DeadlineExceeded}
    assert type(error) is (FunctionError if raises else kinds[how])
    assert one.turn.passed == 1
    one.driver.sweeper.close()


def test_without_a_turn_it_is_long_from_the_beginning() -> None:
    """So is one whose function was slow lately."""

    def square(x: int) -> int:
        return x * x

    one = One(driver_of(square), has_turn=False)
    assert one.run() == (b"9", None)
    assert one.body.is_long
    other = One(driver_of(square))
    other.driver.pace(next(iter(other.driver.engine.catalog))).slow_until = time.monotonic() + 5
    assert other.run() == (b"9", None)
    assert (other.body.is_long, other.turn.passed) == (True, 1)
    for each in (one, other):
        each.driver.sweeper.close()


def test_a_fault_of_ours_is_an_internal_error() -> None:
    """The function's turn is given back."""

    def square(x: int) -> int:
        return x * x

    one = One(driver_of(square))

    def fails(_: Any) -> None:
        raise RuntimeError("a defect")

    one.turn.begin = fails  # type: ignore[method-assign]
    message, error = one.run()
    assert (message, type(error)) == (None, InternalError)


def test_it_does_not_hold_its_value() -> None:
    """The thread remembers the object for a while."""
    one = One(driver_of(lambda x: x))
    assert one.run() == (b"3", None)
    assert one.body._message is None


def test_a_function_may_ask_its_context() -> None:
    """Its inputs have ended, its output is wanted, and a value that it sends beside its own is the second."""
    seen: list[Any] = []

    def asks(x: int, ctx: Context) -> int:
        seen.append((list(ctx.inputs[0]), ctx.wants(0), ctx.cancelled, ctx.metadata, len(ctx.outputs)))
        return x

    def sends(x: int, ctx: Context) -> int:
        ctx.outputs[0].send(x)
        return x

    def ends(x: int, ctx: Context) -> int:
        ctx.outputs[0].end()
        return x

    assert run(asks) == (b"3", None)
    assert seen == [([], True, False, {}, 1)]
    one = One(driver_of(sends))
    assert one.run() == (None, SECOND)
    (ended,) = one.endings
    assert (ended.frames_out, ended.error) == (2, SECOND)  # both were counted, as a session counts them
    assert type(run(ends)[1]) is EncodeError
