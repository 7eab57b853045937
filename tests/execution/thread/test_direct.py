"""Direct conversations: a sync function in the thread of its wire, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from invoker import InputCancelled, Status
from invoker.errors import ProtocolViolation, ShuttingDown, StopInvocation
from tests.execution.wires import Call, direct_driver, gen, sink, square


@pytest.mark.parametrize("function", [square, gen])
def test_every_style_answers_in_order(function):
    """Mapped and streaming: n inputs, n outputs, OK."""
    call = Call(direct_driver(function)).start()
    for number in range(50):
        call.data(b"%d" % number)
    assert call.half_close().end() is None
    assert call.payloads() == [b"%d" % (n * n) for n in range(50)]
    assert call.wire.status == (0, "")
    assert call.wire.is_accepted
    assert call.driver.engine.counters.finished == {Status.OK: 1}


@pytest.mark.parametrize("function", [square, gen])
def test_R032_zero_inputs_give_zero_outputs(function):
    """A start and a half-close: OK."""
    call = Call(direct_driver(function)).start().half_close()
    assert call.end() is None
    assert call.payloads() == []


def test_a_sink_reads_to_the_end():
    """It has no output at all."""
    call = Call(direct_driver(sink)).raw(b"\n\x00").data(b"1").half_close()
    assert call.end() is None
    assert call.payloads() == []


def test_R166_an_option_that_comes_first_is_fed_before_the_function_is_called():
    """The conversation reads it; only what comes after it is pulled."""

    def scaled(xs: Iterator[int], factor: int = 1) -> Iterator[int]:
        for x in xs:
            yield x * factor

    call = Call(direct_driver(scaled)).start().data(b"3", 1).data(b"5", 0).half_close()
    assert call.end() is None
    assert call.payloads() == [b"15"]


def test_R114_the_function_may_end_before_its_input():
    """The call ends with OK although the caller never half-closes."""

    def first(xs: Iterator[int]) -> Iterator[int]:
        yield next(xs)

    call = Call(direct_driver(first)).start().data(b"1").data(b"2").data(b"3")
    assert call.end() is None
    assert call.payloads() == [b"1"]


def test_R050_a_source_flows_before_any_input():
    """The StartFrame alone starts the function."""

    def greet(xs: Iterator[int]) -> Iterator[int]:
        yield 7
        yield from xs

    call = Call(direct_driver(greet)).start()
    assert call.outputs(1) == [b"7"]
    assert call.data(b"8").half_close().end() is None
    assert call.payloads() == [b"7", b"8"]


# Endings with an error.


def test_R119_a_call_that_raises_before_any_output():
    """It is told from a stream that raises."""

    def broken(xs: Iterator[int]) -> Iterator[int]:
        raise ValueError("boom")

    assert str(Call(direct_driver(broken)).start().end()) == "Invoker: Unexpected Invocation Error: ValueError: boom"


def test_R113_values_before_the_error_are_delivered_before_it():
    """Three values, then the error."""

    def three() -> Iterator[int]:
        yield from (1, 2, 3)
        raise ValueError("boom")

    call = Call(direct_driver(three)).start()
    assert str(call.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert call.payloads() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
@pytest.mark.parametrize("is_mapped", [False, True])
def test_R123_exit_like_exceptions_fail_the_call_only(error, is_mapped):
    """They become Unexpected Error and never end the thread without a status."""

    def leave(x: int) -> int:
        raise error

    def streaming(xs: Iterator[int]) -> Iterator[int]:
        raise error

    ended = Call(direct_driver(leave if is_mapped else streaming)).start().data(b"1").end()
    assert str(ended).startswith("Invoker: Unexpected")


@pytest.mark.parametrize("is_in_call", [False, True])
def test_R123_a_stop_of_the_functions_own_making_leaks_nothing(is_in_call):
    """Who raises StopInvocation just stops: the call ends, and the engine forgets it."""

    def stop(xs: Iterator[int]) -> Iterator[int]:
        raise StopInvocation("I stop")

    def stop_later(xs: Iterator[int]) -> Iterator[int]:
        yield 1
        raise StopInvocation("I stop")

    assert Call(direct_driver(stop if is_in_call else stop_later)).start().end() is None


def test_R075_earlier_outputs_precede_a_decoding_error():
    """What came before a bad payload is answered; then the call fails at once, without a half-close."""
    call = Call(direct_driver(gen)).start().data(b"2").data(b"x")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == [b"4"]


def test_a_decode_error_ends_the_call_although_the_function_swallows_it():
    """Ruling 3: the ending is the invoker's; what the function yields afterwards is dropped."""

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        while True:
            try:
                yield next(xs)
            except Exception:
                yield -1

    call = Call(direct_driver(stubborn)).start().data(b"x").data(b"1")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == []


def test_a_pull_after_a_swallowed_decode_error_raises_what_cannot_be_swallowed():
    """Not ``except Exception``, at least."""
    seen = []

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        try:
            while True:
                try:
                    next(xs)
                except Exception as error:
                    seen.append(type(error).__name__)
        except InputCancelled as error:
            seen.append(error.error.prefix)
            raise
        yield 1

    assert str(Call(direct_driver(stubborn)).start().data(b"x").end()).startswith("Invoker: Bad Input Signal")
    assert seen == ["DecodeError", "Invoker: Bad Input Signal"]


@pytest.mark.parametrize(
    ("frame", "text"), [(b"\xff\xff\xff", "not a valid InputSignal"), (b"\n\x00", "a start signal may come only once")]
)
def test_R046_R120_a_protocol_violation_while_the_function_pulls(frame, text):
    """The pull raises it, and it is the ending."""
    seen = []

    def watch(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        except InputCancelled as error:
            seen.append(error.error)
            raise

    call = Call(direct_driver(watch)).start().data(b"1")
    call.outputs(1)
    error = call.raw(frame).end()
    assert isinstance(error, ProtocolViolation)
    assert text in str(error)
    assert seen == [error]


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\x12\x00", None])
def test_R045_R048_R120_a_protocol_violation_before_the_start(frame):
    """Nothing runs, nothing is accepted."""
    call = Call(direct_driver(gen))
    if frame is None:
        call.half_close()
    else:
        call.raw(frame)
    assert isinstance(call.end(), ProtocolViolation)
    assert not call.wire.is_accepted


def test_R064_an_index_out_of_range_ends_the_call():
    """There is one input."""
    assert isinstance(Call(direct_driver(gen)).start().data(b"1", index=3).end(), ProtocolViolation)


def test_R025_the_engine_refuses_while_it_drains():
    """The status is the engine's; no body runs."""
    driver = direct_driver(gen)
    driver.engine.is_draining = True
    call = Call(driver).start()
    assert isinstance(call.end(), ShuttingDown)
    assert not call.wire.is_accepted
    assert driver.engine.counters.refused == 1


# The peer goes away.
